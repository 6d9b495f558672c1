"""`tessella baskets score`, `complete`, `anomalies` and `sample`."""

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from tessella.cli.files import CsvOptions, Formulas, is_formula

if TYPE_CHECKING:
    from tessella.estimators import SetFlow

Unseen = Literal["error", "skip"]


def score(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    out: Path | None = None,
    unseen: Unseen = "error",
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Log-likelihood of every basket of a file, in nats: its size and its items, in no order.

    Args:
        model: folder that `tessella baskets fit` made.
        data: a file of baskets, as for fit.
        out: CSV or Parquet file for the scores, a line for each basket; without it only the summary is printed.
        unseen: items that training did not see: error stops there; skip leaves them out of their baskets, and a basket
            of which nothing is left has an empty score.
        json: print the summary as JSON, and nothing else.
        csv: how a CSV file is written.
    """
    import numpy as np
    import pyarrow as pa

    from tessella.cli.baskets.files import warnings_said

    flow, names, found = _opened(model, data, csv, unseen, not json)
    with warnings_said(not json):
        scores = flow.score_samples(found)
    finite = np.isfinite(scores)
    if not finite.any():
        raise ValueError(f"{data}: got no basket with an item that the model knows; expected at least one")
    mean = float(scores[finite].mean())
    if out is not None:
        _write({"basket": names, "log_likelihood": pa.array(scores, mask=~finite)}, out)
    said = {"baskets": int(finite.sum()), "mean_log_likelihood": mean, "scores": str(out) if out else None}
    if json:
        print(dumps(said, indent=1))
        return
    print(f"{said['baskets']:,} baskets: mean log-likelihood {mean:.4f} nats")


def complete(
    model: tyro.conf.Positional[Path],
    items: tyro.conf.Positional[tuple[str, ...]] = (),
    n: int = 5,
    json: bool = False,
) -> None:
    """What comes next: the likeliest further items of a basket, and their probabilities given that there is one more.

    Args:
        model: folder that `tessella baskets fit` made.
        items: that are in the basket; none for an empty one.
        n: how many to show.
        json: print as JSON, and nothing else.
    """
    from tessella.cli.baskets.files import as_known
    from tessella.estimators import SetFlow

    flow = SetFlow.load(model)
    known = set(flow.items_)
    found = flow.complete([as_known(item, known) for item in items], n)
    if json:
        print(dumps([{"item": item, "probability": chance} for item, chance in found], indent=1))
        return
    for item, chance in found:
        print(f"{100 * chance:7.3f}%  {item}")


def anomalies(
    model: tyro.conf.Positional[Path],
    data: tyro.conf.Positional[Path],
    top: int = 20,
    per_item: bool = False,
    unseen: Unseen = "error",
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """The least likely baskets of a file, and in each the item that is the oddest given the others.

    Args:
        model: folder that `tessella baskets fit` made.
        data: a file of baskets, as for fit.
        top: how many baskets.
        per_item: rank by nats per item: large baskets are all unlikely, whatever is in them.
        unseen: items that training did not see: error stops there; skip leaves them out of their baskets.
        json: print as JSON, and nothing else.
        csv: how a CSV file is written.
    """
    from tessella.cli.baskets.files import warnings_said

    if top < 1:
        raise ValueError(f"top: got {top}; expected at least 1")
    flow, names, found = _opened(model, data, csv, unseen, not json)
    with warnings_said(not json):
        rows = [{**row, "basket": names[row["basket"]]} for row in flow.anomalies(found, top, per_item)]
    if json:
        print(dumps(rows, indent=1))
        return
    for row in rows:
        size = f"{row['size']:,} item" + "s" * (row["size"] > 1)
        print(f"basket {row['basket']:>8}  {row['score']:9.3f} nats, {size}   {row['item']} (+{row['surprise']:.1f})")


def sample(
    model: tyro.conf.Positional[Path],
    baskets: int = 10,
    out: Path | None = None,
    formulas: Formulas = "auto",
    seed: int = 0,
) -> None:
    """Draw new baskets, as CSV or Parquet of two columns, basket and item.

    Args:
        model: folder that `tessella baskets fit` made.
        baskets: how many.
        out: file to write, .csv or .parquet; CSV to standard output without it.
        formulas: items that a spreadsheet would take for formulas get a quotation mark: auto, where training saw none;
            escape, always; keep, never.
        seed: of the draws.
    """
    from tessella.estimators import SetFlow

    flow = SetFlow.load(model)
    flow.library_ = None  # as lists, whatever it was fitted with
    drawn = flow.sample(baskets, random_state=seed)
    ids = [place for place, basket in enumerate(drawn) for _ in basket]
    items = [str(item) for basket in drawn for item in basket]
    risky = any(is_formula(str(item)) for item in flow.items_)
    _write({"basket": ids, "item": items}, out, "keep" if formulas == "auto" and risky else formulas)


def _write(columns: dict[str, Any], out: Path | None, formulas: Formulas = "auto") -> None:
    import pyarrow as pa

    from tessella.cli.files import escaped, write_table

    write_table(escaped(pa.table(columns), formulas, ()), out)


def _opened(
    model: Path, data: Path, csv: CsvOptions, unseen: Unseen, visible: bool
) -> "tuple[SetFlow, list[str], list[list[Any]]]":
    """The model, and the baskets of a file: what they are called, and their items as the model knows them."""
    from tessella.cli.baskets.files import as_known, read_baskets, warnings_said
    from tessella.estimators import SetFlow
    from tessella.estimators.baskets import read

    flow = SetFlow.load(model)
    flow.unseen = unseen
    with warnings_said(visible):
        found = read(read_baskets(data, csv, visible))
    known = set(flow.items_)
    return flow, found.names, [[as_known(str(item), known) for item in basket] for basket in found.items]
