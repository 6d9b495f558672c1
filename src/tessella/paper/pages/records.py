"""Records of results/ read back: checked, and the seeds of one cell of a table brought together."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

Record = dict[str, Any]

NEEDED = {"data", "partial", "method", "preset", "seed", "steps", "seconds", "elbo_nll", "iw_nll", "iw_samples"}
NEEDED |= {
    "stderr",
    "validation_nll",
    "entropy_floor",
    "command",
    "commit",
    "hardware",
    "exact",
    "test_rows",
    "simulated",
    "initial_nll",
}
NEEDED |= {"initial_nll", "best_step"}


@dataclass(frozen=True)
class Cell:
    """The records of one method, preset and table; one a seed."""

    records: tuple[Record, ...]

    @property
    def first(self) -> Record:
        """Of the smallest seed."""
        return self.records[0]

    def mean(self, key: str) -> float:
        """Over the seeds."""
        return float(mean(record[key] for record in self.records))

    @property
    def learned(self) -> bool:
        """Whether training improved on what it began with, for any seed; counting begins with nothing."""
        return any(record["best_step"] != 0 for record in self.records)

    @property
    def error(self) -> float:
        """Standard deviation over the seeds; of a single seed, the standard error over the test rows."""
        values = [record["iw_nll"] for record in self.records]
        return float(stdev(values) if len(values) > 1 else self.first["stderr"])

    def __str__(self) -> str:
        seeds = f" ({len(self.records)} seeds)" if len(self.records) > 1 else ""
        return f"{self.mean('iw_nll'):.3f} ± {self.error:.3f}{seeds}"


def read_records(folder: Path) -> list[Record]:
    """All records of a folder, by file name, each with its file name as `file`; none where there is no folder."""
    return [_checked(path) for path in sorted(folder.glob("*.json"))]


def _checked(path: Path) -> Record:
    """Complete, and not below its entropy floor."""
    record: Record = json.loads(path.read_text())
    missing = sorted(NEEDED - set(record))
    if missing:
        raise ValueError(f"{path}: no {', '.join(missing)}; expected a record of `tessella reproduce tables`")
    if record["entropy_floor"] is not None and record["iw_nll"] < record["entropy_floor"] - 3 * record["stderr"]:
        raise ValueError(
            f"{path}: {record['iw_nll']} is below the entropy floor {record['entropy_floor']}; expected a valid value"
        )
    return record | {"file": path.name}


def cells(records: Iterable[Record]) -> dict[tuple[str, bool, str, str], Cell]:
    """By (data, simulated, method, preset)."""
    groups: dict[tuple[str, bool, str, str], list[Record]] = {}
    for record in sorted(records, key=lambda record: record["seed"]):
        key = (record["data"], record["simulated"], record["method"], record["preset"])
        groups.setdefault(key, []).append(record)
    return {key: Cell(tuple(group)) for key, group in groups.items()}


def machine(hardware: str) -> str:
    """The accelerator or processor, and whether it was shared."""
    first, *others = hardware.split("; ")
    return ", ".join([first, *(other for other in others if other.endswith("runs at once"))])
