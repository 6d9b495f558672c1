"""`tessella results`: pages and pictures from records, and nothing but from records."""

import json
import math
from pathlib import Path

import pytest

from tessella.cli.reproduce.tables import tables
from tessella.cli.results import results
from tessella.paper.effort import Effort
from tessella.paper.pages.results import ablations_page, results_page

ROOT = Path(__file__).parents[2]


def record(data="nursery", method="voronoi", seed=0, value=9.6, **other) -> dict:
    """As `tessella reproduce tables` writes it."""
    exact = method in ("independent", "chow-liu", "mixture", "transformer", "discrete-flow", "blocks")
    trained = method not in ("independent", "chow-liu", "mixture")
    start = [[0.5 * 2**i, value + 6 / (1 + i)] for i in range(12)]
    made = {
        "data": data,
        "simulated": False,
        "partial": None,
        "method": method,
        "preset": "best",
        "density": None if exact else "token",
        "parameters": 1234,
        "steps": 5000,
        "seconds": 240.0,
        "stopped": "steps",
        "initial_nll": value + 6 if trained else None,
        "best_step": 4800 if trained else None,
        "validation_nll": value + 0.02,
        "curve": start if trained else start[-1:],
        "model": {"groups": 5} if method == "blocks" else {} if exact else {"base": "gaussian", "blocks": 8},
        "training": {"steps": 5000} if trained else None,
        "exact": exact,
        "test_rows": 1296,
        "test_rows_available": 1296,
        "elbo_nll": value if exact else value + 0.5,
        "iw_nll": value,
        "iw_samples": 0 if exact else 100,
        "stderr": 0.004,
        "iw_curve": [] if exact else [[s, value + 0.5 / math.sqrt(s)] for s in (1, 3, 10, 30, 100, 300)],
        "entropy_floor": {"nursery": 9.4696, "mushroom": 9.0026}.get(data),
        "command": "tessella reproduce tables",
        "commit": "0123456789ab",
        "hardware": "NVIDIA H200; a CPU",
        "seed": seed,
    }
    return made | other


SHARED = "NVIDIA H200; a CPU, 4 cores; 3 runs at once"
SPEED = {
    "data": "mushroom",
    "variables": 21,
    "rows": [1, 100],
    "hardware": "NVIDIA H200; a CPU",
    "measured": [
        {"method": "voronoi", "preset": "affine", "rows_per_second": [40.0, 4_000.0], "passes": 8},
        {"method": "transformer", "preset": "best", "rows_per_second": [9.0, 900.0], "passes": 21},
    ],
}


