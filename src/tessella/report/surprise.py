"""A text whose characters are coloured by how surprising they are, as HTML."""

from collections.abc import Sequence
from math import isfinite

from tessella.report.markup import Markup, join, tag

MOST = 8.0  # bits of the strongest colour
STYLE = (
    "body{font:18px/1.7 ui-monospace,monospace;max-width:50em;margin:2em auto;padding:0 1em;color:#1f2933}"
    "p{white-space:pre-wrap;overflow-wrap:anywhere}small{color:#52606d}"
)


def surprise_page(text: str, bits: Sequence[float], title: str = "Surprise") -> str:
    """One page: behind every character a colour, stronger the more bits it took; the number appears on pointing at it.

    Args:
        text: any; what looks like markup is shown, not obeyed.
        bits: of every character, -log2 P(character | those before); those of the bytes of a character added up.
        title: of the page.

    >>> page = surprise_page("a<b", [0.5, 7.9, 2.0])
    >>> 'title="7.90 bits"' in page, "&lt;" in page, "a<b" in page
    (True, True, False)
    """
    values = [float(value) for value in bits]
    if len(values) != len(text):
        raise ValueError(f"bits: got {len(values)} numbers for {len(text)} characters; expected one for each")
    if bad := [place for place, value in enumerate(values) if not (isfinite(value) and value >= 0)]:
        raise ValueError(f"bits: got {values[bad[0]]} at {bad[0]}; expected finite numbers, 0 or more")
    shown = join(*(_character(letter, value) for letter, value in zip(text, values, strict=True)))
    mean = sum(values) / max(1, len(values))
    note = tag(
        "small", f"{len(text):,} characters, {mean:.3f} bits each; the strongest colour is {MOST:g} bits or more"
    )
    head = tag("head", tag("meta", charset="utf-8"), tag("title", title), tag("style", Markup(STYLE)))
    return (
        "<!doctype html>\n" + tag("html", head, tag("body", tag("h1", title), note, tag("p", shown)), lang="en") + "\n"
    )


def _character(letter: str, bits: float) -> Markup:
    strength = round(min(bits / MOST, 1.0), 3)
    return tag("span", letter, title=f"{bits:.2f} bits", style=f"background:rgba(221,107,32,{strength:g})")
