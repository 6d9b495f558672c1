"""What is missing, given what is there: drawn, or the most likely."""

import torch
from torch import Tensor

from tessella.data import Encoding
from tessella.data.tables.limits import Limit
from tessella.estimators.questions.patterns import by_pattern, known_besides
from tessella.estimators.questions.predicting import median
from tessella.estimators.questions.walks import ROWS_AT_ONCE, Exact, completed, drawn, home, in_order, told, variable
from tessella.progress import counted

ROUNDS = 32  # of draws, until a row is kept


@torch.no_grad()
def impute(model: Exact, encoding: Encoding, rows: Tensor, unknown: Tensor, most_likely: bool = False) -> Tensor:
    """Rows (B, G + R) with values in place of what is unknown (B, columns), none of them missing.

    Drawn from p(unknown | known, none of the unknown is missing); or, most likely, one column after another in the
    table's order: the likeliest category, the median of a number.
    """
    result = rows.clone()
    for places, columns in by_pattern(unknown):
        gap = _Gap(model, encoding, [column for column in columns if encoding.tokens(column)])
        if not gap.gone:
            continue
        if not (gap.limits or most_likely):
            result[places] = completed(model, encoding, rows[places], gap.known)
            continue
        fill, own = gap.likeliest if most_likely else gap.draws, counted(rows[places].split(ROWS_AT_ONCE))
        result[places] = torch.cat([fill(part) for part in own])
    return result


class _Gap:
    """Columns that are unknown, of which some could be missing.

    Args:
        model, encoding: of the rows.
        columns: of the table, each with more than one value.
    """

    def __init__(self, model: Exact, encoding: Encoding, columns: list[int]):
        self.model, self.encoding = model, encoding
        self.known, self.gone = (
            known_besides(encoding, columns),
            in_order(model, (variable(encoding, i) for i in columns)),
        )
        self.limits = {
            variable(encoding, i): Limit.there(encoding.columns[i]).to(home(model))
            for i in columns
            if encoding.columns[i].missing
        }

    def draws(self, rows: Tensor) -> Tensor:
        """Columns that could be missing first: each is drawn given that it is not, and rows are kept by its weight.

        w = prod_(i > 1) P(x_i is there | those before): a draw that is kept with probability w is exact. A row that is
        not kept in 32 rounds has one of its draws by their weights.
        """
        order = sorted(self.gone, key=lambda column: column not in self.limits)
        result, total, pending = rows.clone(), torch.zeros(len(rows)).double(), torch.arange(len(rows))
        for _ in range(ROUNDS):
            walk = told(self.model, self.encoding.split(rows[pending]), self.known)
            weight = drawn(walk, order, self.limits)[1:].double().sum(0).exp().cpu()
            total[pending] += weight
            kept = torch.rand(len(pending)) < weight
            taken = kept | (torch.rand(len(pending)) * total[pending] < weight)
            result[pending[taken]] = self.encoding.join(*walk.batch).cpu()[taken]
            pending = pending[~kept]
            if not len(pending):
                break
        return result

    def likeliest(self, rows: Tensor) -> Tensor:
        """The likeliest category or the median of one column after another, each given those before."""
        walk, places = told(self.model, self.encoding.split(rows), self.known), self.encoding.variables
        for column in self.gone:
            table, place = walk.ask(column), places[column]
            if column in self.limits:
                table = table + walk.within(column, self.limits[column])
            spec = self.encoding.columns[place]
            value = median(walk, spec, column, table) if spec.number else table.argmax(-1).cpu()
            found = self.encoding.place(place, value.double().numpy())
            walk.put(self.encoding.tokens(place), torch.from_numpy(found))
            walk.tell(column)
        return self.encoding.join(*walk.batch).cpu()
