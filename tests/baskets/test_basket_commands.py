"""`tessella baskets`: from a file to a model, a page, scores, what comes next, and new baskets."""

import csv
import json
import sys
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from test_set_flow import shopping

from tessella.cli import main


def run(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["tessella", "baskets", *map(str, arguments)])
    main()
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same baskets in every form."""
    folder, baskets = tmp_path_factory.mktemp("baskets"), shopping(300)
    rows = [(str(i + 1), str(item)) for i, basket in enumerate(baskets) for item in basket]
    (folder / "two.csv").write_text("basket,item\n" + "".join(f"{name},{item}\n" for name, item in rows))
    pa.parquet.write_table(
        pa.table(dict(zip(("basket", "item"), zip(*rows, strict=True), strict=True))), folder / "two.parquet"
    )
    (folder / "blanks.dat").write_text("".join(" ".join(map(str, basket)) + " \n" for basket in baskets))
    (folder / "commas.txt").write_text("".join(", ".join(map(str, basket)) + "\n" for basket in baskets))
    return folder


@pytest.fixture(scope="module")
def model(files):
    with pytest.MonkeyPatch.context() as patch:
        arguments = ["fit", files / "two.csv", "--out", files / "model", "--device", "cpu", "--threads", "1", "--json"]
        patch.setattr(sys, "argv", ["tessella", "baskets", *map(str, arguments)])
        main()
    return files / "model"


def test_fit_writes_a_model_and_a_page(model):
    page = (model / "report.html").read_text()
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))  # well-formed
    overview = json.loads((model / "overview.json").read_text())
    own, independent = overview["likelihoods"]
    assert (overview["model"], own["exact"]) == ("mixture", True)
    assert own["nll"] < independent["nll"]
    assert sum(overview["sizes"]["real"]) == pytest.approx(1)
    assert np.abs(np.subtract(overview["sizes"]["real"], overview["sizes"]["sampled"])).max() < 0.1
    assert f"mixture of {overview['components']} kinds" in page
    assert not list(model.glob("*.part"))


def test_a_map_of_items_is_drawn_where_there_are_some():
    from tessella.report.charts import item_map

    found = {"labels": ["a", "<b>"], "points": [[0, 1], [2, 3]], "shares": [0.5, 0.1], "named": 1}
    drawn = ElementTree.fromstring(item_map(found))
    assert len(drawn.findall("circle")) == 2
    assert [text.text for text in drawn.findall("text")] == ["a"]


@pytest.mark.parametrize("name", ["two.csv", "two.parquet", "blanks.dat", "commas.txt"])
def test_every_form_of_file_has_the_same_scores(model, files, tmp_path, monkeypatch, capsys, name):
    out = tmp_path / "scores.csv"
    run(monkeypatch, capsys, "score", model, files / name, "--out", out)
    with out.open() as file:
        scores = {row["basket"]: float(row["log_likelihood"]) for row in csv.DictReader(file)}
    said = json.loads(run(monkeypatch, capsys, "score", model, files / "two.csv", "--json"))
    assert list(scores) == [str(i) for i in range(1, 301)]
    assert np.mean(list(scores.values())) == pytest.approx(said["mean_log_likelihood"], abs=1e-6)


def test_complete_anomalies_and_sample(model, files, tmp_path, monkeypatch, capsys):
    found = json.loads(run(monkeypatch, capsys, "complete", model, "a", "b", "--n", "2", "--json"))
    assert found[0]["item"] == "c"
    assert len(run(monkeypatch, capsys, "complete", model).splitlines()) == 5
    odd = json.loads(run(monkeypatch, capsys, "anomalies", model, files / "blanks.dat", "--top", "3", "--json"))
    assert [row["score"] for row in odd] == sorted(row["score"] for row in odd)
    assert "(+" in run(monkeypatch, capsys, "anomalies", model, files / "two.csv", "--per-item")
    assert run(monkeypatch, capsys, "sample", model, "--baskets", "4").startswith('"basket","item"\n0,')
    run(monkeypatch, capsys, "sample", model, "--baskets", "4", "--out", tmp_path / "new.csv")
    assert "mean log-likelihood" in run(monkeypatch, capsys, "score", model, tmp_path / "new.csv")


def test_unseen_items_in_a_file(model, tmp_path, monkeypatch, capsys):
    path = tmp_path / "new.txt"
    path.write_text("a b zebra\nzebra\n\nd e\n")
    with pytest.raises(SystemExit):
        run(monkeypatch, capsys, "score", model, path)
    assert "'zebra', which training did not see" in capsys.readouterr().err
    run(monkeypatch, capsys, "score", model, path, "--unseen", "skip", "--out", tmp_path / "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[2] == '"2",'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("three.csv", "a,b,c\n1,2,3\n", "got 3 columns"),
        ("gap.csv", "basket,item\n1,x\n2,\n", "empty cell"),
        ("none.txt", "\n\n", "got no baskets"),
    ],
)
def test_files_that_hold_no_baskets(tmp_path, monkeypatch, capsys, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit):
        run(monkeypatch, capsys, "fit", tmp_path / name, "--out", tmp_path / "model")
    assert message in capsys.readouterr().err
