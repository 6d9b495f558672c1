"""ASCII formula -> LaTeX: log|det df/dx| -> \\log\\left|\\det \\frac{\\partial f}{\\partial x}\\right|."""

import re
from collections.abc import Callable

from extensions.tokens import BIG, FUNCTIONS, SCRIPT, SYMBOLS, Token, is_name, tokenize

RELATIONS = {"<->": r"\leftrightarrow", "->": r"\to", "<=": r"\leq", ">=": r"\geq", "~": r"\sim"}
SIGNS = {"{": r"\{", "}": r"\}", "+-": r"\pm", "*": r"\cdot", ".": r"\cdot", "...": r"\ldots", "|": r"\mid"}
# Rows of more characters are broken where a clause begins.
LONG = 80


class NotAFormulaError(ValueError):
    """The text holds something that has no certain translation."""


def latex(formula: str) -> str:
    """A formula -> LaTeX; `NotAFormulaError` where that is not certain.

    >>> print(latex("log P(c) >= E_q log 1/S sum_s p(x_s) / q(x_s | c)"))
    \\log P(c) \\geq \\mathbb{E}_q \\log \\frac{1}{S} \\sum_s p(x_s) / q(x_s \\mid c)
    """
    return translate(tokenize(formula))


def translate(tokens: list[Token]) -> str:
    """The rows of a formula, below each other if there are several."""
    rows = [_row(part) for row in _split(tokens, row_ends) for part in (_clauses(row) if _is_long(row) else [row])]
    return rows[0] if len(rows) == 1 else r"\begin{aligned} & " + r" \\ & ".join(rows) + r" \end{aligned}"


def row_ends(tokens: list[Token], i: int) -> bool:
    """Whether two spaces follow a comma, semicolon or colon outside all brackets."""
    return _pauses(tokens, i) and len(tokens[i + 1].text) > 1


def _pauses(tokens: list[Token], i: int) -> bool:
    token, after = tokens[i], tokens[i + 1] if i + 1 < len(tokens) else None
    pause = token.kind == "punctuation" and token.text in ",;:" and not token.depth
    return pause and after is not None and after.kind == "space"


def _split(tokens: list[Token], ends: Callable[[list[Token], int], bool]) -> list[list[Token]]:
    """Rows, each with the comma or semicolon that ends it; a colon that does is left out."""
    rows: list[list[Token]] = [[]]
    for i, token in enumerate(tokens):
        if not ends(tokens, i):
            rows[-1].append(token)
            continue
        rows[-1] += [token] if token.text != ":" else []
        rows.append([])
    return rows


def _is_long(row: list[Token]) -> bool:
    return sum(len(token.text) for token in row) > LONG


def _clauses(row: list[Token]) -> list[list[Token]]:
    """A long row, broken before every clause that has a relation of its own."""
    clauses: list[list[Token]] = []
    for part in _split(row, _pauses):
        if not clauses or any(token.kind == "relation" and not token.depth for token in part):
            clauses.append(part)
        else:
            clauses[-1] += part
    return clauses


def _row(tokens: list[Token]) -> str:
    _check(tokens)
    out, inside = "", False  # inside of bars
    for i, token in enumerate(tokens):
        before, after = tokens[i - 1] if i else None, tokens[i + 1] if i + 1 < len(tokens) else None
        if token.kind == "bar":
            piece = r"\right|" if inside else r"\left|"
            inside = not inside
        elif token.prose or (token.kind == "space" and any(t is not None and t.prose for t in (before, after))):
            piece = rf"\text{{{token.text}}}"
        elif token.kind == "space" and before and before.kind == "punctuation" and not token.depth:
            piece = r"\ "
        elif token.kind == "space" and before and after and _would_run_together(before, after):
            piece = r"\, "
        elif token.text == "N" and after and after.text == "(":
            piece = r"\mathcal{N}"
        else:
            piece = _piece(token, out)
        out += (" " if re.search(r"\\[A-Za-z]+$", out) and piece[:1].isalpha() else "") + piece
    return out.replace(r"}\text{", "").strip() if r"\text{" in out else out.strip()


def _check(tokens: list[Token]) -> None:
    """Everything is known, and what is opened is closed."""
    opened: list[str] = []
    for token in tokens:
        if token.kind == "other":
            raise NotAFormulaError(f"{token.text!r} has no translation")
        if token.kind == "open":
            opened.append({"(": ")", "[": "]", "{": "}"}[token.text])
        if token.kind == "close" and (not opened or opened.pop() != token.text):
            raise NotAFormulaError(f"{token.text!r} closes nothing")
    if opened or sum(token.kind == "bar" for token in tokens) % 2:
        raise NotAFormulaError("a bracket or a bar is never closed")


def _would_run_together(before: Token, after: Token) -> bool:
    """Whether a name of several letters stands beside an operand; functions keep their distance by themselves."""
    operands = before.kind in ("word", "number") and after.kind in ("word", "number")
    return operands and before.text not in FUNCTIONS and (is_name(before.text) or is_name(after.text))


def _piece(token: Token, out: str) -> str:
    """LaTeX of one token that is not prose, after what is written already."""
    text = token.text
    if token.kind == "word":
        return _word(text)
    if token.kind == "script":
        return _scripts(text)
    if token.kind == "derivative":
        d = r"\partial" if out.rstrip().endswith(r"\det") else r"\mathrm{d}"
        above, below = text.split("/")
        return rf"\frac{{{d} {_word(above[1:])}}}{{{d} {_word(below[1:])}}}"
    if token.kind == "fraction":
        return r"\frac{{{}}}{{{}}}".format(*text.split("/"))
    if token.kind == "punctuation":
        return text
    return RELATIONS.get(text) or SIGNS.get(text, text)


def _word(text: str) -> str:
    """A symbol, function or name with its subscripts and superscripts: p_comp -> p_{\\mathrm{comp}}."""
    name = re.split(r"[_^']", text, maxsplit=1)[0]
    tail = text[len(name) :]
    if name not in BIG and len(name) > 1 and re.match(r"_[a-z]{3,}", tail):  # a name of the code: log_scale
        return r"\mathrm{" + text.replace("_", r"\_") + "}"
    special = {"R": r"\mathbb{R}"} if tail.startswith("^") else {"in": r"\in"}
    symbol = special.get(name) or SYMBOLS.get(name) or (name if len(name) == 1 else rf"\mathrm{{{name}}}")
    return symbol + _scripts(tail)


def _scripts(text: str) -> str:
    """_mj^-1 -> _{mj}^{-1}, words upright, brackets translated; a prime stays."""
    return "".join(_script(match.group()) for match in re.finditer(rf"{SCRIPT}|'", text))


def _script(text: str) -> str:
    sign, minus, inner = text[0], "-" if text[1:2] == "-" else "", text[1:].removeprefix("-")
    if not inner:
        return sign
    if inner.startswith("("):
        done = f"({latex(inner[1:-1])})" if minus else latex(inner[1:-1])
    else:
        done = re.sub(r"[A-Za-z]{4,}", lambda word: rf"\mathrm{{{word.group()}}}", inner)
    return sign + (minus + done if len(minus + done) == 1 else f"{{{minus}{done}}}")