def write(folder: Path, *records: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, one in enumerate(records):
        (folder / f"{i}.json").write_text(json.dumps(one))


def line(page: str, section: str, method: str) -> list[str]:
    """The cells of a method's line in a section."""
    rows = page.split(f"## {section}\n")[1].split("\n## ")[0].splitlines()
    return next(cells for row in rows if (cells := [cell.strip() for cell in row.split("|")])[1:2] == [method])


@pytest.fixture
def folder(tmp_path) -> Path:
    write(
        tmp_path / "results" / "tables",
        record(value=9.60),
        record(value=9.70, seed=1),
        record(method="transformer", value=9.48),
        record(method="independent", value=9.47, stderr=0.001),
        record("forests", "simplex", value=15.0, test_rows=10_000, test_rows_available=58_102, hardware=SHARED),
        record("pokerhands", simulated=True, partial="simulated", value=19.7),
    )
    return tmp_path / "results"


def test_the_page_says_what_was_measured_and_no_more(folder, tmp_path):
    page = results_page(folder, tmp_path / "docs")
    voronoi = line(page, "Nursery", "Voronoi")
    assert voronoi[2] == "9.27 ± 0.04 (**not valid**)"
    assert voronoi[3] == "9.650 ± 0.071 (2 seeds)"
    assert voronoi[4:9] == ["IW-100 (ELBO 10.15)", "unknown", "15.650", "5.980", "8"]
    assert voronoi[10:12] == ["4.0 min, 5,000 steps", "NVIDIA H200"]
    assert voronoi[12] == "[seed 0](../results/tables/0.json), [seed 1](../results/tables/1.json)"
    assert line(page, "Nursery", "independent")[3:5] == ["**9.470 ± 0.001**", "exact"]
    assert line(page, "Nursery", "causal transformer")[2:4] == ["-", "9.480 ± 0.004"]
    assert line(page, "Nursery", "causal transformer")[5:9] == ["-", "15.480", "5.980", "8"]  # columns
    assert line(page, "Nursery", "independent")[5:8] == ["-", "-", "-"]
    assert line(page, "Forests", "simplex")[11] == "NVIDIA H200, 3 runs at once"
    assert line(page, "Nursery", "mixture of categoricals")[2:13] == ["-"] * 11
    assert line(page, "Connect4", "Voronoi")[2:4] == ["12.92 ± 0.07", "-"]
    assert "Test rows: 10,000 of 58,102." in page
    assert "Rows: simulated; published values are for" in page
    assert page.count("**not valid**") == 3  # explained, in the summary, in the section
    assert "published architecture" not in page


def test_rows_of_the_published_architecture_appear_when_run(folder, tmp_path):
    write(folder / "tables", record(preset="paper", value=9.9))
    assert line(results_page(folder, tmp_path), "Nursery", "Voronoi, published architecture")[2:4] == [
        "-",
        "9.900 ± 0.004",
    ]


def summary(page: str, row: str, column: int) -> str:
    """A cell of the table at the top."""
    found = next(line for line in page.splitlines() if line.startswith(f"| {row} |"))
    return found.split("|")[column + 1].strip()


def test_a_start_that_nothing_was_learned_from_is_not_called_voronoi(tmp_path):
    """The weights of a flow from before the first update are those of the mixture it began as."""
    start = {"preset": "mixture-start", "best_step": 0, "initial_nll": 9.05, "validation_nll": 9.05}
    write(
        tmp_path / "tables",
        record("mushroom", value=9.06, **start),
        record("mushroom", preset="affine", value=10.5),
        record("mushroom", preset="paper", value=11.7),
        record("mushroom", "blocks", value=9.2),
    )
    page = results_page(tmp_path, tmp_path)
    assert line(page, "Mushroom", "mixture of categoricals, seen through cells")[3] == "**9.060 ± 0.004**"
    assert line(page, "Mushroom", "mixture of categoricals, seen through cells")[6:8] == ["9.050", "0.000"]
    assert "Voronoi, from a fitted mixture" not in page
    assert summary(page, "Voronoi, learned through the cells, here", 3) == "10.500"
    assert summary(page, "Voronoi, learned through the cells, here", 4) == "-"
    assert line(page, "Mushroom", "block-autoregressive mixture of categoricals")[8] == "5"
    write(tmp_path / "tables", record("mushroom", value=9.06, **start | {"best_step": 100, "validation_nll": 9.04}))
    assert "Voronoi, from a fitted mixture" in results_page(tmp_path, tmp_path)


def test_slack_stands_beside_bounds(tmp_path):
    sandwich = {"name": "sandwich", "passed": False, "message": "", "value": {"width": 0.234, "unexplained": 0.3}}
    write(tmp_path / "tables", record(sandwich=sandwich))
    assert line(results_page(tmp_path, tmp_path), "Nursery", "Voronoi")[5] == "0.23, 30%"


def test_rendering_twice_gives_the_same_files(folder, tmp_path):
    (folder / "sampling-speed.json").write_text(json.dumps(SPEED))
    write(folder / "ablations", record(ablation="size", variant="small"))
    seen = []
    for _ in range(2):
        results(folder, tmp_path / "docs")
        seen.append({path: path.read_bytes() for path in sorted((tmp_path / "docs").rglob("*.*"))})
    assert seen[0] == seen[1]
    names = {path.name for path in seen[0]}
    assert names == {
        "results.md",
        "ablations.md",
        "peers.md",
        "results-time.png",
        "results-importance.png",
        "results-speed.png",
    }


def test_without_records_there_are_pages_of_dashes_and_no_pictures(tmp_path):
    results(tmp_path / "results", tmp_path / "docs")
    assert {path.name for path in (tmp_path / "docs").rglob("*")} == {"results.md", "ablations.md", "peers.md"}
    assert line((tmp_path / "docs" / "results.md").read_text("utf-8"), "Nursery", "Voronoi")[3:13] == ["-"] * 10


def test_ablations_are_grouped_and_sorted_by_validation(tmp_path):
    write(
        tmp_path / "ablations",
        record(ablation="width", variant="width 64", value=9.5, validation_nll=9.8),  # lower only on test rows
        record(ablation="width", variant="width 128", value=9.6),
        record(ablation="cells", variant="random start", value=9.8),
    )
    page = ablations_page(tmp_path, tmp_path)
    assert page.index("## cells") < page.index("## width")
    assert page.index("| width 128 |") < page.index("| width 64 |")
    assert "[9.600 ± 0.004](ablations/1.json)" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [({"iw_nll": 9.2}, "below the entropy floor"), ({"stderr": None}, "no stderr")],
)
def test_records_that_cannot_be_are_refused(change, message, tmp_path):
    made = {key: value for key, value in (record() | change).items() if value is not None or key == "partial"}
    write(tmp_path / "tables", made)
    with pytest.raises(ValueError, match=message):
        results_page(tmp_path, tmp_path)


def test_reproduce_tables_writes_where_the_page_reads(tmp_path, capsys):
    brief = Effort(steps=1, accelerator="cpu")
    common = {"effort": brief, "test_rows": 50, "out": tmp_path, "results": tmp_path / "results"}
    tables("nursery", "independent", **common)
    tables("nursery", "mixture", **common, change=("model.components=[2]",), ablation="size", variant="2 kinds")
    assert "(exact; entropy floor 9.4696)" in capsys.readouterr().out
    page = results_page(tmp_path / "results", tmp_path)
    assert "[seed 0](results/tables/nursery-independent-seed0.json)" in page
    assert "ablations/size-2-kinds-nursery-mixture-seed0.json" in ablations_page(tmp_path / "results", tmp_path)
    with pytest.raises(ValueError, match="expected a group and a variant together"):
        tables("nursery", "mixture", **common, change=("model.components=[2]",))


@pytest.mark.parametrize(("name", "page"), [("results.md", results_page), ("ablations.md", ablations_page)])
def test_committed_pages_are_what_the_records_give(name, page):
    committed = (ROOT / "docs" / name).read_text("utf-8")
    assert committed == page(ROOT / "results", ROOT / "docs"), f"docs/{name}: run `tessella results`"
