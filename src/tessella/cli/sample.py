"""`tessella sample`."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import tyro

from tessella.cli.engines import EngineOptions, spread
from tessella.cli.files import Formulas
from tessella.cli.loaded import Loaded

if TYPE_CHECKING:
    import pyarrow as pa

    from tessella.estimators import TabularFlow


ROWS_AT_ONCE = 100_000


def sample(
    model: tyro.conf.Positional[Path],
    rows: int = 10,
    given: dict[str, str] | None = None,
    temperature: float = 1.0,
    balance: str | None = None,
    out: Path | None = None,
    formulas: Formulas = "auto",
    characters: int | None = None,
    prompt: str | None = None,
    seed: int = 0,
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = EngineOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Draw new rows, with the columns' own names and categories, as CSV or Parquet; or a text, while it is drawn.

    Args:
        model: folder that `tessella fit`, `tessella train` or `tessella reproduce text` made.
        rows: how many.
        given: what some columns shall be: --given sex F age 30:40 job "clerk|cook"; LOW:HIGH is an interval of numbers
            or dates, one end may be left out; | parts categories; an empty text stands for missing.
        temperature: below 1 for more ordinary rows, above 1 for more varied ones.
        balance: a column whose categories shall come equally often.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        formulas: texts that a spreadsheet would take for formulas get a quotation mark: auto, in columns where training
            saw none; escape, everywhere; keep, nowhere.
        characters: of a text, 500 unless given.
        prompt: what a text begins with.
        seed: of the draws.
        engine: where the work is done.
    """
    from tessella.runs import is_text_run

    far = engine.engine != "local"
    if is_text_run(model):
        if found := [*_given(given=given, balance=balance, out=out, engine=far)]:
            raise ValueError(
                f"{found[0]}: got it for the text model in {model}; expected characters, prompt, temperature"
            )
        _stream(model, 500 if characters is None else characters, prompt or "", temperature, seed)
        return
    if characters is not None or prompt is not None:
        name = "prompt" if characters is None else "characters"
        raise ValueError(f"{name}: got it for the rows of {model}; expected a folder of `tessella reproduce text`")
    from tessella.cli.files import escaped, with_formulas, write_table, writing
    from tessella.estimators.saving import DESCRIPTION
    from tessella.progress import watching

    if (model / DESCRIPTION).exists():
        loaded = Loaded(model)
        said = parsed(loaded.flow, given or {})
        trusted = with_formulas(loaded.flow.columns_)
        parts = [Draws(first, min(rows - first, ROWS_AT_ONCE)) for first in range(0, max(rows, 1), ROWS_AT_ONCE)]
        how = {"given": said, "temperature": temperature, "balance": balance}
        # How many rows a condition takes is known when they are there.
        with writing(out) as write, watching("rows drawn", None if said or balance else rows):
            for drawn in spread(partial(_drawn, loaded, how, seed), parts, engine):
                write(escaped(drawn, formulas, trusted))
    elif found := [*_given(given=given, balance=balance, temperature=temperature != 1, engine=far)]:
        raise ValueError(
            f"{found[0]}: got it for a model of `tessella train` in {model}; expected one of `tessella fit`"
        )
    else:
        with watching("rows drawn", rows):
            drawn = _rows_of_run(model, rows, seed)
        write_table(drawn, out)


def _given(**options: Any) -> Iterator[str]:
    """The names of those that are not empty."""
    return (name for name, value in options.items() if value)


class Draws(NamedTuple):
    """Some of the rows that are asked for."""

    first: int
    rows: int

    def __str__(self) -> str:
        return f"draws {self.first} to {self.first + self.rows - 1}"


def _drawn(loaded: Loaded, how: dict[str, Any], seed: int, draws: Draws) -> "Iterator[pa.Table]":
    """They depend on their place and the seed, and not on what was drawn before."""
    from tessella.cli.fitted import seed_of
    from tessella.estimators.frames import to_arrow

    yield to_arrow(loaded.flow.sample(draws.rows, **how, random_state=seed_of(draws.first, seed)))


def _rows_of_run(folder: Path, rows: int, seed: int) -> "pa.Table":
    import pyarrow as pa
    import torch

    from tessella import checks
    from tessella.folders import interpreting
    from tessella.models.restoring import sound
    from tessella.runs import load_run

    torch.manual_seed(seed)
    run = load_run(folder)
    with sound("sample"):
        drawn = run.model.sample(rows)
        for part in drawn:
            checks.finite("rows drawn", part)
    with interpreting(folder / "config.json"):  # columns are of one type each, unless somebody wrote others there
        return pa.table(run.encoding.by_name(*drawn))


def _stream(folder: Path, characters: int, prompt: str, temperature: float, seed: int) -> None:
    """Print a text while it is drawn; bytes that are no text, in whole or not yet, are shown as unknown or wait."""
    from codecs import getincrementaldecoder
    from itertools import islice

    import torch

    from tessella.models import characters as drawn
    from tessella.models.restoring import sound
    from tessella.runs import load_text_run

    if characters < 1:
        raise ValueError(f"characters: got {characters}; expected at least 1")
    torch.manual_seed(seed)
    run, decoder = load_text_run(folder), getincrementaldecoder("utf-8")("replace")
    print(prompt, end="", flush=True)
    with sound("sample"):
        for codes in islice(drawn(run.model, run.alphabet.encode(prompt), temperature=temperature), characters):
            print(decoder.decode(run.alphabet.decode(codes)), end="", flush=True)
    print(decoder.decode(b"", final=True))


def parsed(flow: "TabularFlow", given: dict[str, str]) -> dict[str, Any]:
    """Conditions as `TabularFlow.sample` takes them. A category that has : or | in its own name is that category."""
    found: dict[str, Any] = {}
    for name, text in given.items():
        column = flow.columns_[flow.encoding_.index(name)]
        known = text in column.named
        if ":" in text and not known and (column.number or column.kind == "ordinal"):
            low, _, high = text.partition(":")
            found[name] = (column.parse(low), column.parse(high))
        elif "|" in text and not known and not column.number:
            found[name] = [column.parse(part) for part in text.split("|")]
        else:
            found[name] = column.parse(text)
    return found
