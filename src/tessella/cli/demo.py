"""`tessella demo`."""

from pathlib import Path


def demo(out: Path = Path("demo-report"), seconds: float = 75.0, seed: int = 0, results: Path | None = None) -> None:
    """Fit the Mushroom table that comes with the package, compare, sample, find the oddest rows, write a report.

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
    from tessella.cli.table import REPORT, comparison, fit_and_report, odd_rows
    from tessella.data import load_table
    from tessella.estimators import TabularFlow

    mushroom = load_table("mushroom")
    rows = torch.cat([mushroom.train, mushroom.validation, mushroom.test])
    table = pa.table(mushroom.schema.columns(rows))
    out.mkdir(parents=True, exist_ok=True)
    write_table(table, out / "mushroom.csv")
    print(
        f"{table.num_columns} columns of categories; a tenth of the rows is kept aside. Training for {seconds:.0f} s:"
    )
    flow = TabularFlow(time_budget=seconds, test_fraction=0.1, random_state=seed)
    overview = fit_and_report(flow, table, out / "model")
    print(f"\n{comparison(overview)}")
    print(f"  {'floor':<20}  = {mushroom.floor:8.3f}   (no two rows are alike: no model can do better on all of them)")
    print("\nfive sampled rows:")
    write_table(flow.sample(5), None)
    print("\nthe three oddest of the rows kept aside, and what makes them odd (nats):", flush=True)
    aside = table.take(sorted(flow.parts_["test"]))
    print("\n".join(odd_rows(flow.anomalies(aside, top=3).to_pylist())))
    if results:
        measured = {"data": "mushroom", "steps": overview.steps, "seconds": overview.seconds, "floor": mushroom.floor}
        held_out = {"test_rows": overview.scored_rows, "samples": overview.samples, "likelihoods": overview.likelihoods}
        records.write(results / "demo.json", {**measured, **held_out, **records.provenance(seed)})
    print(f"\nreport: {out / 'model' / REPORT}\ntry: tessella sample {out / 'model'} --given odor n --rows 5")
