"""`tessella demo`."""

from pathlib import Path
from shlex import quote


def demo(out: Path = Path("demo-report"), seconds: float = 75.0, seed: int = 0, results: Path | None = None) -> None:
    """Fit the Connect4 table that comes with the package, compare, sample, find the oddest rows, write a report.

    67,557 positions of the game, a column for each of the 42 squares: who has a piece there, if anybody.

    Args:
        out: folder for the table, the model and the report.
        seconds: how long to train.
        seed: of split, training and samples.
        results: folder for a JSON record of the comparison; none is written without it.
    """
    import pyarrow as pa
    import torch

    from tessella import records
    from tessella.cli.files import write_table
    from tessella.cli.fit import REPORT, WIDEST, comparison, fit_and_report
    from tessella.cli.score import odd_rows
    from tessella.data import load_table
    from tessella.estimators import TabularFlow

    connect4 = load_table("connect4")
    codes = torch.cat([part.tensors[0] for part in connect4.parts.values()])
    table = pa.table(connect4.encoding.by_name(codes))
    out.mkdir(parents=True, exist_ok=True)
    write_table(table, out / "connect4.csv")
    print(
        f"{table.num_columns} columns of categories; a tenth of the rows is kept aside. Training for {seconds:.0f} s:"
    )
    flow = TabularFlow(time_budget=seconds, test_fraction=0.1, random_state=seed)
    overview = fit_and_report(flow, table, out / "model")
    print(f"\n{comparison(overview)}")
    why = "(no two rows are alike; no model is below it on all)"
    print(f"  {'entropy floor':<{WIDEST}}  = {connect4.entropy_floor:8.3f}   {why}")
    print("\nfive sampled rows:")
    write_table(flow.sample(5), None)
    print("\nthe three oddest of the rows kept aside, and what makes them odd (nats):", flush=True)
    aside = table.take(sorted(flow.parts_["test"]))
    print("\n".join(odd_rows(flow.anomalies(aside, top=3).to_pylist())))
    if results:
        measured = {
            "data": "connect4",
            "steps": overview.steps,
            "seconds": overview.seconds,
            "entropy_floor": connect4.entropy_floor,
        }
        learned = {"model": overview.model, "exact": overview.exact, "learning": overview.learning}
        held_out = {"test_rows": overview.scored_rows, "likelihoods": overview.likelihoods}
        records.write(results / "demo.json", {**measured, **learned, **held_out, **records.provenance(seed)})
    print(f"\nreport: {out / 'model' / REPORT}\ntry: tessella sample {quote(str(out / 'model'))} --given d1 x --rows 5")
