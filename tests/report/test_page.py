"""The page is one well-formed file, says what the overview says, and lets nothing in the data become markup."""

import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.report.overviews_for_tests import evil_overview

from tessella.cli.report import report
from tessella.report.charts import SHORT, short
from tessella.report.page import page, write_page
from tessella.report.wording import SPACE, verdict

ALONE = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Elements, attributes and text, as a browser would find them; complains about what is not closed."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.count: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.count[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in ALONE:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def overview() -> dict[str, Any]:
    return evil_overview()


@pytest.fixture
def read(overview) -> Reader:
    return Reader(page(overview, "model"))


def test_it_is_well_formed(overview):
    """As HTML and as XML."""
    text = page(overview, "model")
    assert text.startswith("<!DOCTYPE html>")
    assert ElementTree.fromstring(text).tag == "html"
    Reader(text)


def test_it_needs_nothing_else(overview, read):
    text = page(overview, "model")
    assert not [each for each in read.attributes if each[1] in {"src", "href", "srcset", "data", "action"}]
    assert read.count["link"] == read.count["img"] == read.count["iframe"] == 0
    assert all(word not in text for word in ("@import", "url(", "http:", "https:", "fetch(", "XMLHttpRequest"))


def test_nothing_in_the_data_becomes_markup(overview, read):
    assert read.count["script"] == read.count["style"] == 1
    assert "<script>alert('x')</script>" in read.text
    assert '"><img src=x onerror=alert(1)>' in read.text
    assert "</style></title>" in read.text
    assert "\0" not in read.text
    assert "a\ufffdb" in read.text
    assert not [each for each in read.attributes if each[1].startswith("on")]


def test_every_section_is_there(read):
    anchors = [value for _, name, value in read.attributes if name == "id"]
    assert anchors == ["likelihood", "training", "columns", "pairs", "cells", "odd", "samples", "table", "use", "read"]


def test_what_columns_tell_is_shown_where_it_is_known(overview):
    overview["telling"] = {"names": ["<a>", "b"], "share": [[0.0, 0.25], [0.004, 0.0]], "together": [0.5, 0.75]}
    read = Reader(page(overview, "m"))
    assert ("section", "id", "telling") in read.attributes
    assert "Nearest to a function of the rest is b: 75.0%" in read.text
    assert "b<a> 25%75%<a>50%" in "".join(read.text.split("\n"))  # most first; 0.4% is not worth a word


def test_what_cannot_be_shown_is_left_out(overview):
    overview["cell_maps"], overview["association"]["names"] = [], ["only"]
    anchors = [value for _, name, value in Reader(page(overview, "m")).attributes if name == "id"]
    assert "cells" not in anchors
    assert "pairs" not in anchors


def test_the_figures_are_those_of_the_overview(overview, read):
    text = read.text.replace(SPACE, " ")
    for each in overview["likelihoods"]:
        assert f"{each['nll']:.2f} ± {each['error']:.2f}" in text
    for row in overview["odd_rows"]:
        assert f"row {row['row']}" in text
    for column in overview["columns"]:
        assert column["name"] in text


def race(overview: dict[str, Any], lead: float, error: float = 0.05) -> dict[str, Any]:
    """The flow ahead of the mixture of categoricals by so much, and of the others by 2 nats more."""
    for extra, each in zip((0, 0, 2, 2, 2), overview["likelihoods"], strict=True):
        own = each is overview["likelihoods"][0]
        each |= {"nll": 10.0 if own else 10 + lead + extra, "error": 0.1}
        each |= {"lead": 0.0 if own else lead + extra, "lead_error": 0.0 if own else error}
    return overview


