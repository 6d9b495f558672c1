"""q(x | set): noise that depends on all items of a set, mapped into the regions of each."""

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.flow import SetFlowDensity
from tessella.dequantizers.cells import Cells, projected
from tessella.dequantizers.dequantizer import same_place
from tessella.dequantizers.learned import VoronoiCells
from tessella.dequantizers.profiles import profile_positions, spread_out, turned
from tessella.nets import Transformer

MOST_PLACED = 2**21  # pairs of items; more, and anchors start at random
MOST_SPREAD = 2**11  # items that are moved apart


class SetContext(nn.Module):
    """Items -> what the noise is told of each: 1 where it exists, its embedding, and what attention adds to that.

    Args:
        items: K.
        size: of an embedding.
        width: of the network.
        fast: see `Transformer`.
    """

    def __init__(self, items: int, size: int, width: int, fast: bool = False):
        super().__init__()
        self.embedding = nn.Embedding(items, size)
        self.mix = Transformer(size, size, width, 1, positions=None, fast=fast)

    def forward(self, items: Tensor, mask: Tensor | None) -> Tensor:
        """(B, n) -> (B, n, 1 + size)."""
        embedded = self.embedding(items)
        known = embedded + self.mix(embedded, mask=mask)
        exists = torch.ones_like(known[..., :1]) if mask is None else mask[..., None].to(known)
        return torch.cat([exists, known], -1)


class SetDequantizer(nn.Module):
    """x_j = f(u_j, k_j), u ~ noise(. | all items);  log q(x | items) = log noise(u) - sum_j ladj_j.

    All items share one geometry, so that q is permuted as the items are.

    Args:
        shape: of the sets.
        cells: the geometry of K items.
        noise: conditional density over (n, D) points.
        context: what the noise is told.
    """

    def __init__(self, shape: SetShape, cells: Cells, noise: SetFlowDensity, context: SetContext):
        super().__init__()
        self.shape, self.cells, self.noise, self.context = shape, cells, noise, context

    def dequantize(self, items: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Sets (B, n) -> points (B, n, D) in the items' regions, 0 where there is no item, and log q (B)."""
        self._check(items, mask)
        u, log_noise = self.noise.sample_and_log_prob((len(items),), self._context(items, mask))
        x, ladj = self.cells.forward(u, items)
        x = projected(self.cells, x, items)
        return x * mask[..., None], log_noise - (ladj * mask).sum(-1)

    def log_prob(self, x: Tensor, items: Tensor, mask: Tensor) -> Tensor:
        """log q(x | items) of given points (B, n, D), -inf outside of the items' regions: (B)."""
        self._check(items, mask)
        at = torch.where(mask[..., None], x, self.cells.centre(items).to(x.dtype))
        u, ladj = self.cells.inverse(at, items)
        inside = same_place(self.cells.forward(u, items)[0], at)
        log_q = self.noise.log_prob(u * mask[..., None], self._context(items, mask)) + (ladj * mask).sum(-1)
        return torch.where(inside, log_q, -torch.inf)

    def quantize(self, x: Tensor, mask: Tensor) -> Batch:
        """Points (B, n, D) -> (items, mask); items may repeat."""
        return self.cells.quantize(x).masked_fill(~mask, 0), mask

    @torch.no_grad()
    def arrange(self, items: Tensor, mask: Tensor) -> None:
        """Anchors where training sets suggest, apart; fixed geometries stay."""
        if not isinstance(self.cells, VoronoiCells) or self.cells.placement == "random":
            return
        if self.shape.items**2 <= MOST_PLACED:
            self.cells.map.tessellation.move_anchors(item_positions(self.shape.items, items, mask, self.cells.dim))
        self.cells.narrow(self.cells.spread)

    def spread(self) -> Tensor:
        """Standard deviation of the noise around the middle of each item's region at the start, (K, D)."""
        if isinstance(self.cells, VoronoiCells):
            return self.cells.map.log_scale.exp()[:, None].expand(-1, self.cells.dim)
        return torch.ones(self.shape.items, self.cells.dim)

    def _check(self, items: Tensor, mask: Tensor) -> None:
        self.shape.check(items, mask)
        if items.shape[1] != self.shape.most:
            raise ValueError(
                f"items: got {items.shape[1]} columns; expected {self.shape.most} columns, padded where a set has "
                f"fewer items (PaddedSets(..., size={self.shape.most}))"
            )

    def _context(self, items: Tensor, mask: Tensor) -> Tensor:
        known: Tensor = self.context(items, None if self.shape.one_size else mask)
        return known


def item_positions(number: int, items: Tensor, mask: Tensor, dim: int) -> Tensor:
    """Where items lie at first, (K, D): those that are in sets with the same others are neighbours, all are apart.

    Correspondence analysis of pairs of items in one set, either way round.
    """
    n = items.shape[1]
    first, second = torch.triu_indices(n, n, 1) if n > 1 else torch.zeros(2, 1, dtype=torch.int64)
    both = (mask[:, first] & mask[:, second]).flatten()
    pairs = torch.stack([items[:, first].flatten()[both], items[:, second].flatten()[both]], 1).cpu()
    if not len(pairs):
        return torch.randn(number, dim)
    pairs = torch.cat([pairs, pairs.flip(1)])
    positions = profile_positions(pairs[torch.randperm(len(pairs))], (number, number), dim)[:1]
    return turned(spread_out(positions, (number,), most=MOST_SPREAD))[0]
