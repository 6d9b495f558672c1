"""docs/peers.md says what the records say."""

import json
from pathlib import Path

from tessella.paper.pages.peers import peers_page


def run(apart: float, seed: int = 0, **other) -> dict:
    """As `python -m benchmarks.peers` writes it."""
    measured = {"two_sample": {"value": apart, "error": 0.004}, "utility": {"value": 0.9, "error": 0.01}}
    return {"seed": seed, **measured, "dependence": 0.01, "copies": 0.0} | other


def fitted(apart: float, seed: int = 0, **other) -> dict:
    spent = {"fit_seconds": 60.0, "fit_cpu_seconds": 50.0, "rows_per_second": 1234.0, "likelihood": None}
    return run(apart, seed, **spent, versions={"torch": "2.0"}, **other)


RECORD = {
    "data": "covertype",
    "about": "Trees",
    "setup": {"target": "cover", "train": 1000, "held_out": 100, "columns": 13, "minutes": 1.0, "threads": 1},
    "hardware": "a CPU",
    "methods": {
        "sdv": {"runs": [fitted(0.9)]},
        "real": {"runs": [run(0.5)]},
        "tessella": {"runs": [fitted(0.6), fitted(0.7, 1)]},
    },
}


def cells(page: str, method: str) -> list[str]:
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {method} |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_a_line_for_each_method(tmp_path: Path):
    (tmp_path / "peers-covertype.json").write_text(json.dumps(RECORD))
    page = peers_page(tmp_path, tmp_path)
    assert cells(page, "other real rows") == ["0.500 ± 0.004", "0.900 ± 0.010", "0.0100", "0.0000", *["-"] * 4]
    assert cells(page, "`TabularFlow`")[0] == "**0.650 ± 0.071**"  # over runs, rather than the metric's own error
    assert cells(page, "`GaussianCopulaSynthesizer`")[0] == "0.900 ± 0.004"
    assert cells(page, "`GaussianCopulaSynthesizer`")[4:] == ["**1,234**", "60", "50", "-"]
    assert "1,000 training rows, 100 held out" in page


def test_no_records_no_numbers(tmp_path: Path):
    assert peers_page(tmp_path, tmp_path).endswith("No records yet.\n")
