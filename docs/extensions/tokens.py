"""The pieces of a formula in plain text, and which of its words are prose."""

import re
from dataclasses import dataclass

# Functions of an index; elsewhere a bracket after a subscript belongs to the symbol: p_comp(y).
INDEX_FUNCTIONS = "parent"
SCRIPT = rf"(?:_(?:(?:{INDEX_FUNCTIONS})\([^()]*\)|\([^()]*\)|<?[A-Za-z0-9]+)|\^-?(?:\([^()]*\)|[A-Za-z0-9]+))"
KINDS = {
    "space": r"\s+",
    "derivative": r"(?<!\w)d[a-z](?:_\w)?(?:\^-1)?/d[a-z](?:_\w)?(?!\w)",
    "fraction": r"(?<![\w)])(?:\d+|[A-Za-z])/(?:\d+|[A-Za-z])(?![\w(])",
    "hyphenated": r"[A-Za-z]{2,}(?:[-'][a-z]+)+",
    "word": rf"[A-Za-z]+(?:_[a-z]{{2,}}(?:_[a-z]+)+|{SCRIPT}*)'?",
    "script": SCRIPT,
    "number": r"\d+(?:\.\d+)?",
    "dots": r"\.\.\.",
    "relation": r"<->|->|<=|>=|<|>|=(?!=)|~",
    "mid": r"(?<= )\|(?= )",
    "bar": r"\|",
    "open": r"[(\[{]",
    "close": r"[)\]}]",
    "argument": r"(?<=\()\.(?= )",
    "operator": r"\+-|[-+/]|(?<= )[*.](?= )",
    "punctuation": r"[,;:.](?=\s|$)",
    "other": r".",
}
TOKEN = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))

BIG = {"sum": r"\sum", "prod": r"\prod", "int": r"\int", "E": r"\mathbb{E}"}
FUNCTIONS = {name: rf"\{name}" for name in ("log", "exp", "max", "min", "det", "cos", "sin")}
FUNCTIONS |= {
    name: rf"\operatorname{{{name}}}"
    for name in ("argmin", "argmax", "softmax", "softplus", "sigmoid", "logit", "silu", "diag", "mod")
}
GREEK = {name: rf"\{name}" for name in ("pi", "eta", "nu", "rho", "gamma", "sigma", "epsilon", "lambda", "delta")}
SYMBOLS = BIG | FUNCTIONS | GREEK | {"inf": r"\infty", "o": r"\circ"}
# Single words that are never the name of a quantity.
SMALL = {"and", "or", "with", "for", "then", "where", "of", "to", "from", "given", "on", "over", "by", "is", "the"}
SMALL |= {"at", "as", "so", "if", "while", "no"}


@dataclass
class Token:
    """A piece of a line: its kind, its text, how many brackets are around it, and whether it is a word of prose."""

    kind: str
    text: str
    depth: int = 0
    prose: bool = False


def tokenize(text: str) -> list[Token]:
    """The pieces in order, spaces among them; prose is marked.

    >>> [token.text for token in tokenize("k = the cell that holds x") if token.prose]
    ['the', 'cell', 'that', 'holds']
    """
    tokens, depth = [], 0
    for match in TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        depth -= kind == "close"
        tokens.append(Token(kind, match.group(), depth))
        depth += kind == "open"
    _mark_prose([token for token in tokens if token.kind != "space"])
    return tokens


def is_name(text: str) -> bool:
    """Whether a word of several letters names a quantity: ladj, but not log."""
    return len(text) > 1 and text.isalpha() and text not in SYMBOLS and text != "in"


def _mark_prose(tokens: list[Token]) -> None:
    """Hyphenated words, small words, and plain words beside others or after a symbol; x in R^D is mathematics."""
    nothing = Token("nothing", "")
    around = list(zip([nothing, *tokens], tokens, [*tokens[1:], nothing], strict=False))
    plain = {id(token): _is_plain(token, after) for _, token, after in around}
    for before, token, after in around:
        follows, leads = plain.get(id(before), False), plain.get(id(after), False)
        if token.text == "in":
            token.prose = follows or leads or before.kind != "word"
        elif token.kind == "hyphenated" or (token.text == "a" and leads):
            token.prose = True
        elif plain[id(token)]:
            named = after.kind in ("relation", "operator") or (before.kind == "relation" and after.text in SMALL)
            beside = follows or leads or before.kind in ("word", "close")
            token.prose = token.text in SMALL or (beside and not named)


def _is_plain(token: Token, after: Token) -> bool:
    """Whether a token could be a word of prose: letters only, known to be nothing else, and applied to nothing."""
    letters = token.kind == "hyphenated" or (token.kind == "word" and token.text.isalpha() and len(token.text) > 1)
    return letters and token.text not in SYMBOLS and after.text not in ("(", "[")
