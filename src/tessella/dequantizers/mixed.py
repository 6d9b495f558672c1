"""Rows of categories and numbers as points: one dequantizer, one joint likelihood.

A row is one vector of double precision: first the codes of G categorical variables, then R numbers in their own units.
Every variable is a token of D coordinates. A category lies in its cell. A number lies at coordinate 0 of its token,
after a fixed monotone map; the other D - 1 coordinates are noise that the density models too (an augmented flow).

    log p(codes, numbers) >= E_q [ log p(x) - log q(x | codes, numbers) ]

p is a mass in the categories and counts and a density, per unit of the column, in the real numbers.
"""

from collections.abc import Sequence
from math import log, pi

import torch
from torch import Tensor, nn

from tessella.densities import Density
from tessella.dequantizers.cells import NARROW, Cells, VoronoiCells
from tessella.dequantizers.components import Components
from tessella.dequantizers.dequantizer import Dequantizer, same_place
from tessella.dequantizers.profiles import in_order, profile_positions, spread_out
from tessella.nets import TokenTransformer

KNOTS = 33
LONGEST_TAIL = 30.0  # in units of the map's image; exp(30) stays far from overflow
NARROWEST_PIECE = 1e-3  # of the median piece; narrower ones are joined
EDGE = 1e-15  # nearest that a point in a count's interval is taken to come to its ends
BINS = 8  # of the numbers, where categories look for the company they keep


