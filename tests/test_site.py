"""The documentation site: what its pages show, and where their links lead. `make docs` builds it."""

import importlib
import inspect
from pathlib import Path

import pytest

import tessella
from extensions.docstrings import describe, escaped, first_line
from extensions.links import relinked

ROOT = Path(__file__).parent.parent
REFERENCE = sorted((ROOT / "docs" / "api").glob("*.md"))


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.stem)
def test_a_page_of_the_reference_is_a_package(page: Path):
    assert f".. automodule:: tessella.{page.stem}\n" in page.read_text()
    assert importlib.import_module(f"tessella.{page.stem}").__all__


def test_the_reference_has_everything_at_the_front_door():
    shown = {name for page in REFERENCE for name in importlib.import_module(f"tessella.{page.stem}").__all__}
    assert set(tessella.__all__) - {"__version__"} <= shown


SOURCE = "https://example.org/source"


@pytest.mark.parametrize(
    ("file", "link", "expected"),
    [
        ("docs/results.md", "../results/tables", f"{SOURCE}/tree/main/results/tables"),
        ("docs/results.md", "../pyproject.toml", f"{SOURCE}/blob/main/pyproject.toml"),
        ("docs/tutorials/01-your-table.md", "../how-to-choose.md", "../how-to-choose.md"),
        ("docs/tutorials/01-your-table.md", "../../CONTRIBUTING.md", "/contributing.md"),
        ("docs/data.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/data.md", "#splits", "#splits"),
        ("CONTRIBUTING.md", "docs/data.md", "/data.md"),
        ("CONTRIBUTING.md", "ARCHITECTURE.md", "/architecture.md"),
        ("benchmarks/README.md", "../results", f"{SOURCE}/tree/main/results"),
    ],
)
def test_links_lead_to_pages_or_to_the_source(file: str, link: str, expected: str):
    text = relinked(f"see [here]({link}), and `f[0](x)`", ROOT / file, ROOT / "docs", SOURCE)
    assert text == f"see [here]({expected}), and `f[0](x)`"


def test_a_first_line_is_a_block_of_mathematics_or_code():
    assert first_line("y = x exp(s): stretched.") == [r".. math:: y = x \exp(s)", "", "Stretched.", ""]
    assert first_line("(*batch, D) -> (*batch).")[2] == "   (*batch, D) -> (*batch)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(*batch, D), |x|, weights_", r"(\*batch, D), \|x\|, weights\_"),
        ("`Box`, `a == b` and `fit()`", ":py:obj:`Box`, ``a == b`` and :py:obj:`fit()`"),
        ("x_k in R^D, learn_scale", r"\ :math:`x_k`\  in \ :math:`\mathbb{R}^D`\ , learn_scale"),
        ("one ` alone", r"one \` alone"),
        ("L. Dinh, 2019", r"L\. Dinh, 2019"),
    ],
)
def test_plain_text_means_what_it_says(text: str, expected: str):
    assert escaped(text) == expected


def test_a_registry_lists_its_entries():
    from tessella.bijections import AFFINE
    from tessella.densities import BASES

    lines = list(describe(BASES))
    assert [line.split("``")[1].strip("'") for line in lines[2:]] == list(BASES)
    assert any(":math:`" in line for line in lines)
    assert list(describe(AFFINE)) == first_line(inspect.getdoc(type(AFFINE)).splitlines()[0])
