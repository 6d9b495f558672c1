"""Our docstrings as Sphinx wants them: the first line's formula set as mathematics, the rest free of rst's traps.

Docstrings are plain text with names in backticks; `*batch` is no emphasis there, and `|x|` no substitution.
"""

import importlib
import inspect
import re
from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, get_args

from extensions.formulas import split
from extensions.latex import latex

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx

SYMBOL = re.compile(r"(?<![\w`])[A-Za-z](?:_[A-Za-z0-9]{1,3}|\^(?:-?\d+|[A-Z]))+(?!\w)")  # x_k, R^D, d_i^2
NAME = re.compile(r"[A-Za-z_][\w.]*(\(\))?")
ITEM = re.compile(r"(\s+\w+ ?(?:\([^)]*\))?:)(?=\s)(.*)")  # of a section: "    name: what it is"


def setup(app: "Sphinx") -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=400)  # before napoleon, at 500
    app.connect("autodoc-process-signature", signature)
    app.connect("source-read", values)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def process(app: "Sphinx", what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A docstring, in place."""
    if what == "data":
        lines[:] = list(describe(thing))
    elif lines:
        # A property's first line would be read as "type: description" by napoleon; after an empty line it is not.
        lines[:] = [*([""] if what in ("attribute", "property") else []), *first_line(lines[0]), *body(lines[1:])]


def values(app: "Sphinx", page: str, text: list[str]) -> None:
    """The page api/NAME ends with the values that tessella.NAME exports; autodoc would leave them out."""
    if page.startswith("api/"):
        package = importlib.import_module("tessella." + page.removeprefix("api/"))
        found = [name for name in package.__all__ if not isinstance(getattr(package, name), type | FunctionType)]
        data = "".join(f".. autodata:: {package.__name__}.{name}\n" for name in found)
        text[0] += f"\n```{{eval-rst}}\n{data}```\n" if found else ""


def signature(app: "Sphinx", what: str, name: str, thing: Any, options: Any, given: str, returned: str) -> Any:
    """A class that adds nothing to `nn.Module.__init__` shows no arguments."""
    return ("", returned) if re.fullmatch(r"\(\*args[^,]*, \*\*kwargs[^,]*\)", given or "") else None


def first_line(line: str) -> list[str]:
    """A formula as a block of mathematics or of code, then the prose.

    >>> first_line("y = x exp(s) + t.")
    ['.. math:: y = x \\\\exp(s) + t', '', '', '']
    """
    parts = split(line)
    if parts.latex:
        return [f".. math:: {parts.latex}", "", escaped(parts.prose), ""]
    if parts.code:
        return [".. code-block:: text", "", f"   {parts.code}", "", escaped(parts.prose), ""]
    return [escaped(line)]


def body(lines: list[str]) -> Iterable[str]:
    """Everything after the first line; examples stay as they are."""
    example = False
    for line in lines:
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        item = ITEM.fullmatch(line)
        if example:
            yield line
        else:
            yield item.group(1) + escaped(item.group(2)) if item else escaped(line)


def escaped(text: str) -> str:
    """Plain text -> rst: names in backticks are looked up, other code is literal, and the rest means what it says.

    >>> print(escaped("|x| of `Box`, (*batch, D), see `a = 1` and weights_"))
    \\|x\\| of :py:obj:`Box`, (\\*batch, D), see ``a = 1`` and weights\\_
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner
        return re.sub(r"([*|\\`])", r"\\\1", text)
    parts[::2] = [_plain(part) for part in parts[::2]]
    parts[1::2] = [f":py:obj:`{part}`" if NAME.fullmatch(part) else f"``{part}``" for part in parts[1::2]]
    return "".join(parts)


def _plain(text: str) -> str:
    """Text without code: signs of rst escaped, symbols with subscripts set as such."""
    escapes = re.compile(r"([*|\\]|_(?!\w)|(?<=^[A-Z])\.)")
    words = SYMBOL.split(text)
    symbols = [rf"\ :math:`{latex(symbol)}`\ " for symbol in SYMBOL.findall(text)]
    return "".join(a + b for a, b in zip([escapes.sub(r"\\\1", word) for word in words], [*symbols, ""], strict=True))


def describe(value: Any) -> Iterable[str]:
    """What can be said of an exported value: the entries of a registry, the choices of a literal type, its class."""
    if isinstance(value, dict):
        yield "A registry:"
        yield ""
        for key, entry in value.items():
            yield f"- ``{key!r}``" + (f": {summary(entry)}" if callable(entry) else "")
    elif get_args(value):
        yield "One of " + ", ".join(f"``{choice!r}``" for choice in get_args(value)) + "."
    else:
        yield from first_line((inspect.getdoc(type(value)) or "").partition("\n")[0])


def summary(thing: Any) -> str:
    """The first line of a docstring, its formula in the text."""
    parts = split((inspect.getdoc(thing) or "").partition("\n")[0])
    formula = parts.latex.replace(r"\begin{aligned} &", "").replace(r"\end{aligned}", "").replace(r" \\ &", r"\quad ")
    shown = f":math:`{formula.strip()}`" if formula else f"``{parts.code}``" if parts.code else ""
    return f"{shown} {escaped(parts.prose)}".strip()


def resolve(app: "Sphinx", env: Any, node: "Element", content: "Element") -> Any:
    """A name from a deep module, or a bare one, leads to where a package exports it, if there is one such place."""
    name = node.get("reftarget", "").rsplit(".", 1)[-1].removesuffix("()")
    domain = env.get_domain("py")
    exported = {
        full: entry for full, entry in domain.objects.items() if full.endswith(f".{name}") and not entry.aliased
    }
    found = [full for full, entry in exported.items() if entry.objtype in ("class", "function", "data", "exception")]
    if node.get("refdomain") != "py" or len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, content)
