"""The Python examples of README and docs run as they stand, and what the pages point to exists."""

import json
import re
from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from torch.distributions import Distribution

from benchmarks.defaults import line
from tessella.dequantizers import CellsConfig
from tessella.paper.pages.peers import peers_headline
from tessella.paper.pages.results import headline

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)  # a block, and what it prints
NUMBER = re.compile(r"-?\d+\.\d+|-?\d+")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)\)")
EXAMPLES = {page: blocks for page in PAGES if (blocks := CODE.findall(page.read_text()))}


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path, monkeypatch, capsys):
    """The blocks of a page run in order and share their names, as a reader would type them."""
    torch.set_default_dtype(torch.float32)
    monkeypatch.chdir(tmp_path)
    import zuko  # noqa: F401  # it switches the checks of all distributions off when it is imported, and Pyro on

    monkeypatch.setattr(Distribution, "_validate_args", Distribution._validate_args)
    names: dict[str, object] = {}
    with patch.dict(CellsConfig.kinds):  # a page may register its own
        for block, shown in EXAMPLES[page]:
            exec(compile(block, str(page), "exec"), names)
            printed = capsys.readouterr().out
            if shown:
                assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
                assert numbers(printed) == pytest.approx(numbers(shown), rel=0.05, abs=0.03)


def numbers(text: str) -> list[float]:
    """Those of a text, in order: other processors round otherwise, and training makes more of it."""
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md")], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path):
    for target in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_readme_shows_what_the_records_say():
    readme, more = ((ROOT / page).read_text() for page in ("README.md", "benchmarks/README.md"))
    assert headline(ROOT / "results") in readme
    assert peers_headline(ROOT / "results") in readme
    for data in ("connect4", "covertype", "mushroom"):
        assert line(json.loads((ROOT / "results" / f"defaults-{data}.json").read_text()), digits=2) in readme
    for path in ROOT.glob("results/defaults-*.json"):
        assert line(json.loads(path.read_text()), digits=3) in more
