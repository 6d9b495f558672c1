"""`tessella baskets fit`."""

from json import dumps
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

import tyro

from tessella.cli.files import CsvOptions


def fit(
    data: tyro.conf.Positional[Path],
    out: Path = Path("model"),
    minutes: float = 5.0,
    test: float = 0.1,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int | None = None,
    seed: int = 0,
    json: bool = False,
    csv: Annotated[CsvOptions, tyro.conf.arg(name="")] = CsvOptions(),  # noqa: B008  # it is frozen
) -> None:
    """Learn how likely baskets are: tessella baskets fit baskets.csv --out model.

    Ctrl-C keeps the best model so far. The likelihood of baskets that were kept aside is compared with that of
    independent items, and a report written: report.html beside the model. Then: tessella baskets score, complete,
    anomalies, sample.

    Args:
        data: a CSV or Parquet file of two columns, basket and item; or a text file with a basket in each line, its
            items separated by blanks or commas.
        out: folder for the model.
        minutes: how long to learn at most.
        test: share of the baskets that is kept aside for the comparison.
        device: where to learn.
        threads: of a CPU.
        seed: of split and fit.
        json: print the result as JSON, and nothing else.
        csv: how a CSV file is written.
    """
    from tessella.cli.baskets.files import read_baskets, warnings_said
    from tessella.cli.fit import REPORT
    from tessella.estimators import SetFlow
    from tessella.estimators.baskets.overview import gather
    from tessella.estimators.saving import save_somewhere
    from tessella.folders import claimed
    from tessella.progress import say
    from tessella.report.page import write_page

    table = read_baskets(data, csv, visible=not json)
    flow = SetFlow(
        time_budget=60 * minutes,
        test_fraction=test,
        device=device,
        threads=threads,
        random_state=seed,
        progress=not json,
    )
    with claimed(out), warnings_said(not json):
        flow.fit(table)
        save_somewhere(flow, out)
        if not json:
            say("comparing with independent items, writing the report ...")
        overview = gather(flow, table)
        overview.write(out)
        write_page(out, out / REPORT, model=str(out))
    if json:
        said: dict[str, Any] = {"baskets": overview.baskets, "items": overview.items, "model_kind": flow.model_kind_}
        said |= {"components": flow.components_, "exact": flow.exact_, "validation_nll": flow.validation_}
        held_out = {"part": overview.held_out, "baskets": overview.scored, "likelihoods": overview.likelihoods}
        print(dumps({**said, "held_out": held_out, "model": str(out), "report": str(out / REPORT)}, indent=1))
        return
    print(f"{overview.baskets:,} baskets of {overview.items:,} items; fitted {overview.seconds:.0f} s")
    print(f"negative log-likelihood of {overview.scored:,} {overview.held_out} baskets, in nats (lower is better):")
    for one in overview.likelihoods[: 1 if flow.model_kind_ == "independent" else None]:
        print(f"  {one['name']:<24} = {one['nll']:8.3f} +- {one['error']:.3f}")
    print(f"model: {out}\nreport: {out / REPORT}")
    print(f"next: tessella baskets complete {quote(str(out))} {quote(str(flow.items_[0]))}")
