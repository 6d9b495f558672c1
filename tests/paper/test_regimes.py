"""When cells help: the density of the modes is what they are drawn from; records are answers, and pages show them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tessella.cli.reproduce.regimes import when_cells_help
from tessella.densities import DisjointMixtureConfig
from tessella.paper import regimes
from tessella.paper.figures.regimes import draw_regimes
from tessella.paper.modes import Modes
from tessella.paper.pages.mixtures import filled, mixtures_page
from tessella.paper.pages.regimes import Answers, regimes_tables
from tessella.paper.regimes import CELLS, DIMS, MODES, Question, answer, grid, record_path, study

ROOT = Path(__file__).parents[2]
TINY = DisjointMixtureConfig(blocks=1, component_blocks=1, width=8, layers=1, squashing=8.0)


@pytest.fixture(autouse=True)
def single_precision():
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(regimes, "BLOCKS", TINY)
    monkeypatch.setattr(regimes, "ROWS", {"train": 2_000, "validation": 500, "test": 2_000})
    monkeypatch.setattr(regimes, "TRAINING", replace(regimes.TRAINING, warmup_steps=5, batch_size=256))


@pytest.mark.parametrize("bent", [False, True], ids=["gaussian", "bent"])
def test_the_density_is_that_of_the_rows(bent):
    """Mass one, and the mean log-density of draws is that of the density itself."""
    data = Modes(dim=2, modes=5, separation=4.0, bent=bent)
    side = torch.linspace(-25, 25, 601, dtype=torch.float64)
    log_p = data.log_prob(torch.cartesian_prod(side, side))
    cell = float(side[1] - side[0]) ** 2
    assert float(log_p.exp().sum()) * cell == pytest.approx(1, abs=1e-4)
    entropy = -float((log_p.exp() * log_p).sum()) * cell
    drawn = -data.log_prob(data.rows(20_000, torch.Generator().manual_seed(0)))
    assert float(drawn.mean()) == pytest.approx(entropy, abs=4 * float(drawn.std()) / 20_000**0.5)


@pytest.mark.parametrize("dim", [2, 32])
def test_neighbours_are_as_far_apart_as_asked(dim):
    means, factors, _ = Modes(dim, modes=20, separation=6.0).parts()
    gaps = torch.cdist(means, means).fill_diagonal_(torch.inf).amin(-1)
    assert float(gaps.mean()) == pytest.approx(6.0)
    assert torch.allclose(torch.linalg.det(factors).abs(), torch.ones(20, dtype=torch.float64))


def test_the_grid_asks_every_question_once_and_has_controls():
    questions = grid()
    assert len({question.name for question in questions}) == len(questions)
    asked = set(questions)
    for question in questions:
        assert replace(question, cells=0) in asked
    assert {question.cells for question in questions} == {0, *CELLS}
    assert all(Question(Modes(dim, modes, 8.0), 64, 1_000) in asked for dim in DIMS for modes in MODES)


def test_cells_help_where_modes_are_far_apart(tiny, tmp_path):
    """The divergence is not negative, and lower with a cell for each mode than without cells."""
    data = Modes(dim=2, modes=8, separation=16.0)
    without, cells = (answer(Question(data, k, steps=60), "cpu", tmp_path) for k in (0, 8))
    assert 0 < cells["kl"] < without["kl"]
    assert len(cells["tried"]) == 2
    assert cells["kl_stderr"] < cells["stderr"]  # of differences to the truth on the same rows


def test_what_has_a_record_is_not_asked_again(tiny, tmp_path, monkeypatch):
    known, new = (Question(Modes(2, 2, 8.0), k, steps=2) for k in (0, 2))
    path = record_path(tmp_path, known)
    path.parent.mkdir()
    path.write_text("{}")
    monkeypatch.setattr(regimes, "get_context", lambda kind: Serial)
    answered = dict(study([known, new], tmp_path / "runs", tmp_path, 1, 0, "cpu"))
    assert list(answered) == [new]
    record = json.loads(record_path(tmp_path, new).read_text())
    assert record == answered[new]
    assert {"kl", "command", "commit", "hardware", "seed", "time", "training"} <= set(record)


class Serial:
    """A pool without processes, which would not see the fixtures."""

    def __init__(self, *_):
        pass

    Pool = classmethod(lambda cls, *_: cls())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def imap_unordered(self, function, work):
        class Answers:
            left = iter(work)

            def next(self, timeout=None):
                return function(next(self.left))

        return Answers()


def some_records(folder: Path) -> None:
    for question in grid():
        kl = 1.0 + 0.1 * question.data.dim - (0.5 if question.cells else 0.0)
        record = {"kl": kl, "kl_stderr": 0.01, "hardware": "abacus"}
        path = record_path(folder, question)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record))


def test_tables_and_picture_show_the_records(tmp_path):
    assert regimes_tables(tmp_path, tmp_path) == "No records yet.\n"
    some_records(tmp_path)
    text = regimes_tables(tmp_path, tmp_path)
    assert "| 2 | 1.20 / **0.70** | 1.20 / **0.70** |" in text
    assert "on abacus" in text
    assert Answers(tmp_path).gain(32, 8, 2.0, 1_000) == pytest.approx(0.5)
    assert Answers(tmp_path).gain(32, 8, 3.0, 1_000) is None
    assert draw_regimes(tmp_path / "regimes.png", tmp_path).stat().st_size > 10_000


def test_differences_within_their_errors_are_not_bold(tmp_path):
    for cells, kl in ((0, 1.0), (64, 0.99)):
        path = record_path(tmp_path, Question(Modes(2, 8, 8.0), cells, 1_000))
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"kl": kl, "kl_stderr": 0.01, "hardware": "abacus"}))
    assert Answers(tmp_path).pair(2, 8, 8.0, 1_000) == "1.00 / 0.99"


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="0 parts marked 'x'"):
        filled("nothing", "x", "text")


def test_the_committed_page_is_what_the_records_give():
    page = (ROOT / "docs" / "mixtures.md").read_text("utf-8")
    assert page == mixtures_page(ROOT / "results", ROOT / "docs"), "docs/mixtures.md: run `tessella results`"


def test_a_part_of_the_grid_can_be_asked(monkeypatch):
    asked = []
    monkeypatch.setattr(regimes, "study", lambda questions, *rest: asked.extend(questions) or ())
    when_cells_help(dims=(2, 8), cells=(0, 8), steps=1_000)
    assert asked == [q for q in grid() if q.data.dim in (2, 8) and q.cells in (0, 8) and q.steps == 1_000]
    with pytest.raises(ValueError, match=r"dims, cells: got 0, \(3,\)"):
        when_cells_help(dims=(3,))
