"""Rows of a mixed table by an exact density in any order: trained, scored, drawn, asked."""

from collections import deque
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.densities import Autoregressive
from tessella.densities.walking import RowWalk
from tessella.models.bound import log_mean_exp
from tessella.nets.ragged import ragged_cells
from tessella.progress import counted

NUMBERS_AT_ONCE = {"cpu": 2**21}  # a few times what the cache of a core holds
NUMBERS_ELSEWHERE = 2**28
FEWEST_AT_ONCE, MOST_LOGITS = 64, 2**26  # rows share the tables of their columns, which may have a million categories
NUMBERS_DRAWN_AT_ONCE = {"cpu": 2**22}  # what cores share; with fewer rows the time is that of starting operations
FEWEST_DRAWN = 256
ORDERS_SEED = 2026


class AutoregressiveTable(nn.Module):
    """log p(row) = log 1/S sum_s p_s(row), exact: the mean of distributions, one for each of S orders, is one too.

    The first order is the table's own; the others, some columns before the rest, are drawn once, by a fixed seed.
    Training draws an order for every row. `Trainable`, `Likelihood`.

    Args:
        density: p_s of the rows of a table.
        natural: share of the training rows that are learned in the table's own order.
        given: share of those that are learned with some columns first, as many as they may be, then any one, then the
            others, in the table's order but for the one: what `complete` and `conditional` ask for. Others are learned
            in any order.
        orders: S where a call does not say.
        order: the columns of the density in the table's order; none: as they are.
    """

    exact = True
    started: Tensor
    rank: Tensor

    def __init__(
        self,
        density: Autoregressive,
        natural: float = 0.5,
        given: float = 0.5,
        orders: int = 1,
        order: Sequence[int] = (),
    ):
        super().__init__()
        if not (natural >= 0 and given >= 0 and natural + given <= 1):
            raise ValueError(f"natural, given: got {natural} and {given}; expected shares, together at most 1")
        _check_orders(orders)
        order = tuple(order) or tuple(range(density.columns))
        if sorted(order) != list(range(density.columns)):
            raise ValueError(f"order: got {order!s:.80}; expected every column once, 0 to {density.columns - 1}")
        self.density, self.natural, self.given, self.orders = density, natural, given, orders
        self.register_buffer("rank", torch.tensor(order).argsort(), persistent=False)  # of a column in that order
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.density.bias.device

    def loss(self, *batch: Tensor) -> Tensor:
        """Mean of -log p_s over a batch, s drawn for each row: the training objective."""
        return -self.drawn_log_prob(*batch).mean()

    def drawn_log_prob(self, *batch: Tensor) -> Tensor:
        """log p_s of every row, (B), s drawn for each."""
        rows = self.density.place(*batch)
        log_prob: Tensor = self.density(rows, self._drawn_orders(rows.flat))
        return log_prob.sum(-1)

    def nll(self, *batch: Tensor) -> Tensor:
        """-log p of every row, (B)."""
        return -self.log_prob(*batch)

    @torch.no_grad()
    def initialize(self, *batch: Tensor) -> None:
        """`start` from a batch, where it did not start from more rows before."""
        if not bool(self.started):
            self.start(*batch)

    @torch.no_grad()
    def start(self, *batch: Tensor) -> None:
        """Begin as independent columns, with the frequencies of these rows."""
        self.density.start(self.density.place(*batch))
        self.started.fill_(True)

    def log_prob(self, *batch: Tensor, samples: int | None = None, orders: int | None = None) -> Tensor:
        """Exact log-likelihood of each row, (B).

        Args:
            batch: of the table.
            samples: none are needed; bounds do.
            orders: S; more make an ensemble, each member a pass.
        """
        chosen = self.some_orders(self.orders if orders is None else orders)
        parts: list[Batch] = list(zip(*(part.split(self._rows_at_once) for part in batch), strict=True))
        return torch.cat([self._log_prob(part, chosen) for part in counted(parts)])

    def sample(self, rows: int) -> Batch:
        """New rows, each in one of the orders that `log_prob` is the mean of."""
        codes = torch.zeros(rows, len(self.density.shape.counts), dtype=torch.int64, device=self.device)
        numbers = torch.zeros(rows, self.density.shape.numbers, dtype=torch.float64, device=self.device)
        return self.complete(*((codes, numbers) if self.density.shape.numbers else (codes,)), known=())

    @torch.no_grad()
    def complete(self, *batch: Tensor, known: Sequence[int]) -> Batch:
        """Rows whose known columns are kept, the others drawn given them: exact, one small step a column.

        The known columns come first, in the table's order: p(others | known) of that member of the family of orders.

        Args:
            batch: rows of the table; what is said about other columns makes no difference.
            known: columns that are kept, by their place among those of the density.
        """
        self._check_columns("known", known)
        rows, known = len(batch[0]), self.in_order(known)
        if rows < 1:
            raise ValueError(f"rows: got {rows}; expected at least 1")
        orders = self.some_orders(self.orders)
        member = torch.randint(len(orders), (rows,), device=self.device)
        drawn = [part.clone() for part in batch]
        for i, order in enumerate(orders):
            columns = [*known, *(column for column in order if column not in known)]
            own_rows = (member == i).nonzero()[:, 0]
            for own in own_rows.split(self._rows_at_most(NUMBERS_ELSEWHERE)) if len(own_rows) else ():
                with torch.inference_mode():
                    walk = RowWalk(self.density, *(part[own] for part in batch))
                    self._walk(walk, columns, known)
                for part, new in zip(drawn, walk.batch, strict=True):
                    part[own] = new
        return tuple(drawn)

    def _walk(self, walk: RowWalk, columns: Sequence[int], known: Sequence[int]) -> None:
        """Through the columns: all rows together while they share branches, then some of them after others."""
        left = deque(columns)
        while left and walk.shared:
            column = left.popleft()
            walk.step(column, column in known)
        for part in counted(walk.split(self._rows_drawn_at_once)):
            for column in left:
                part.step(column, column in known)

    @torch.no_grad()
    def conditional(self, *batch: Tensor, column: int, known: Sequence[int]) -> tuple[Tensor, Tensor]:
        """P(part of a column | known columns) and log p(value | known columns), exact; known first, in table order.

        Args:
            batch: rows of the table.
            column: which, by its place among those of the density.
            known: others; what is said about the rest makes no difference.

        Returns:
            Probabilities of categories, or of the parts of a number, (B, K), and log p of what is there, (B).
        """
        self._check_columns("known, column", [*known, column])
        parts: list[Batch] = list(zip(*(part.split(self._rows_at_once) for part in batch), strict=True))
        known = self.in_order(known)
        found = [self.density.conditional(self.density.place(*part), column, known) for part in parts]
        return torch.cat([table for table, _ in found]).exp(), torch.cat([log_prob for _, log_prob in found])

    def in_order(self, columns: Iterable[int]) -> list[int]:
        """Columns of the density in the table's order."""
        return sorted(columns, key=self.rank.tolist().__getitem__)

    def some_orders(self, number: int) -> list[list[int]]:
        """The first so many of the model's orders, its own sequence of them."""
        _check_orders(number)
        generator, rank = torch.Generator().manual_seed(ORDERS_SEED), self.rank.cpu()
        noise = torch.rand(number, len(rank) + 1, generator=generator)
        behind = noise[:, 1:] > noise[:, :1]
        behind[0] = False
        orders: list[list[int]] = (rank + len(rank) * behind).argsort(1).tolist()
        return orders

    def _log_prob(self, batch: Batch, orders: Sequence[Sequence[int]]) -> Tensor:
        rows = self.density.place(*batch)
        every = (torch.tensor(order, device=self.device).expand_as(rows.flat) for order in orders)
        return log_mean_exp(torch.stack([self.density(rows, order).sum(-1) for order in every]))

    def _drawn_orders(self, like: Tensor) -> Tensor:
        """An order for each row, (B, N), drawn on the device by sorting numbers: no host sync."""
        rows, columns = like.shape
        kind, share = torch.rand(2, rows, 1, device=like.device)
        noise = torch.rand(rows, columns, device=like.device)
        place = self.rank + columns * (noise > share)  # behind, where a column is not among those that come first
        asked = noise == noise.amax(1, keepdim=True)  # one of those behind, where there are any
        key = torch.where(kind < self.natural + self.given, torch.where(asked, columns - 0.5, place), noise)
        return torch.where(kind < self.natural, self.rank, key).argsort(1)

    @property
    def _rows_at_once(self) -> int:
        logits = ragged_cells(self.density.counts)
        numbers = self.density.columns * (12 * self.density.net.width + 6 * self.density.net.evidence) + 3 * logits
        most = NUMBERS_AT_ONCE.get(self.device.type, NUMBERS_ELSEWHERE) // numbers
        return max(1, most, min(FEWEST_AT_ONCE, MOST_LOGITS // logits))

    @property
    def _rows_drawn_at_once(self) -> int:
        return self._rows_at_most(NUMBERS_DRAWN_AT_ONCE.get(self.device.type, NUMBERS_ELSEWHERE))

    def _rows_at_most(self, numbers: int) -> int:
        """As many as have so many numbers in the keys and values of a layer and the probabilities of a column."""
        largest = max(self.density.counts)
        own = 2 * self.density.columns * self.density.net.width + 3 * largest
        return max(1, numbers // own, min(FEWEST_DRAWN, MOST_LOGITS // largest))

    def _check_columns(self, name: str, columns: Sequence[int]) -> None:
        if len(set(columns)) < len(columns) or not all(0 <= column < self.density.columns for column in columns):
            raise ValueError(
                f"{name}: got {list(columns)}; expected different columns, 0 to {self.density.columns - 1}"
            )


def _check_orders(orders: int) -> None:
    if orders < 1:
        raise ValueError(f"orders: got {orders}; expected at least 1")
