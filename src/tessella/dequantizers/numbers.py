"""Numbers as points: a fixed monotone map for each column, and where the points of integers lie."""

from math import log, pi

import torch
from torch import Tensor, nn

from tessella.data.tables.shape import TableShape

KNOTS = 33
LONGEST_TAIL = 30.0  # in units of the map's image; exp(30) stays far from overflow
NARROWEST_PIECE = 1e-3  # of the median piece; narrower ones are joined
EDGE = 1e-15  # nearest that a point in a count's interval is taken to come to its ends


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


class Numbers(nn.Module):
    """Tokens of R numbers (B, R, D): coordinate 0 is T(t), T a fixed monotone map, the others are noise.

    A real number v that is present has t = v. Its noise u_0 is not needed: the model is given it as an independent
    standard normal, which keeps the bound valid and costs nothing once q(u_0) is normal, where it starts. An integer v
    has t = v + Phi(u_0), anywhere in [v, v + 1), evenly where q starts: the integral over t is a mass. A missing number
    has x_0 = u_0: it is integrated out.

    Args:
        shape: of the table.
    """

    whole: Tensor
    indicator: Tensor

    def __init__(self, shape: TableShape):
        super().__init__()
        self.scale = MonotoneMap(shape.numbers)
        self.register_buffer("whole", torch.tensor(shape.whole, dtype=torch.bool), persistent=False)
        self.register_buffer("indicator", torch.tensor(shape.indicators, dtype=torch.int64), persistent=False)

    def forward(self, u: Tensor, values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """Noise (B, R, D) -> points, and log T'(t) + log phi(u_0) of the numbers that are there, (B, R)."""
        u0 = u[..., 0]
        share = torch.special.ndtr(u0.double())
        image, log_slope = self.scale.forward_and_ladj(values + torch.where(self.whole, share, 0))
        log_slope = log_slope.to(u.dtype) - 0.5 * u0.square() - 0.5 * log(2 * pi)
        x0 = torch.where(present, self._project(image.to(u.dtype), values), u0)
        return torch.cat([x0[..., None], u[..., 1:]], -1), torch.where(present, log_slope, 0)

    def inverse(self, x: Tensor, values: Tensor, present: Tensor) -> Tensor:
        """The noise of points, (B, R, D); what a real number leaves unused is drawn anew."""
        share = (self.scale.inverse(x[..., 0].double()) - values).clamp(EDGE, 1 - EDGE)
        unused = torch.randn_like(x[..., 0])
        u0 = torch.where(self.whole, torch.special.ndtri(share).to(x.dtype), unused)
        return torch.cat([torch.where(present, u0, x[..., 0])[..., None], x[..., 1:]], -1)

    def present(self, codes: Tensor) -> Tensor:
        """Which numbers are there, by their indicators among the codes (B, G): (B, R)."""
        return (self.indicator < 0) | (codes[:, self.indicator.clamp_min(0)] == 1)

    def images(self, values: Tensor) -> Tensor:
        """T of the numbers, of the middle of its interval for an integer."""
        return self.scale.forward_and_ladj(values + 0.5 * self.whole)[0]

    def quantize(self, x0: Tensor) -> Tensor:
        """The numbers of points by their coordinate 0, (B, R), in double precision."""
        t = self.scale.inverse(x0.double())
        return torch.where(self.whole, t.floor(), t)

    @torch.no_grad()
    def arrange(self, values: Tensor, present: Tensor) -> None:
        """Maps that make training numbers (B, R), where present, look normal."""
        for j in range(values.shape[1]):
            t = values[:, j][present[:, j]]
            if len(t.unique()) > 1:
                self.scale.t[j], self.scale.z[j] = quantile_knots(t + torch.rand_like(t) * self.whole[j])
            elif len(t):  # the identity, around the only value
                self.scale.t[j] = t[0] + torch.linspace(-1, 1, KNOTS)

    def _project(self, image: Tensor, values: Tensor) -> Tensor:
        """An integer whose point rounding carried into the next interval goes to the middle of its own."""
        with torch.no_grad():
            missed = self.whole & (self.quantize(image) != values)
            middle = self.scale.forward_and_ladj(values + 0.5)[0].to(image.dtype)
        return torch.where(missed, middle, image)