class MonotoneMap(nn.Module):
    """z = T(t): linear between knots (t_i, z_i), z_K + log(1 + T'(t_K) (t - t_K)) beyond them; T' > 0 everywhere.

    The logarithm keeps outliers near: every finite number has a finite image and a positive density. Everything is in
    double precision, since t comes in the units of the table.

    Args:
        columns: number of maps R, side by side; each starts as the identity on [-1, 1].
    """

    t: Tensor
    z: Tensor

    def __init__(self, columns: int):
        super().__init__()
        for name in ("t", "z"):
            self.register_buffer(name, torch.linspace(-1, 1, KNOTS, dtype=torch.float64).repeat(columns, 1))

    def forward_and_ladj(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """t (B, R) -> T(t) and log T'(t)."""
        (t0, z0), slope = self._piece(self.t, t)
        over, under = (t - self.t[:, -1]).clamp_min(0), (self.t[:, 0] - t).clamp_min(0)
        beyond = torch.log1p(slope * (over + under))
        outside = torch.where(over > 0, self.z[:, -1] + beyond, self.z[:, 0] - beyond)
        return torch.where(over + under > 0, outside, z0 + slope * (t - t0)), slope.log() - beyond

    def inverse(self, z: Tensor) -> Tensor:
        """z (B, R) -> t; tails end after `LONGEST_TAIL`."""
        (t0, z0), slope = self._piece(self.z, z)
        over = (z - self.z[:, -1]).clamp(0, LONGEST_TAIL)
        under = (self.z[:, 0] - z).clamp(0, LONGEST_TAIL)
        beyond = torch.expm1(over + under) / slope
        outside = torch.where(over > 0, self.t[:, -1] + beyond, self.t[:, 0] - beyond)
        return torch.where(over + under > 0, outside, t0 + (z - z0) / slope)

    def _piece(self, knots: Tensor, values: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
        """Start and slope of the piece that each value lies in, or of the outermost one."""
        right = torch.searchsorted(knots, values.detach().mT.contiguous(), right=True).clamp(1, KNOTS - 1)
        t0, t1, z0, z1 = (ends.gather(1, i).mT for ends in (self.t, self.z) for i in (right - 1, right))
        return (t0, z0), (z1 - z0) / (t1 - t0)


def quantile_knots(values: Tensor) -> tuple[Tensor, Tensor]:
    """Knots (t, z) that make the values look normal: z_i = ndtri(p_i) at their p_i-quantiles t_i, (KNOTS,) each.

    Repeated values are one knot, at the mean of its z; the widest pieces are halved, which changes nothing, until there
    are enough. Needs at least two different values.
    """
    ordered = values.double().sort().values
    edge = 0.5 / len(ordered)
    p = torch.linspace(0, 1, KNOTS, dtype=torch.float64).clamp(edge, 1 - edge)
    t, z = ordered[(p * (len(ordered) - 1)).round().long()], torch.special.ndtri(p)
    t[0], t[-1] = ordered[0], ordered[-1]
    t, inverse, times = t.unique(return_inverse=True, return_counts=True)
    z = torch.zeros_like(t).index_add(0, inverse, z) / times
    least = NARROWEST_PIECE * t.diff().median()
    kept = [0]
    for i in range(1, len(t)):
        if t[i] - t[kept[-1]] >= least:
            kept.append(i)
    return _halve_widest(t[kept], z[kept])


def _halve_widest(t: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    while len(t) < KNOTS:
        i = int(t.diff().argmax())
        t, z = (torch.cat([ends[: i + 1], ends[i : i + 2].mean()[None], ends[i + 1 :]]) for ends in (t, z))
    return t, z


class MixedContext(nn.Module):
    """Codes (B, G) and images of numbers (B, R) -> what q is conditioned on, (B, G + R, size).

    A code has an embedding, a number z the line z a + b; a network lets them see each other.
    """

    first: Tensor

    def __init__(self, counts: Sequence[int], numbers: int, size: int, width: int):
        super().__init__()
        ends = torch.tensor(counts).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(counts), persistent=False)
        self.embedding = nn.Embedding(int(ends[-1]), size)
        self.slope, self.offset = (nn.Parameter(torch.randn(numbers, size)) for _ in range(2))
        self.mix = TokenTransformer(len(counts) + numbers, size, size, width, 1)

    def forward(self, codes: Tensor, z: Tensor) -> Tensor:
        """(B, G), (B, R) -> (B, G + R, size)."""
        numbers = z[..., None].to(self.slope) * self.slope + self.offset
        embedded = torch.cat([self.embedding(codes + self.first), numbers], 1)
        return embedded + self.mix(embedded)


class MixedDequantizer(Dequantizer):
    """x = [cells of the codes; T(t), noise for the numbers], with noise u ~ q(u | row).

    A real number v that is present has t = v. Its token's noise u_0 is not needed: the model is given it as an
    independent standard normal, which keeps the bound valid and costs nothing once q(u_0) is normal, where it starts.
    A count v has t = v + Phi(u_0), anywhere in [v, v + 1), evenly where q starts: the integral over t is a mass.
    A missing number has x_0 = u_0: it is integrated out. With phi = Phi' the standard normal density, in both cases

        log q = log q(u | row) - sum_cells ladj - sum_present [ log T'(t) + log phi(u_0) ]

    Args:
        cells: geometry of the G categorical variables.
        noise: conditional density over (G + R, D) points.
        context: a `MixedContext`.
        unit: for each number whether it is a count, (R,).
        indicators: for each number the variable among the G that says whether it is there (1) or something else is to
            be said instead (missing, an atom); -1 where it always is there, (R,).
    """

    unit: Tensor
    indicator: Tensor

    def __init__(
        self, cells: Cells, noise: Density, context: nn.Module, unit: Sequence[bool], indicators: Sequence[int]
    ):
        super().__init__(cells, noise, context)
        self.scale = MonotoneMap(len(unit))
        self.register_buffer("unit", torch.tensor(unit, dtype=torch.bool), persistent=False)
        self.register_buffer("indicator", torch.tensor(indicators, dtype=torch.int64), persistent=False)

    def dequantize(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (B, G + R) -> points (B, G + R, D) with quantize(x) = rows up to rounding of reals, and log q (B)."""
        codes, values = self._split(codes)
        self._check(codes)
        present = self._present(codes)
        seen = torch.where(present, self._images(values), 0)
        u, log_noise = self.noise.sample_and_log_prob((len(codes),), self.context(codes, seen))
        x, ladj = self.cells.forward(u[:, : codes.shape[1]], codes)
        numbers, log_slope = self._forward_numbers(u[:, codes.shape[1] :], values, present)
        log_q = log_noise - ladj.sum(-1) - log_slope.sum(-1)
        return torch.cat([self._project(x, codes), numbers], 1), log_q

    def log_prob(self, x: Tensor, codes: Tensor) -> Tensor:
        """log q(x, u_0 | row) - log phi(u_0), -inf outside the row's region: (B, G + R, D), (B, G + R) -> (B).

        u_0 is the noise that present real numbers leave unused: it cannot be read off their points and is drawn anew,
        u_0 ~ phi, so that the mean of exp of the value is q(x | row). Where no real number is present nothing is drawn.
        """
        codes, values = self._split(codes)
        self._check(codes)
        present, categories = self._present(codes), codes.shape[1]
        u, ladj = self.cells.inverse(x[:, :categories], codes)
        noise = self._inverse_numbers(x[:, categories:], values, present)
        again, log_slope = self._forward_numbers(noise, values, present)
        inside = self._inside(x[:, :categories], u, codes) & same_place(again, x[:, categories:])
        seen = torch.where(present, self._images(values), 0)
        log_noise = self.noise.log_prob(torch.cat([u, noise], 1), self.context(codes, seen))
        return torch.where(inside, log_noise + ladj.sum(-1) - log_slope.sum(-1), -torch.inf)

    def quantize(self, x: Tensor) -> Tensor:
        """Points (B, G + R, D) -> rows (B, G + R) in double precision; 0 where a number is missing."""
        categories = len(self.cells.counts)
        codes = self.cells.quantize(x[:, :categories])
        values = self._values(x[:, categories:, 0])
        return torch.cat([codes.double(), torch.where(self._present(codes), values, 0)], 1)

    @torch.no_grad()
    def arrange(self, rows: Tensor, ordinal: Sequence[bool]) -> None:
        """Start from training rows (B, G + R): maps at the numbers' quantiles, anchors where profiles say, apart.

        Args:
            rows: training rows.
            ordinal: for each categorical variable whether its codes have an order, which coordinate 0 then follows.
        """
        codes, values = self._split(rows)
        present = self._present(codes)
        for j in range(values.shape[1]):
            t = values[:, j][present[:, j]]
            if len(t.unique()) > 1:
                self.scale.t[j], self.scale.z[j] = quantile_knots(t + torch.rand_like(t) * self.unit[j])
            elif len(t):  # the identity, around the only value
                self.scale.t[j] = t[0] + torch.linspace(-1, 1, KNOTS)
        assert isinstance(self.cells, VoronoiCells)
        bins = (torch.special.ndtr(self._images(values)) * BINS).long().clamp(0, BINS - 1)
        counts = self.cells.counts
        every = torch.cat([codes, bins], 1)
        positions = profile_positions(every, (*counts, *[BINS] * bins.shape[1]), self.cells.dim)
        positions = spread_out(positions[: len(counts), : max(counts)], counts)
        for j, count in enumerate(counts):
            if ordinal[j]:
                positions[j, :count] = in_order(count, self.cells.dim)
        self.cells.map.tessellation.move_anchors(positions)
        self.cells.narrow(NARROW)

    def components_of_rows(self, modes: Components, rows: Tensor) -> Tensor:
        """The mode in which each token of a row (B, G + R) lies when noise is narrow; a missing number's is random."""
        codes, values = self._split(rows)
        missing = torch.randn(values.shape, dtype=values.dtype, device=values.device)
        return modes.of_rows(codes, torch.where(self._present(codes), self._images(values), missing))

    def _split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        categories = len(self.cells.counts)
        return rows[:, :categories].long(), rows[:, categories:].double()

    def _present(self, codes: Tensor) -> Tensor:
        return (self.indicator < 0) | (codes[:, self.indicator.clamp_min(0)] == 1)

    def _images(self, values: Tensor) -> Tensor:
        """T of the numbers, of the middle of its interval for a count."""
        return self.scale.forward_and_ladj(values + 0.5 * self.unit)[0]

    def _values(self, z: Tensor) -> Tensor:
        t = self.scale.inverse(z.double())
        return torch.where(self.unit, t.floor(), t)

    def _forward_numbers(self, u: Tensor, values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """Noise (B, R, D) -> points and the log-derivatives (B, R) that go with them."""
        u0 = u[..., 0]
        share = torch.special.ndtr(u0.double())
        image, log_slope = self.scale.forward_and_ladj(values + torch.where(self.unit, share, 0))
        log_slope = log_slope.to(u.dtype) - 0.5 * u0.square() - 0.5 * log(2 * pi)
        x0 = torch.where(present, self._project_counts(image.to(u.dtype), values), u0)
        return torch.cat([x0[..., None], u[..., 1:]], -1), torch.where(present, log_slope, 0)

    def _inverse_numbers(self, x: Tensor, values: Tensor, present: Tensor) -> Tensor:
        """The inverse of `_forward_numbers` in the noise, (B, R, D); what a real number leaves unused is drawn anew."""
        share = (self.scale.inverse(x[..., 0].double()) - values).clamp(EDGE, 1 - EDGE)
        unused = torch.randn_like(x[..., 0])
        u0 = torch.where(self.unit, torch.special.ndtri(share).to(x.dtype), unused)
        return torch.cat([torch.where(present, u0, x[..., 0])[..., None], x[..., 1:]], -1)

    def _project_counts(self, image: Tensor, values: Tensor) -> Tensor:
        """A count whose point rounding carried into the next interval goes to the middle of its own."""
        with torch.no_grad():
            missed = self.unit & (self._values(image) != values)
            middle = self.scale.forward_and_ladj(values + 0.5)[0].to(image.dtype)
        return torch.where(missed, middle, image)
