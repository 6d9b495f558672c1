"""A small run on 200 kB of text: it beats counting, is drawn from, and comes back from its folder."""

import json
import re
from pathlib import Path

import pytest
import torch

from tessella.cli.evaluate import evaluate
from tessella.cli.reproduce.texts import text as reproduce_text
from tessella.cli.sample import sample
from tessella.models import SoftmaxTextConfig
from tessella.nets import AttentionConfig
from tessella.paper.effort import Effort
from tessella.paper.pages.texts import NEEDED, texts_section
from tessella.report.surprise import surprise_page
from tessella.runs import TextData, TextRunConfig, is_text_run, load_text_run, train_text
from tessella.training import TrainingConfig

ROOT = Path(__file__).parents[2]
SMALL = ("model.network.width=48", "model.network.layers=1", "training.batch_size=48")
SMALL += ("training.learning_rate=0.02", "training.clip_norm=32", "training.validation_rows=50")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """200 kB of English, as this project writes it: small letters and spaces."""
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/tutorials/*.md"), *ROOT.glob("src/**/*.py")])
    words = re.sub("[^a-z]+", " ", " ".join(page.read_text("utf-8") for page in pages).lower())
    path = tmp_path_factory.mktemp("text") / "own.txt"
    path.write_text(words[:200_000])
    return path


def run(own, folder, dequantizer, steps, **options):
    torch.set_default_dtype(torch.float32)
    effort = Effort(steps=steps, accelerator="cpu", progress=False, threads=1)
    common = {"effort": effort, "out": folder, "results": folder / "results", "length": 32, "preset": "small"}
    change = (*SMALL, *options.pop("change", ()))
    reproduce_text(
        file=own,
        dequantizer=dequantizer,
        test_windows=100,
        samples=4,
        change=change,
        variant="tiny",
        **common,
        **options,
    )
    (path,) = (folder / "results" / "text").glob(f"own-{dequantizer}*.json")
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def exact(own, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exact")
    return run(own, folder, "exact", 250, dim=4), folder


def test_the_exact_way_beats_pairs_of_characters(exact):
    record, _ = exact
    assert set(record) >= NEEDED
    assert record["bpc"] + 3 * record["stderr"] < record["bigram_bpc"] < record["unigram_bpc"]
    assert record["tight"]["spread"] < 1e-3
    assert record["tight"]["from_exact"] < 1e-3
    assert len(record["sample"]) == 500


def test_a_flow_beats_single_characters(own, tmp_path):
    record = run(own, tmp_path, "voronoi", 60, dim=4, change=("model.blocks=1", "model.width=16"))
    assert record["bpc"] + 3 * record["stderr"] < record["unigram_bpc"]
    assert record["bpc"] <= record["elbo_bpc"] < record["initial_bpc"]
    assert record["sandwich"]["value"]["width"] >= 0


def test_a_text_is_printed_while_it_is_drawn(exact, capsys):
    (folder,) = (path for path in exact[1].iterdir() if is_text_run(path))
    sample(folder, characters=40, prompt="the cells ")
    first = capsys.readouterr().out
    assert first.startswith("the cells ")
    assert len(first) == 10 + 40 + 1
    sample(folder, characters=40, prompt="the cells ")
    assert capsys.readouterr().out == first
    with pytest.raises(ValueError, match="text: got byte b'X' at place 0"):
        sample(folder, prompt="X")
    with pytest.raises(ValueError, match="given: got it for the text model"):
        sample(folder, given={"a": "b"})
    with pytest.raises(ValueError, match="prompt: got it for the rows of"):
        sample(exact[1], prompt="a")


def test_evaluation_says_what_the_record_says(exact, capsys, own, tmp_path):
    record, out = exact
    (folder,) = (path for path in out.iterdir() if is_text_run(path))
    evaluate(folder, rows=100, audit=True, record=tmp_path / "record.json")
    assert f"{record['bpc']:.4f} +- {record['stderr']:.4f} bits per character" in capsys.readouterr().out
    assert json.loads((tmp_path / "record.json").read_text())["bpc"] == pytest.approx(record["bpc"], rel=1e-5)
    evaluate(folder, data=own, rows=5)


def test_surprise_is_the_likelihood_in_bits(exact, own):
    (folder,) = (path for path in exact[1].iterdir() if is_text_run(path))
    loaded, words = load_text_run(folder), own.read_text()[:100]
    bits = loaded.surprise(words)
    window = loaded.alphabet.encode(words[:32])[None]
    assert len(bits) == 100
    assert bits[:32].sum().item() == pytest.approx(-loaded.model.log_prob(window).item() / 0.6931472, rel=1e-5)
    assert loaded.surprise(words[:60] + "zq" + words[60:])[60:62].mean() > bits.mean()
    page = surprise_page("<b>" + words, [0.0] * 3 + bits.tolist())
    assert "<b>" not in page
    assert len(re.findall("<span ", page)) == 103
    with pytest.raises(ValueError, match="bits: got 1 numbers for 2 characters"):
        surprise_page("ab", [1.0])


def test_a_run_continues_where_it_stopped(own, tmp_path):
    """Also under a time budget, of which the trial is a part: the plan is that of the first call."""
    torch.set_default_dtype(torch.float32)
    training = TrainingConfig(
        steps=4, batch_size=8, accelerator="cpu", threads=1, progress=False, time_budget=2.0, validation_rows=8
    )
    config = TextRunConfig(TextData(str(own), 16, 8), SoftmaxTextConfig(AttentionConfig(8, 1, 4)), training)
    text = config.data.load()
    first, result = train_text(config, text, tmp_path / "run", validations=2)
    assert first.config.training.time_budget < 2
    again, same = train_text(config, text, tmp_path / "run", validations=2)
    assert (again.config, same.steps, same.best_validation) == (first.config, result.steps, result.best_validation)


def test_the_page_orders_methods_beside_published_values(exact, tmp_path):
    record, _ = exact
    (tmp_path / "text").mkdir()
    page = texts_section(tmp_path, tmp_path)
    assert "| Voronoi, D = 8 | 1.36 ± 0.00 | - |" in page
    assert "| binary argmax | 1.42 | - |" in page
    made = record | {"data": "text8", "dim": 8, "preset": "best", "bpc": 1.355, "stderr": 0.004}
    made.pop("variant")
    (tmp_path / "text" / "a.json").write_text(json.dumps(made))
    (tmp_path / "text" / "b.json").write_text(json.dumps(made | {"network": "lstm", "method": "ordinal", "dim": None}))
    page = texts_section(tmp_path, tmp_path)
    assert "| disjoint mixture over the cells, D = 8 | - | 1.355 ± 0.004 | exact | - |" in page
    assert "| ordinal, LSTM | - | 1.355 ± 0.004 |" in page
    assert "Here, the lowest first" not in page
    for name, dim, bits in (("b2", 2, 1.41), ("b8", 8, 1.38)):
        (tmp_path / "text" / f"{name}.json").write_text(
            json.dumps(made | {"method": "voronoi", "dim": dim, "bpc": bits})
        )
    page = texts_section(tmp_path, tmp_path)
    assert "Here, the lowest first: Voronoi, D = 8 (1.380), Voronoi, D = 2 (1.410). Published: Voronoi, D = 8" in page
    assert "pictures/text-characters.png" in page
    (tmp_path / "text" / "c.json").write_text("{}")
    with pytest.raises(ValueError, match=r"c.json: no bigram_bpc, bpc"):
        texts_section(tmp_path, tmp_path)
