"""q(x | row): noise that depends on the row, mapped into the regions of its codes and to its numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.contracts import Batch
from tessella.densities import Density
from tessella.dequantizers.cells import Cells, projected
from tessella.dequantizers.components import Components
from tessella.dequantizers.learned import NARROW, VoronoiCells
from tessella.dequantizers.numbers import Numbers
from tessella.dequantizers.profiles import in_order, profile_positions, spread_out

# Rounding moves a point near a wall by less than this, there and back; points outside their region come back elsewhere.
SAME_PLACE = 1e-2
BINS = 8  # of the numbers, where categories are compared by what they co-occur with


class Dequantizer(nn.Module):
    """x = f(u, codes), u ~ noise(. | context(codes));  log q(x | codes) = log noise(u) - ladj.

    Every variable is a token of D coordinates. A category lies in its cell; a number lies at coordinate 0 of its token
    (see `Numbers`), and with phi the standard normal density

        log q = log noise(u | row) - sum_cells ladj - sum_present [ log T'(t) + log phi(u_0) ]

    Args:
        cells: the geometry of the G categorical variables.
        noise: conditional density over (G + R, D) points; its context is what `context` returns.
        context: a `RowContext`, (codes, images of numbers) -> what the noise is conditioned on.
        numbers: the R numbers, where there are some.
    """

    count: Tensor

    def __init__(self, cells: Cells, noise: Density, context: nn.Module, numbers: Numbers | None = None):
        super().__init__()
        self.cells, self.noise, self.context, self.numbers = cells, noise, context, numbers
        self.register_buffer("count", torch.tensor(cells.counts), persistent=False)

    def dequantize(self, codes: Tensor, values: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """A row (B, G), (B, R) -> points (B, G + R, D) with quantize(x) = row, and log q(x | row) (B); reparameterised.

        Real numbers come back up to rounding.
        """
        self._check(codes, values)
        u, log_noise = self.noise.sample_and_log_prob((len(codes),), self._context(codes, values))
        x, ladj = self.cells.forward(u[:, : codes.shape[1]], codes)
        x, log_q = projected(self.cells, x, codes), log_noise - ladj.sum(-1)
        if self.numbers is None or values is None:
            return x, log_q
        points, log_slope = self.numbers.forward(u[:, codes.shape[1] :], values, self.numbers.present(codes))
        return torch.cat([x, points], 1), log_q - log_slope.sum(-1)

    def log_prob(self, x: Tensor, codes: Tensor, values: Tensor | None = None) -> Tensor:
        """log q(x | row) of given points (B, G + R, D), -inf outside the region of their row: (B).

        The noise u_0 that present real numbers leave unused cannot be read off their points and is drawn anew,
        u_0 ~ phi, so that the mean of exp of the value is q(x | row). Without such numbers nothing is drawn.
        """
        self._check(codes, values)
        at, points = x.split([codes.shape[1], x.shape[1] - codes.shape[1]], 1)
        u, ladj = self.cells.inverse(at, codes)
        inside, log_q = self._inside(at, u, codes), ladj.sum(-1)
        if self.numbers is not None and values is not None:
            present = self.numbers.present(codes)
            noise = self.numbers.inverse(points, values, present)
            again, log_slope = self.numbers.forward(noise, values, present)
            inside, log_q = inside & same_place(again, points), log_q - log_slope.sum(-1)
            u = torch.cat([u, noise], 1)
        log_q = log_q + self.noise.log_prob(u, self._context(codes, values))
        return torch.where(inside, log_q, -torch.inf)

    def quantize(self, x: Tensor) -> Batch:
        """Points (B, G + R, D) -> codes (B, G), and numbers (B, R), 0 where one is not there, if there are some."""
        categories = len(self.cells.counts)
        codes = self.cells.quantize(x[:, :categories])
        if self.numbers is None:
            return (codes,)
        values = self.numbers.quantize(x[:, categories:, 0])
        return codes, torch.where(self.numbers.present(codes), values, 0)

    @torch.no_grad()
    def arrange(self, codes: Tensor, values: Tensor | None = None) -> None:
        """Start from training rows: maps at the numbers' quantiles, regions that can be moved where rows suggest."""
        if self.numbers is not None and values is not None:
            self.numbers.arrange(values, self.numbers.present(codes))
        self.cells.arrange(codes)

    @torch.no_grad()
    def arrange_apart(self, codes: Tensor, values: Tensor | None = None, *, ordered: Sequence[bool] = ()) -> None:
        """`arrange`, and anchors moved apart and the maps into cells narrow, so that noise stays near them.

        Args:
            codes, values: training rows.
            ordered: for each categorical variable whether its codes have an order, which coordinate 0 then follows.
        """
        assert isinstance(self.cells, VoronoiCells)
        counts, dim, seen = self.cells.counts, self.cells.dim, (*self.cells.counts,)
        if self.numbers is not None and values is not None:
            self.numbers.arrange(values, self.numbers.present(codes))
            bins = (torch.special.ndtr(self.numbers.images(values)) * BINS).long().clamp(0, BINS - 1)
            codes, seen = torch.cat([codes, bins], 1), (*counts, *[BINS] * bins.shape[1])
        positions = spread_out(profile_positions(codes, seen, dim)[: len(counts), : max(counts)], counts)
        for j, count in enumerate(counts):
            if ordered and ordered[j]:
                positions[j, :count] = in_order(count, dim)
        self.cells.map.tessellation.move_anchors(positions)
        self.cells.narrow(NARROW)

    def components_of_rows(self, components: Components, codes: Tensor, values: Tensor | None = None) -> Tensor:
        """The component in which each token of a row lies when noise is narrow, (B, G + R).

        That of a number that is not there is random.
        """
        if self.numbers is None or values is None:
            return components.of_rows(codes, codes.new_empty(len(codes), 0, dtype=torch.float64))
        missing = torch.randn(values.shape, dtype=values.dtype, device=values.device)
        images = torch.where(self.numbers.present(codes), self.numbers.images(values), missing)
        return components.of_rows(codes, images)

    def _context(self, codes: Tensor, values: Tensor | None) -> Tensor | None:
        if self.numbers is None or values is None:
            given: Tensor | None = self.context(codes)
        else:
            given = self.context(codes, torch.where(self.numbers.present(codes), self.numbers.images(values), 0))
        return given

    def _inside(self, x: Tensor, u: Tensor, codes: Tensor) -> Tensor:
        """Whether the noise u leads back to the points: fixed geometries leave space that is nobody's, (B)."""
        return same_place(self.cells.forward(u, codes)[0], x)

    def _check(self, codes: Tensor, values: Tensor | None) -> None:
        checks.indices("codes", codes, (len(codes), len(self.cells.counts)), self.count)
        if (values is None) != (self.numbers is None):
            expected = "none" if self.numbers is None else f"numbers (B, {len(self.numbers.whole)})"
            raise ValueError(
                f"values: got {'none' if values is None else 'some'} beside the codes; expected {expected}"
            )


def same_place(x: Tensor, y: Tensor) -> Tensor:
    """Whether points (B, N, D) differ by rounding only, all N of them: (B)."""
    return ((x - y).abs() < SAME_PLACE * (1 + y.abs())).flatten(1).all(1)
