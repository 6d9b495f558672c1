"""The first lines of docstrings, in parts: a formula, and the prose after it.

A docstring begins with `log p(x) = log base(f(x)) + log|det df/dx|: the bijection goes from data to noise.` The formula
ends where a colon or a period does; two spaces after a comma, semicolon or colon begin a new row. Whatever is not
understood is left alone: the line is then code, and shown as it stands.
"""

import re
from typing import NamedTuple

from extensions.latex import NotAFormulaError, row_ends, translate
from extensions.tokens import BIG, FUNCTIONS, SYMBOLS, Token, tokenize

# So many words of prose may end a formula; more are a sentence of their own.
FEW_WORDS = 4


class Split(NamedTuple):
    """A first line in parts: `latex`, or `code` where the formula has no certain translation; then the prose."""

    latex: str = ""
    code: str = ""
    prose: str = ""


def split(line: str) -> Split:
    """A first line -> its formula as LaTeX or as code, and the prose after it; prose only, where it is no formula.

    >>> split("d_t = min(d, (1 + t) / (10 + t)): short memory at first.")
    Split(latex='d_t = \\\\min(d, (1 + t) / (10 + t))', code='', prose='Short memory at first.')
    """
    tokens = tokenize(line)
    end = next((i for i in range(len(tokens)) if _ends(tokens, i)), len(tokens))
    formula = tokens[:end]
    if _is_shape(formula):
        return Split(code=_text(formula), prose=_text(tokens[end + 1 :]))
    if not (_is_relation(formula) or (tokens[end:] and tokens[end].text == ":" and _is_expression(formula))):
        return Split(prose=line)
    cut = _sentence(formula)
    prose = _text(tokens[cut:]) if cut < end else _capitalised(_text(tokens[end + 1 :]))
    while formula[:cut][-1].kind in ("space", "punctuation"):
        cut -= 1
    try:
        return Split(latex=translate(formula[:cut]), prose=prose)
    except NotAFormulaError:
        return Split(code=_text(formula[:cut]), prose=prose)


def _ends(tokens: list[Token], i: int) -> bool:
    """Whether the formula ends here: a colon or period outside all brackets that begins no new row."""
    token = tokens[i]
    return token.kind == "punctuation" and not token.depth and token.text in ":." and not row_ends(tokens, i)


def _is_shape(tokens: list[Token]) -> bool:
    """(*batch, inputs) -> (*batch, outputs): what goes in and what comes out."""
    arrow = any(token.text == "->" for token in tokens)
    return arrow and tokens[0].text == "(" and not any(token.prose for token in tokens)


def _is_relation(tokens: list[Token]) -> bool:
    """An equation or inequality with no prose before its sign; an arrow alone is none."""
    signs = [i for i, token in enumerate(tokens) if token.kind == "relation"]
    if all(tokens[i].text == "->" for i in signs):
        return False
    return not any(token.prose or _is_title(token) for token in tokens[: signs[0]])


def _is_expression(tokens: list[Token]) -> bool:
    """log p(k), argmin_k |x - x_k|: an expression that starts with a function, without two words of prose in a row."""
    name = re.match(r"[A-Za-z]+", tokens[0].text)
    applied = len(tokens) > 1 and tokens[1].text == "("
    starts = name is not None and (name.group() in BIG | FUNCTIONS or (applied and len(name.group()) == 1))
    phrases = any(a.prose and b.prose for a, b in zip(tokens, tokens[2:], strict=False))
    return starts and not phrases and not any(token.kind == "other" for token in tokens)


def _is_title(token: Token) -> bool:
    return token.kind in ("word", "hyphenated") and re.fullmatch(r"[A-Z][a-z]+", token.text) is not None


def _sentence(tokens: list[Token]) -> int:
    """Where a sentence begins that follows the last relation; the end if there is none."""
    relations = [i for i, token in enumerate(tokens) if token.kind == "relation" and not token.depth]
    start = relations[-1] + 1 if relations else 0
    while start < len(tokens) and (tokens[start].kind == "space" or tokens[start].prose):  # its right side, in words
        start += 1
    begin = next((i for i in range(start, len(tokens)) if tokens[i].prose and not tokens[i].depth), len(tokens))
    if sum(token.prose for token in tokens[begin:]) <= FEW_WORDS and all(t.kind != "other" for t in tokens[begin:]):
        return len(tokens)
    subject = [token.kind for token in tokens[begin - 4 : begin]] == ["punctuation", "space", "word", "space"]
    return begin - 2 if subject else begin  # ", v uniform in a ball": the sentence is about v


def _text(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens).strip()


def _capitalised(prose: str) -> str:
    word = re.match(r"[a-z]{2,}(?=[ ,.-])|a(?= [a-z]{2})", prose)
    return prose[0].upper() + prose[1:] if word and word.group() not in SYMBOLS else prose
