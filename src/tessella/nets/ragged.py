"""Categories of many variables at once, where some have two and others thousands."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.nets.linear import linear

SMALL = 63  # categories; variables of at most so many are computed together
HAND = 16
LEAST = 1e-30  # of a probability whose logarithm is taken


class Mixed(NamedTuple):
    """sum_m r_m P_m(k): probabilities of categories as M components have them, and how likely each component is."""

    posterior: Tensor
    """r of every variable, (B, N, M)."""
    share: Tensor
    """P_m of all categories of all variables, (sum K, M)."""

    def some(self, variables: Tensor | slice) -> "Mixed":
        """Of some of the variables."""
        return Mixed(self.posterior[:, variables], self.share)


class RaggedLogits(nn.Module):
    """log P_j(k | h_j) = log softmax_k(w_jk . h_j + b_jk), for N variables j of K_j categories.

    The tables w (sum K, width) and b (sum K) are flat: variable j owns the entries offset_j, ..., offset_j + K_j - 1.
    Variables with similarly many categories are computed as one rectangle, so that a column of names is not what the
    others pay for: at most twice the memory that the logits need, beyond the first 63 of a variable.

    Args:
        counts: K_j.

    >>> logits = RaggedLogits((2, 4))
    >>> logits(torch.randn(1, 2, 3), torch.zeros(6, 3), torch.zeros(6), torch.tensor([[0, 3]])).exp()
    tensor([[0.5000, 0.2500]])
    """

    by_size: Tensor | None
    back: Tensor

    def __init__(self, counts: Sequence[int]):
        super().__init__()
        self.counts = tuple(counts)
        groups = alike(counts)
        order = torch.tensor([j for group in groups for j in group])
        sorted_already = bool((order.diff() > 0).all())
        self.register_buffer("by_size", None if sorted_already else order, persistent=False)
        self.register_buffer("back", order.argsort(), persistent=False)
        self.sizes = [len(group) for group in groups]
        self.rectangles = nn.ModuleList(_Rectangle(counts, group) for group in groups)

    def forward(
        self, states: Tensor, weight: Tensor, bias: Tensor, codes: Tensor, mixed: Mixed | None = None
    ) -> Tensor:
        """States (B, N, width), tables w and b, codes (B, N) -> log P_j(c_j | h_j), (B, N).

        A mixture is multiplied by what the softmax is of: P_j(k) is proportional to exp(w_jk . h_j + b_jk) m_j(k).
        """
        if self.by_size is not None:
            states, codes = states.index_select(1, self.by_size), codes.index_select(1, self.by_size)
            mixed = None if mixed is None else mixed.some(self.by_size)
        found, last = [], 0
        for rectangle, size in zip(self.rectangles, self.sizes, strict=True):
            own, last = slice(last, last + size), last + size
            inner = None if mixed is None else mixed.some(own)
            found.append(rectangle(states[:, own], weight, bias, codes[:, own], inner))
        log_prob = torch.cat(found, 1)
        return log_prob if self.by_size is None else log_prob.index_select(1, self.back)

    def own(self, variable: int) -> slice:
        """Where the categories of a variable lie in the tables."""
        start = sum(self.counts[:variable])
        return slice(start, start + self.counts[variable])


class _Rectangle(nn.Module):
    """log P_j(c_j | h_j) of some variables, whose tables are one rectangle (n, K), K the largest of their counts."""

    entry: Tensor
    absent: Tensor

    def __init__(self, counts: Sequence[int], variables: Sequence[int]):
        super().__init__()
        own, count = torch.tensor(variables), torch.tensor(list(counts))
        self.alone = (
            slice(sum(counts[: variables[0]]), sum(counts[: variables[0] + 1])) if len(variables) == 1 else None
        )
        category = torch.arange(int(count[own].max()))
        absent = category >= count[own, None]
        entry = ((count.cumsum(0) - count)[own, None] + category).masked_fill(absent, 0)
        self.register_buffer("entry", entry, persistent=False)
        self.register_buffer("absent", absent, persistent=False)

    def forward(self, states: Tensor, weight: Tensor, bias: Tensor, codes: Tensor, mixed: Mixed | None) -> Tensor:
        """Of the states (B, n, width) and codes (B, n) of these variables: (B, n)."""
        if self.alone is not None:  # its tables are part of the others as they are: a million rows are not copied
            logits = linear(states[:, 0], weight[self.alone], bias[self.alone])
            if mixed is not None:
                logits = logits + log_mean(mixed.posterior[:, 0], mixed.share[self.alone])
            return -functional.cross_entropy(logits, codes[:, 0], reduction="none")[:, None]
        table = functional.embedding(self.entry, weight)  # (n, K, width)
        added = functional.embedding(self.entry, bias[:, None])[..., 0].masked_fill(self.absent, -torch.inf)
        logits = torch.baddbmm(added[:, None], states.transpose(0, 1), table.transpose(1, 2))  # (n, B, K)
        if mixed is not None:
            logits = logits + log_mean(mixed.posterior.transpose(0, 1), functional.embedding(self.entry, mixed.share))
        loss = functional.cross_entropy(logits.flatten(0, 1), codes.T.flatten(), reduction="none")
        return -loss.view(len(table), -1).T


def log_mean(posterior: Tensor, share: Tensor) -> Tensor:
    """log sum_m r_m P_m(k): (*batch, B, M), (*batch, K, M) -> (*batch, B, K).

    >>> log_mean(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.2, 0.4], [0.8, 0.6]])).exp()
    tensor([[0.3000, 0.7000]])
    """
    return (posterior @ share.mT).clamp_min(LEAST).log()


def draw(logits: Tensor, row: Tensor | None = None) -> Tensor:
    """k with probability P_k, P = softmax(logits): a category for each row, (n, K) -> (n).

    Many categories are dealt into hands of sixteen: first a hand is drawn, by the sum of its P_k, then one of them. So
    most of the sums are over many hands at once, where those from the first category to each are one after another.

    Args:
        logits: (n, K).
        row: draw from these rows of the logits instead, (B); what all draws from one share is computed once.

    >>> draw(torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]]))
    tensor([0, 1])
    """
    if logits.shape[1] <= 2 * HAND:
        return _choose(_rows(logits.softmax(-1), row))
    odd = -logits.shape[1] % HAND
    padded = functional.pad(logits, (0, odd), value=-torch.inf) if odd else logits
    dealt: Tensor = padded.softmax(-1).unflatten(-1, (HAND, -1))  # (n, HAND, hands)
    hand = _choose(_rows(dealt.sum(1), row))
    every = torch.arange(len(logits), device=logits.device) if row is None else row
    return _choose(dealt[every, :, hand]) * dealt.shape[2] + hand


def _rows(x: Tensor, row: Tensor | None) -> Tensor:
    return x if row is None else x.index_select(0, row)


def _choose(mass: Tensor) -> Tensor:
    """min {k : u < m_0 + ... + m_k}, u uniform below the sum of all: (B, K) -> (B). Sums are in double precision."""
    below = mass.cumsum(-1, dtype=torch.float64)
    level = torch.rand(len(below), 1, dtype=below.dtype, device=below.device) * below[:, -1:]
    return torch.searchsorted(below, level, right=True)[:, 0].clamp_max(below.shape[1] - 1)


def entropy(log_prob: Tensor) -> Tensor:
    """- sum_k P_k log P_k, (*batch, K) -> (*batch).

    >>> entropy(torch.tensor([0.0, -torch.inf]))
    tensor(0.)
    """
    found: Tensor = torch.special.entr(log_prob.exp()).sum(-1)
    return found


def alike(counts: Sequence[int]) -> list[list[int]]:
    """Variables with similarly many categories together.

    >>> alike([2, 20_000, 8, 300])
    [[0, 2], [3], [1]]
    """
    sizes = [max(SMALL, count).bit_length() for count in counts]
    return [[j for j, other in enumerate(sizes) if other == size] for size in sorted(set(sizes))]


def ragged_cells(counts: Sequence[int]) -> int:
    """Logits that `RaggedLogits` holds for a row."""
    return sum(len(group) * max(counts[j] for j in group) for group in alike(counts))
