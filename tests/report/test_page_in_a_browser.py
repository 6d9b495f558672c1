"""The page in Chromium: nothing sticks out on a phone, and both colour schemes draw something."""

import re
import shutil
import subprocess
from html import escape
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from tests.report.overviews_for_tests import evil_overview

from tessella.report.page import page, write_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]
SCHEMES = {"light": 1, "dark": 0}
PHONE, DESKTOP = 390, 1280

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium executable on the PATH")


@pytest.fixture
def overview() -> dict[str, Any]:
    return evil_overview()


def chromium(folder: Path, file: Path, *options: str) -> str:
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [str(CHROMIUM), *FLAGS, profile, *options, file.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_nothing_sticks_out(overview, tmp_path, width):
    """No wider than its window, with every `details` open; a frame, as Chromium's own window is never this narrow."""
    measure = (
        "<script>for (const each of document.querySelectorAll('details')) each.open = true;"
        "parent.document.body.dataset.widths = innerWidth + ' ' + document.documentElement.scrollWidth;</script>"
    )
    inside = escape(page(overview, "model").replace("</body>", measure + "</body>"))
    file = tmp_path / "frame.html"
    frame = f'<iframe width="{width}" height="900" style="border: 0" srcdoc="{inside}"></iframe>'
    file.write_text(f"<!DOCTYPE html><html><body>{frame}</body></html>", encoding="utf-8")
    found = chromium(tmp_path, file, "--window-size=1600,1000", "--dump-dom")
    window, content = map(int, re.search(r'data-widths="(\d+) (\d+)"', found).groups())
    assert window == width
    assert content <= window


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_both_schemes_are_drawn(overview, tmp_path, scheme, width):
    file, picture = write_page(overview, tmp_path / "page.html"), tmp_path / "page.png"
    options = [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", f"--window-size={width},1600"]
    chromium(tmp_path, file, *options, f"--screenshot={picture}")
    pixels = matplotlib.image.imread(picture)[..., :3]
    assert pixels.shape[:2] == (1600, width)
    paper = pixels[0, 0]
    assert (paper.min() > 0.9) if scheme == "light" else (paper.max() < 0.2)
    drawn = np.abs(pixels - paper).max(-1) > 0.3
    assert 0.01 < drawn.mean() < 0.5
    thirds = [third.mean() for third in np.array_split(drawn, 3)]
    assert min(thirds) > 0.002, "every part of the page holds something"
