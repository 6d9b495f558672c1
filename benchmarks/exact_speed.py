"""The exact model of tables on one CPU thread: rows drawn and scored, updates made, against plain multiplications.

    python -m benchmarks.exact_speed            # two shapes, about three minutes
    python -m benchmarks.exact_speed --rounds 3

Values are simulated, shapes are not: `connect4` has 42 columns of three categories, `census` 15 columns like those of
the census income table, six of them numbers with atoms, grids and a continuum. Networks have width 64, two layers and
single precision, and are not trained: columns are independent, and rows, which are drawn as one while they agree, soon
differ. Seconds are those of the processor, which other programs on the machine disturb less. "draw given half" draws
the last half of the columns given the first half of other rows, "draw one half" given that of a single row. All calls
take turns in rounds; `share` is how long as many multiplications as a whole row needs take in plain matrix products
just before, as a share of the time that the call took.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tessella import checks, records
from tessella.configs import to_json
from tessella.data import TableShape
from tessella.models import AutoregressiveConfig, AutoregressiveTable
from tessella.nets.any_order import EXPANSION
from tessella.training import Trainable, TrainingConfig
from tessella.training.learner import Learner
from tessella.training.processes import Processes

CONFIG = AutoregressiveConfig(width=64, layers=2, dropout=0.0)
TRAINING = TrainingConfig(batch_size=256, accelerator="cpu", threads=1)
LEARNED = 20_000  # rows that the bins are made from
ROWS = {"draw": 4096, "draw given half": 4096, "draw one half": 4096, "score": 4096, "update": TRAINING.batch_size}
PASSES = {"update": 3}  # forward, and twice as much backward
PLAIN = (1024, 64, 256)  # of the reference, m x k times k x n


def connect4(rows: int) -> tuple[TableShape, tuple[Tensor, ...]]:
    """42 columns of three categories."""
    return TableShape((3,) * 42), (torch.randint(3, (rows, 42)),)


def census(rows: int) -> tuple[TableShape, tuple[Tensor, ...]]:
    """Nine columns of categories, five counts, of which three have atoms, and a real number."""
    counts = (9, 16, 7, 15, 6, 5, 2, 42, 2)
    codes = torch.stack([torch.randint(count, (rows,)) for count in counts], 1)
    age, years = 17 + 60 * torch.rand(rows).square(), torch.randint(1, 17, (rows,))
    gain, loss = (torch.where(torch.rand(rows) < 0.95, 0, (7 + torch.randn(rows)).exp()) for _ in range(2))
    hours = torch.where(torch.rand(rows) < 0.5, 40, 40 + 12 * torch.randn(rows)).clamp(1, 99)
    whole = torch.stack([age, years, gain, loss, hours], 1).round()
    numbers = torch.cat([whole, torch.randn(rows, 1).exp()], 1).double()
    return TableShape(counts, whole=(True,) * 5 + (False,), indicators=(-1,) * 6), (codes, numbers)


TABLES = {"connect4": connect4, "census": census}


class Case(NamedTuple):
    """A shape, and what is timed on it."""

    name: str
    model: AutoregressiveTable
    calls: dict[str, Callable[[], Any]]


def case(name: str) -> Case:
    """A model of that table; every call makes or takes as many rows as `ROWS` says."""
    torch.manual_seed(0)
    shape, rows = TABLES[name](LEARNED)
    model = CONFIG.start(shape, rows, tuple(part[: LEARNED // 10] for part in rows)).model
    assert isinstance(model, AutoregressiveTable)
    assert isinstance(model, Trainable)
    learner = Learner(model, TRAINING, Processes(TRAINING))
    first = {what: tuple(part[:number] for part in rows) for what, number in ROWS.items()}
    same = tuple(part[:1].expand(ROWS["draw one half"], -1) for part in rows)
    half = range(model.density.columns // 2)

    @torch.no_grad()
    def score() -> None:
        model.log_prob(*first["score"])

    return Case(
        name,
        model,
        {
            "draw": lambda: model.sample(ROWS["draw"]),
            "draw given half": lambda: model.complete(*first["draw given half"], known=half),
            "draw one half": lambda: model.complete(*same, known=half),
            "score": score,
            "update": lambda: learner.update(0, first["update"]),
        },
    )


def multiplications(model: AutoregressiveTable) -> int:
    """Of weights and numbers, for a row that is scored once: of blocks and heads; attention is not counted."""
    density, width = model.density, model.density.net.width
    each = 4 + 2 * EXPANSION  # queries, keys, values, what mixes the heads; in and out of the hidden layer
    return width * (each * density.columns * CONFIG.layers * width + sum(density.counts))


def plain() -> Callable[[], Any]:
    """One matrix product."""
    m, k, n = PLAIN
    left, right = torch.randn(m, k), torch.randn(k, n)
    return lambda: left @ right


def measure(cases: list[Case], rounds: int) -> list[dict[str, Any]]:
    """Medians over rounds in which all calls take turns, a reference before each."""
    reference, each = plain(), 200
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for round_ in range(rounds + 1):  # the first is not counted
        for one in cases:
            for what, call in one.calls.items():
                product = _seconds(reference, each) / (PLAIN[0] * PLAIN[1] * PLAIN[2])
                pair = product, _seconds(call, max(1, 1024 // ROWS[what]))
                if round_:
                    times.setdefault((one.name, what), []).append(pair)
    return [_summary(one, times) for one in cases]


def _summary(one: Case, times: dict[tuple[str, str], list[tuple[float, float]]]) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": one.name, "columns": one.model.density.columns}
    for what in one.calls:
        found = times[one.name, what]
        work = multiplications(one.model) * ROWS[what] * PASSES.get(what, 1)
        seconds, share = median(t for _, t in found), median(work * product / t for product, t in found)
        rate = round(ROWS[what] / seconds)
        shown[what] = {"rows_per_second": rate, "share": round(share, 3)}
        if what == "update":
            shown[what]["updates_per_second"] = round(1 / seconds, 2)
        print(f"{one.name:10} {what:16} {rate:7d} rows a second, {share:.2f} of plain multiplications", flush=True)
    return shown


def _seconds(call: Callable[[], Any], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=Path("results/exact-speed.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    with checks.values(False):  # as in training
        shapes = measure([case(name) for name in TABLES], args.rounds)
    record = {"model": to_json(CONFIG), "batch_size": TRAINING.batch_size, "plain": PLAIN, "shapes": shapes}
    records.write(args.out, {**record, **records.provenance(seed=0)})


if __name__ == "__main__":
    main()