@pytest.mark.parametrize(
    ("lead", "title", "story"),
    [
        (
            1.0,
            "TabularFlow predicts these rows best",
            "2.7 times likelier under it than under the mixture of categoricals",
        ),
        (
            0.08,
            "TabularFlow and the mixture of categoricals predict these rows about equally well",
            "no clear difference",
        ),
        (
            -0.08,
            "TabularFlow and the mixture of categoricals predict these rows about equally well",
            "no clear difference",
        ),
        (
            -1.0,
            "Here the mixture of categoricals predicts rows better than TabularFlow",
            "2.7 times likelier under the mixture of categoricals",
        ),
    ],
)
def test_the_headline_says_who_won(overview, lead, title, story):
    said = verdict(race(overview, lead))
    assert said[0].startswith(title)
    assert story in said[1]
    assert f"at most 10.00{SPACE}±{SPACE}0.10 nats per row" in said[1]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("causal transformer", "the causal transformer predicts"),
        ("Chow-Liu tree", "the Chow-Liu tree predicts"),
        ("mixture of categoricals", "the mixture of categoricals predicts"),
        ("independent columns", "independent columns predict"),
    ],
)
def test_the_headline_is_grammatical(overview, name, says):
    race(overview, 1.0)
    for each in overview["likelihoods"]:
        if each["name"] == name:
            each |= {"nll": 9.0, "lead": -1.0}
    assert verdict(overview)[0] == f"Here {says} rows better than TabularFlow"


def test_nobody_is_less_likely_under_independent_columns_that_are_as_good(overview):
    race(overview, 0.0)
    overview["likelihoods"][-1] |= {"nll": 10.0, "lead": 0.005}
    assert "less likely" not in verdict(overview)[1]
    race(overview, 0.0)
    assert "7.4 times less likely" in verdict(overview)[1]


def test_it_says_how_numbers_are_measured(overview, read):
    assert "a density elsewhere" in read.text
    assert "masses on integers" in read.text
    for column in overview["columns"]:
        column["categories"] = column["categories"] or 2
    assert "a density elsewhere" not in Reader(page(overview, "model")).text


def test_a_difference_that_nobody_will_notice_is_called_small(overview):
    title, story = verdict(race(overview, -0.01, error=0.001))
    assert "about equally well" in title
    assert "in favour of the mixture of categoricals: a clear difference, but a small one" in story


def test_validation_rows_are_not_called_unseen(overview):
    assert "that it never saw" in Reader(page(overview, "m")).text
    overview["held_out"] = "validation"
    text = Reader(page(overview, "m")).text
    assert "that it never saw" not in text
    assert "There was no test part" in text


def test_it_is_written_from_a_folder(overview, tmp_path):
    (tmp_path / "overview.json").write_text(json.dumps(overview))
    out = write_page(tmp_path, tmp_path / "new" / "report.html", "mine")
    assert out.read_text() == page(overview, "mine")
    assert "TabularFlow.load(&#x27;mine&#x27;)" in out.read_text()


def test_the_command_writes_beside_the_model(overview, tmp_path, capsys):
    (tmp_path / "overview.json").write_text(json.dumps(overview))
    report(tmp_path)
    assert capsys.readouterr().out.strip() == str(tmp_path / "report.html")
    report(tmp_path, tmp_path / "other.html")
    assert (tmp_path / "other.html").read_text() == (tmp_path / "report.html").read_text()


def test_a_folder_without_an_overview_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no overview\.json there; expected a folder"):
        write_page(tmp_path, tmp_path / "report.html")
    (tmp_path / "overview.json").write_text('{"format": 0}')
    with pytest.raises(ValueError, match="got format 0"):
        write_page(tmp_path, tmp_path / "report.html")


def test_long_names_are_cut():
    assert short("a" * SHORT) == "a" * SHORT
    assert len(short("a" * 100)) == SHORT


def test_it_is_said_why_odd_rows_have_no_reasons(overview):
    assert "No columns are named" not in page(overview, "model")
    plain = [{**row, "reasons": []} for row in overview["odd_rows"]]
    assert "No columns are named" in page({**overview, "odd_rows": plain}, "model")
