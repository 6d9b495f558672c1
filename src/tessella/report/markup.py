"""HTML and SVG whose texts cannot break out: what is not `Markup` is escaped."""

import re
from html import escape

ALONE = {"meta", "link", "br", "img"} | {"circle", "line", "path", "polygon", "polyline", "rect"}
"""Elements without content: those of HTML that have no end tag, and the shapes of SVG."""


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def safe(text: str) -> Markup:
    """Any text as markup; control characters, which no page may hold, are shown as unknown.

    >>> safe("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return Markup(text) if isinstance(text, Markup) else Markup(escape(re.sub(_UNPRINTABLE, "\ufffd", text)))


def tag(name: str, /, *children: str, **attributes: object) -> Markup:
    """An element; `class_` is class, `stroke_width` is stroke-width, and attributes that are None are left out.

    >>> tag("p", "1 < 2, ", tag("b", "yes"), class_="note")
    '<p class="note">1 &lt; 2, <b>yes</b></p>'
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    opened = name + "".join(f' {key}="{safe(_text(value))}"' for key, value in given.items())
    if name in ALONE and not children:
        return Markup(f"<{opened} />")
    return Markup(f"<{opened}>{join(*children)}</{name}>")


def join(*parts: str) -> Markup:
    """Parts one after the other."""
    return Markup("".join(map(safe, parts)))


def _text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


_UNPRINTABLE = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]"
