"""The Python examples of README and docs run as they stand, and what the pages point to exists."""

import re
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)\)")
EXAMPLES = [(page, block) for page in PAGES for block in CODE.findall(page.read_text())]


@pytest.mark.parametrize(("page", "code"), EXAMPLES, ids=[f"{page.name}-{i}" for i, (page, _) in enumerate(EXAMPLES)])
def test_examples_run(page: Path, code: str):
    torch.set_default_dtype(torch.float32)
    exec(compile(code, str(page), "exec"), {})


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md")], ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path):
    for target in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
