"""Links of a page to files of the repository that are not on the site: they lead to where its source lives."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)[^)\s#]+(?=[)#])")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("source_url", "", "env")
    app.connect("source-read", read)
    app.connect("include-read", include)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read(app: "Sphinx", page: str, text: list[str]) -> None:
    """A page of the site."""
    text[0] = relinked(text[0], Path(app.env.doc2path(page)), Path(app.srcdir), app.config.source_url)


def include(app: "Sphinx", path: Path, page: str, text: list[Any]) -> None:
    """A file that a page consists of, such as ARCHITECTURE.md; its links begin where it lies."""
    text[0] = relinked(text[0], Path(app.srcdir, path), Path(app.srcdir), app.config.source_url)


def relinked(text: str, file: Path, site: Path, source: str) -> str:
    """Links of a Markdown file, seen from the site.

    A link to a file in `site` leads there, one to a file with a page of its own (ARCHITECTURE.md has architecture.md)
    to that page, and one to any other file or folder of the repository to its source.
    """
    site = site.resolve()

    def target(link: re.Match[str]) -> str:
        there = (file.parent / link.group()).resolve()
        page = site / there.name.lower()
        if not there.exists() or not there.is_relative_to(site.parent):
            return link.group()
        if there.is_relative_to(site):
            return link.group() if file.resolve().is_relative_to(site) else f"/{there.relative_to(site)}"
        if page.is_file() and there.suffix == ".md" and there.parent == site.parent:
            return f"/{page.name}"
        kind = "tree" if there.is_dir() else "blob"
        return f"{source}/{kind}/main/{there.relative_to(site.parent)}"

    return LINK.sub(target, text)
