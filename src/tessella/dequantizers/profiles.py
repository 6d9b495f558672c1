"""Where learned cells start: categories that co-occur with the same others are neighbours."""

import torch
from torch import Tensor

MOST_ROWS = 200_000
MOST_PAIRS = 2**20
PSEUDO_ROWS = 2.0
MOST_SPREAD = 256
FILL_POINTS, FILL_SHARE, FILL_ROUNDS = 4000, 15, 30  # in all at least, for each category at least
JITTER = 0.1


def profile_positions(codes: Tensor, counts: tuple[int, ...], dim: int) -> Tensor:
    """Correspondence analysis of every variable against all others: (N, K, D), unit spread, a little jitter.

    The profile of category a of variable j is P(b | a) for every category b of every other variable, standardised as
    (P(b | a) - P(b)) / sqrt P(b) and shrunk towards 0 where a is rare. Its D leading principal components are the
    position of a. No order is assumed: where the categories of a variable have one, it shows in their profiles.

    Args:
        codes: rows, (B, N), of which the first 200,000 are used; pairs of variables with more than a million pairs of
            categories are left out.
    """
    codes = codes[:MOST_ROWS].cpu()
    shares = [torch.bincount(codes[:, j], minlength=count).double() / len(codes) for j, count in enumerate(counts)]
    positions = torch.zeros(len(counts), max(counts), dim)
    for j, count in enumerate(counts):
        others = [other for other in range(len(counts)) if other != j and count * counts[other] <= MOST_PAIRS]
        tables = [_profile(codes, counts, shares, j, other) for other in others]
        found = _components(torch.cat(tables, 1), shares[j], dim) if tables and count > 1 else torch.zeros(count, dim)
        positions[j, :count] = (found + JITTER * torch.randn(count, dim)).to(positions.dtype)
    return positions


def _profile(codes: Tensor, counts: tuple[int, ...], shares: list[Tensor], j: int, other: int) -> Tensor:
    """(P(b | a) - P(b)) / sqrt P(b), (K_j, K_other)."""
    rows, columns = counts[j], counts[other]
    pairs = (
        torch.bincount(codes[:, j] * columns + codes[:, other], minlength=rows * columns).view(rows, columns).double()
    )
    expected = shares[other]
    conditional = (pairs + PSEUDO_ROWS * expected) / (pairs.sum(1, keepdim=True) + PSEUDO_ROWS)
    return (conditional - expected) / expected.clamp_min(1 / len(codes)).sqrt()


def _components(profiles: Tensor, share: Tensor, dim: int) -> Tensor:
    """Leading principal coordinates of the rows, weighted by how often they occur; each of spread 1."""
    weight = share.clamp_min(1e-6).sqrt()[:, None]
    u, s, _ = torch.linalg.svd(weight * profiles, full_matrices=False)
    leading = min(dim, len(s))
    coordinates = torch.zeros(len(profiles), dim, dtype=profiles.dtype)
    coordinates[:, :leading] = u[:, :leading] * s[:leading] / weight
    spread = (share[:, None] * coordinates.square()).sum(0).sqrt().clamp_min(1e-6)
    return coordinates / spread


def spread_out(positions: Tensor, counts: tuple[int, ...], most: int = MOST_SPREAD) -> Tensor:
    """Positions (N, K, D) moved apart, neighbours staying neighbours: cells of one size that fill a ball.

    Lloyd's iteration: each position goes to the middle of the points of the ball that are nearest to it. The ball has
    radius K^(1/D). Variables of more than `most` categories are only scaled to the ball of that many.
    """
    spread = positions.clone()
    for j, count in enumerate(counts):
        dim = positions.shape[-1]
        radius = min(count, most) ** (1 / dim)
        points = max(FILL_POINTS, FILL_SHARE * min(count, most))
        ball = torch.randn(points, dim)
        ball = ball / ball.norm(dim=1, keepdim=True) * radius * torch.rand(points, 1) ** (1 / dim)
        here = positions[j, :count]
        here = here * radius / here.norm(dim=1).max().clamp_min(1e-6)
        for _ in range(FILL_ROUNDS if 1 < count <= most else 0):
            nearest = torch.cdist(ball, here).argmin(1)
            held = torch.bincount(nearest, minlength=count)[:, None]
            middle = torch.zeros_like(here).index_add(0, nearest, ball) / held.clamp_min(1)
            here = torch.where(held > 0, middle, ball[torch.randint(points, (count,))])
        spread[j, :count] = here
    return spread


def turned(positions: Tensor) -> Tensor:
    """Positions (*batch, D) in other axes, of which every half tells categories apart about as well as the other.

    Principal axes come in order of what they tell: of two categories everything lies in the first. Couplings see half
    of the coordinates, and would learn nothing of other variables from the half that is noise. The new axes are the
    cosines of frequencies 0, 1, ..., D - 1, which have one half of their length in the first half of the coordinates
    and one in the second (D even; so have they in odd and even ones).

    >>> turned(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([[ 0.7071,  0.7071],
            [ 0.7071, -0.7071]])
    """
    dim = positions.shape[-1]
    place = torch.arange(dim, dtype=positions.dtype, device=positions.device)
    waves = torch.cos(torch.pi / dim * (place + 0.5) * place[:, None])  # (frequency, coordinate)
    axes: Tensor = waves / waves.norm(dim=1, keepdim=True)
    return positions @ axes


def in_order(count: int, dim: int) -> Tensor:
    """Positions (K, D) on a line, evenly, as wide as `spread_out` makes them."""
    line = torch.zeros(count, dim)
    line[:, 0] = torch.linspace(-1, 1, count) * count ** (1 / dim)
    return line
