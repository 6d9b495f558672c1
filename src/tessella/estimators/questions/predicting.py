"""A column given others: probabilities of its categories, the median of its numbers, how much its value surprises."""

from collections.abc import Callable
from math import inf

import torch
from torch import Tensor

from tessella.data import Column, Encoding
from tessella.data.tables.limits import Limit
from tessella.estimators.questions.patterns import by_pattern, known_besides
from tessella.estimators.questions.walks import Exact, Walk, home, in_order, pieces, told, variable
from tessella.progress import counted

HALVINGS = 60  # of a number's range: no double is between its ends then


@torch.no_grad()
def probabilities(model: Exact, encoding: Encoding, rows: Tensor, unknown: Tensor, column: int) -> Tensor:
    """P(category | what is known of the other columns, it is not missing), (B, categories but missing)."""
    if not encoding.tokens(column):
        return torch.ones(len(rows), 1, dtype=torch.float64)
    there = Limit.there(encoding.columns[column]).to(home(model))

    def ask(walk: Walk, asked: int) -> Tensor:
        table = walk.ask(asked).double() + walk.within(asked, there).double()
        return table.softmax(-1)[:, there.allowed[0]].cpu()

    return _asked(model, encoding, rows, unknown, column, ask)


@torch.no_grad()
def medians(model: Exact, encoding: Encoding, rows: Tensor, unknown: Tensor, column: int) -> Tensor:
    """The median of a number given what is known of the other columns, and that it is not missing: (B), in steps."""
    spec = encoding.columns[column]
    return _asked(
        model, encoding, rows, unknown, column, lambda walk, asked: median(walk, spec, asked, walk.ask(asked))
    )


@torch.no_grad()
def excess_surprise(model: Exact, encoding: Encoding, rows: Tensor, column: int) -> Tensor:
    """How much more a value surprises, given all others, than values of that column do on average there: (B), in nats.

    See `densities.surprises`. A column of which nothing can be known, like an identifier, is not odd in every row.
    """

    def ask(walk: Walk, asked: int) -> Tensor:
        walk.ask(asked)
        return walk.excess(asked).cpu()

    nothing = torch.zeros(len(rows), len(encoding.columns), dtype=torch.bool)
    return _asked(model, encoding, rows, nothing, column, ask)


@torch.no_grad()
def surprise(model: Exact, encoding: Encoding, rows: Tensor) -> Tensor:
    """The sum of `excess_surprise` over the columns, each given those before it in the table's order: (B), in nats."""
    columns, found = in_order(model, range(len(encoding.variables))), []
    for piece in counted(pieces(encoding.split(rows))):
        walk, total = told(model, piece, []), torch.zeros(len(piece[0]), dtype=torch.float64)
        for column in columns:
            walk.ask(column)
            total += walk.excess(column).cpu()
            walk.tell(column)
        found.append(total)
    return torch.cat(found)


def median(walk: Walk, spec: Column, column: int, table: Tensor) -> Tensor:
    """The least number v of a column, as it was asked for, with P(v or less) >= P(a number is there) / 2: (B)."""
    everywhere = torch.full((len(table),), inf, dtype=torch.float64, device=table.device)

    def below(v: Tensor) -> Tensor:
        limit = Limit.between(spec, -everywhere.cpu(), v.cpu()).to(table.device)
        return (table + walk.within(column, limit)).double().logsumexp(-1).exp()

    half = below(everywhere) / 2
    low, high = (torch.full_like(everywhere, end) for end in (spec.low - 1, spec.high))
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        middle = middle.floor() if spec.discrete else middle
        reached = below(middle) >= half
        low, high = torch.where(reached, low, middle), torch.where(reached, middle, high)
    atoms = torch.tensor([*spec.atoms, inf], dtype=torch.float64, device=table.device)
    nearest = atoms[torch.searchsorted(atoms, low, right=True).clamp_max(len(atoms) - 1)]
    return torch.where(nearest <= high, nearest, high).cpu()


def _asked(
    model: Exact,
    encoding: Encoding,
    rows: Tensor,
    unknown: Tensor,
    column: int,
    ask: Callable[[Walk, int], Tensor],
) -> Tensor:
    """What a walk is asked about a column, once all others that are known are told: (B, ...), double precision."""
    unknown = unknown.clone()
    unknown[:, column] = True
    found, order = [], []
    for places, columns in by_pattern(unknown):
        for piece in counted(pieces(encoding.split(rows[places]))):
            walk = told(model, piece, known_besides(encoding, columns))
            found.append(ask(walk, variable(encoding, column)))
        order.append(places)
    return torch.cat(found)[torch.cat(order).argsort()]
