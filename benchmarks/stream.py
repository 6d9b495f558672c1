"""Tables larger than memory: rows a second, peak memory, and what was learned; writes results/stream*.json.

python -m benchmarks.stream --rows 100000000 --minutes 10                      # rows made from a seed, on one GPU
python -m benchmarks.stream --rows 10000000 --minutes 2 --parquet /tmp/rows    # written to Parquet files, and read
python -m benchmarks.stream --rows 20000000 --minutes 5 --categories 1000000   # a column of so many categories
torchrun --nproc-per-node 2 -m benchmarks.stream --rows 100000000 --minutes 10

The first needs no pyarrow. Rows are drawn from a known distribution, whose likelihood stands beside the model's.
"""

import argparse
import resource
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import special, stats

from tessella import TabularFlow, records
from tessella.data.tables.cells import Cells, Coded, plain
from tessella.estimators.frames import Layout
from tessella.estimators.streaming import ParquetTable, Survey, survey
from tessella.training.processes import launched, own_rank

NAMES = ("name", "kind", "visits", "children", "height", "price", "income", "member")
CLASSES = 10
GROUP, GROUPS = 100_000, 10  # rows of a row group, row groups of a file
SCORED, DRAWN = 10_000, 1000


@dataclass(frozen=True)
class Simulated:
    """Rows made from a seed, group by group: a class, which nobody sees, says what each column is like.

    Args:
        rows: how many.
        categories: of the first column; half of the rows have a frequent one.
        seed: of the rows.
    """

    rows: int
    categories: int = 50
    seed: int = 0

    layout = Layout("numpy", NAMES, ({"dtype": "|O"},) * len(NAMES))
    categorical = ("name",)

    @property
    def sizes(self) -> Sequence[int]:
        """Of the groups."""
        full, rest = divmod(self.rows, GROUP)
        return [GROUP] * full + [rest] * bool(rest)

    @property
    def digest(self) -> str:
        """Everything that rows depend on."""
        return repr(self)

    def read(self, piece: int) -> list[Cells]:
        """The rows of a group."""
        rng, rows, k = np.random.default_rng([self.seed, piece]), self.sizes[piece], self.categories
        group = rng.integers(0, CLASSES, rows)
        z = group - 4.5
        frequent = ((k + 1.0) ** rng.random(rows)).astype(np.int64) - 1
        rank = np.where(rng.random(rows) < 0.5, frequent, rng.integers(0, k, rows))
        names, place = np.unique((rank + group * (k // CLASSES)) % k, return_inverse=True)
        return [
            Coded([f"name {i}" for i in names.tolist()], place),
            Coded(
                [f"kind {i}" for i in range(CLASSES)],
                np.where(rng.random(rows) < 0.8, group, rng.integers(0, CLASSES, rows)),
            ),
            rng.poisson(50 + 8 * group),
            rng.poisson(0.2 * group),
            170 + 3 * z + 2 * rng.standard_normal(rows),
            np.round(10 + z + rng.standard_normal(rows), 2),
            np.where(rng.random(rows) < 0.3, 0.0, np.exp(0.3 * z + rng.standard_normal(rows))),
            Coded([False, True], (z + rng.standard_normal(rows) > 0).astype(np.int64)),
        ]

    def without(self, columns: Collection[str]) -> "Simulated":
        """All of them are needed."""
        return self

    def log_prob(self, columns: Sequence[Sequence[Any]]) -> np.ndarray:
        """log p of rows: masses, but densities of heights and of incomes that are not 0. Columns -> (rows,)."""
        name, kind = (np.array([int(value.split()[1]) for value in column]) for column in columns[:2])
        visits, children, height, price, income, member = (np.array(column, dtype=float) for column in columns[2:])
        k, found = self.categories, []
        for group in range(CLASSES):
            z = group - 4.5
            rank = (name - group * (k // CLASSES)) % k
            log_p = np.log(0.5 * np.log((rank + 2) / (rank + 1)) / np.log(k + 1) + 0.5 / k)
            log_p += np.log(0.8 * (kind == group) + 0.2 / CLASSES)
            log_p += stats.poisson.logpmf(visits, 50 + 8 * group) + stats.poisson.logpmf(children, 0.2 * group)
            log_p += stats.norm.logpdf(height, 170 + 3 * z, 2)
            log_p += np.log(stats.norm.cdf(price + 0.005, 10 + z) - stats.norm.cdf(price - 0.005, 10 + z) + 1e-300)
            rich = np.maximum(income, 1e-300)
            log_p += np.where(
                income == 0, np.log(0.3), np.log(0.7) + stats.norm.logpdf(np.log(rich), 0.3 * z) - np.log(rich)
            )
            log_p += stats.norm.logcdf(z * (2 * member - 1))
            found.append(log_p - np.log(CLASSES))
        total: np.ndarray = special.logsumexp(found, axis=0)
        return total


def written(table: Simulated, folder: Path) -> ParquetTable:
    """The same rows as Parquet files, some row groups each; those that are there stay."""
    import pyarrow as pa
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    for first in range(0, len(table.sizes), GROUPS):
        path = folder / f"{first // GROUPS:05}.parquet"
        if path.exists() or own_rank():
            continue
        parts = []
        for piece in range(first, min(first + GROUPS, len(table.sizes))):
            cells = [plain(one) if isinstance(one, Coded) else one for one in table.read(piece)]
            parts.append(pa.table(dict(zip(NAMES, cells, strict=True))))
        pyarrow.parquet.write_table(pa.concat_tables(parts), path, row_group_size=GROUP)
    return ParquetTable(folder)


def measured(flow: TabularFlow, looked: Survey, table: Simulated) -> dict[str, Any]:
    """Likelihoods of test rows beside the truth, and how fast rows are scored and drawn."""
    columns = flow.encoding_.decode(*(part[:SCORED] for part in looked.batch(flow.encoding_, "test")))
    truth = -table.log_prob(columns)
    rows = np.empty((len(truth), len(columns)), dtype=object)
    for j, column in enumerate(columns):
        rows[:, j] = column
    began = time.perf_counter()
    nll = -flow.score_samples(rows)
    scored = time.perf_counter()
    flow.sample(DRAWN)
    drawn = time.perf_counter()
    gap = nll - truth
    return {
        "test_rows": len(rows),
        "nll": float(nll.mean()),
        "truth": float(truth.mean()),
        "gap": float(gap.mean()),
        "gap_error": float(gap.std() / len(gap) ** 0.5),
        "scored_rows_per_second": round(len(rows) / (scored - began)),
        "drawn_rows_per_second": round(DRAWN / (drawn - scored)),
    }


def peak_gigabytes() -> dict[str, float]:
    """Of this process, and of its GPU."""
    found = {"peak_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}
    if torch.cuda.is_available():
        found["peak_gpu_gigabytes"] = torch.cuda.max_memory_allocated() / 2**30
    return {name: round(value, 3) for name, value in found.items()}


def main() -> None:
    """Look, fit, score, sample; a record of all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--categories", type=int, default=50)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--width", type=int)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--parquet", type=Path, help="folder for the rows as Parquet files")
    parser.add_argument("--results", type=Path, default=Path("results"))
    options = parser.parse_args()
    table = Simulated(options.rows, options.categories)
    pieces = table if options.parquet is None else written(table, options.parquet)
    began = time.perf_counter()
    looked = survey(pieces, {"name": "categorical"}, 0, 0.1, 0.1, progress=own_rank() == 0)
    looking = time.perf_counter() - began
    flow = TabularFlow(
        {"name": "categorical"},
        width=options.width,
        time_budget=60 * options.minutes,
        batch_size=options.batch_size,
        device=options.device,
        random_state=0,
    ).fit(looked)
    if own_rank():
        return
    seconds = float(flow.history_[-1]["seconds"])
    record = {
        "rows": options.rows,
        "categories": len(flow.columns_[0].categories),
        "source": "simulated" if options.parquet is None else "parquet",
        "processes": launched(),
        "batch_size": options.batch_size,
        "parameters": sum(weight.numel() for weight in flow.model_.parameters()),
        "survey_seconds": round(looking, 1),
        "surveyed_rows_per_second": round(options.rows / looking),
        "training_seconds": round(seconds, 1),
        "steps": flow.n_iter_,
        "trained_rows_per_second": round(flow.n_iter_ * options.batch_size / seconds),
        "epochs": round(flow.n_iter_ * options.batch_size / sum(looked.sizes), 3),
        "initial_nll": flow.initial_validation_,
        "validation_nll": flow.best_validation_,
        **measured(flow, looked, table),
        **peak_gigabytes(),
        **records.provenance(0),
    }
    names = {
        "categories": options.categories >= 10_000,
        "parquet": options.parquet is not None,
        f"{launched()}-processes": launched() > 1,
        "cpu": flow.model_.device.type == "cpu",
    }
    records.write(options.results / f"{'-'.join(['stream', *(name for name, so in names.items() if so)])}.json", record)
    print("\n".join(f"{name}: {value}" for name, value in record.items()))


if __name__ == "__main__":
    main()
