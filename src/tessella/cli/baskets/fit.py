"""`tessella baskets fit`."""

from json import dumps
from pathlib import Path
from shlex import quote
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from tessella.cli.files import CsvOptions

if TYPE_CHECKING:
    from tessella.estimators.baskets.overview import Tried


def fit(
    data: tyro.conf.Positional[Path],
    out: Path = Path("model"),
    minutes: float = 5.0,
    test: float = 0.1,
    model: Literal["auto", "independent", "mixture", "transformer", "coupling"] = "auto",
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int | None = None,
    seed: int = 0,
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Learn how likely baskets are: tessella baskets fit baskets.csv --out model.

    Ctrl-C keeps the best model so far; a fit that was killed continues when the same command is given again. The
    likelihood of baskets that were kept aside is compared with that of
    independent items, and a report written: report.html beside the model. Then: tessella baskets score, complete,
    anomalies, sample.

    Args:
        data: a CSV or Parquet file of two columns, basket and item; or a text file with a basket in each line, its
            items separated by blanks or commas.
        out: folder for the model.
        minutes: how long to learn at most.
        test: share of the baskets that is kept aside for the comparison.
        model: auto, what the validation baskets prefer; independent items, a mixture of kinds of baskets, a transformer
            over items in every order, or a coupling flow through cells.
        device: where to learn.
        threads: of a CPU.
        seed: of split and fit.
        json: print the result as JSON, and nothing else.
        csv: how a CSV file is written.
    """
    from tessella.cli.baskets.files import read_baskets, warnings_said
    from tessella.cli.fit import CHECKPOINTS, REPORT
    from tessella.estimators import SetFlow
    from tessella.estimators.baskets.overview import gather
    from tessella.estimators.saving import save_somewhere
    from tessella.folders import claimed
    from tessella.progress import say
    from tessella.report.page import write_page

    table = read_baskets(data, csv, visible=not json)
    flow = SetFlow(
        model_kind=model,
        time_budget=60 * minutes,
        test_fraction=test,
        device=device,
        threads=threads,
        random_state=seed,
        progress=not json,
    )
    with claimed(out), warnings_said(not json):
        flow.fit_resumable(table, out / CHECKPOINTS)
        save_somewhere(flow, out)
        rmtree(out / CHECKPOINTS, ignore_errors=True)
        if not json:
            say("comparing with independent items, writing the report ...")
        overview = gather(flow, table)
        overview.write(out)
        write_page(out, out / REPORT, model=str(out))
    if json:
        said: dict[str, Any] = {"baskets": overview.baskets, "items": overview.items, "model_kind": flow.model_kind_}
        said |= {"components": flow.components_, "exact": flow.exact_, "validation_nll": flow.validation_}
        said |= {"skipped": flow.skipped_}
        held_out = {"part": overview.held_out, "baskets": overview.scored, "likelihoods": overview.likelihoods}
        print(dumps({**said, "held_out": held_out, "model": str(out), "report": str(out / REPORT)}, indent=1))
        return
    print(f"{overview.baskets:,} baskets of {overview.items:,} items; fitted {overview.seconds:.0f} s")
    print(f"negative log-likelihood of {overview.scored:,} {overview.held_out} baskets, in nats (lower is better):")
    for one in overview.likelihoods[: 1 if flow.model_kind_ == "independent" else None]:
        sign = "=" if one["exact"] else "<="
        print(f"  {one['name']:<26} {sign:>2} {one['nll']:8.3f} +- {one['error']:.3f}")
    for tried in overview.tried:
        print(_said(tried))
    print(f"model: {out}\nreport: {out / REPORT}")
    print(f"next: tessella baskets complete {quote(str(out))} {quote(str(flow.items_[0]))}")


def _said(tried: "Tried") -> str:
    """What became of a model, in a line."""
    if tried["validation"] is None:
        return f"not tried: {tried['name']}: {tried['why']}"
    sign = "" if tried["exact"] else "<= "
    value = f"{sign}{tried['validation']:.3f} nats on validation baskets"
    return f"{'kept' if tried['chosen'] else 'tried'}: {tried['name']}, {value}"
