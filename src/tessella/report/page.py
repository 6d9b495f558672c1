"""The report of a fitted table: one HTML file that needs nothing else."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from tessella.folders import BrokenFolderError, interpreting, read_json, write_whole
from tessella.report import baskets
from tessella.report.markup import Markup, join, tag
from tessella.report.sections import SECTIONS, header
from tessella.report.usage import reading, usage

FILE, FORMAT = "overview.json", 4


def write_page(source: dict[str, Any] | Path, out: Path, model: str = "model") -> Path:
    """Write the page of an overview.

    Args:
        source: the overview as plain data, or the folder whose `overview.json` holds it.
        out: the file to write.
        model: what the page's examples call the model's folder.
    """
    if isinstance(source, dict):
        written = page(source, model)
    else:
        overview = read_overview(source)
        with interpreting(source / FILE):
            written = page(overview, model)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole({out: written.encode()})
    return out


def read_overview(folder: Path) -> dict[str, Any]:
    """The plain data in a model's folder."""
    path = folder / FILE
    if not path.exists():
        raise FileNotFoundError(f"{folder}: no {FILE} there; expected a folder that `tessella fit` made")
    overview = read_json(path)
    if overview.get("format") != FORMAT:
        raise BrokenFolderError(
            f"{path}: got format {overview.get('format')!r:.80}; this version reads format {FORMAT}, "
            "run `tessella fit` again"
        )
    return overview


def page(overview: dict[str, Any], model: str) -> str:
    """The whole document; it is well-formed XML, too."""
    if overview.get("kind") == "baskets":
        parts = [_section(*section) for section in baskets.sections(overview, model)]
        return document("baskets", baskets.header(overview), parts, f"{overview['baskets']:,} baskets", overview)
    sections = [
        _section(anchor, title, words(overview), picture(overview))
        for anchor, title, words, picture in SECTIONS
        if _shown(anchor, overview)
    ]
    sections += [_section(*usage(overview, model)), _section(*reading(overview))]
    return document("a fitted table", header(overview), sections, f"{overview['rows']:,} rows", overview)


def document(what: str, opening: Markup, sections: list[Markup], source: str, overview: dict[str, Any]) -> str:
    """The page around the sections."""
    footer = tag("footer", f"made by tessella {overview['version']} from {source}")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"tessella: report of {what}"),
        tag("style", _asset("page.css")),
    )
    body = tag("body", tag("main", opening, *sections, footer), tag("script", _asset("page.js")))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _shown(anchor: str, overview: dict[str, Any]) -> bool:
    """Pictures of pairs need two columns, pictures of cells a column with a few categories; see also `Telling`."""
    several = len(overview["association"]["names"]) > 1
    needed = {
        "pairs": several,
        "telling": several and overview["telling"] is not None,
        "cells": bool(overview["cell_maps"]),
    }
    return needed.get(anchor, True)


def _section(anchor: str, title: str, words: Markup, picture: Markup) -> Markup:
    return tag("section", tag("div", tag("h2", title), words, class_="words"), tag("div", picture), id=anchor)


def _asset(name: str) -> Markup:
    """A file beside this one; it is ours, and holds none of the characters that XML would read."""
    return join(Markup((files("tessella.report") / name).read_text(encoding="utf-8")))
