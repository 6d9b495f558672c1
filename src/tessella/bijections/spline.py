"""The increasing piecewise rational map: bends of any number, and its inverse is a formula, too."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from tessella.bijections.elementwise import Elementwise, bounded_log_scale

EVEN = 0.01  # part of the interval that is shared equally: no piece is shorter than a hundredth of the mean one
STEEPEST = 1000.0  # slope at a knot; the flattest is its inverse


class RationalQuadratic(Elementwise):
    """y = y_k + h (s t^2 + d_k t (1 - t)) / (s + (d_k + d_(k+1) - 2 s) t (1 - t)),  t = (x - x_k) / w.

    In each of K pieces between knots (x_k, y_k), w wide, h high, of mean slope s = h / w, with slopes d_k and d_(k+1)
    at its ends. The first knot is (-b, -b), the last (b, b), with slope 1: outside of [-b, b] the map is the identity,
    and its derivative is continuous everywhere. With coefficients 0 all of it is the identity.

    Every sum is one of positive terms, s + (d_k + d_(k+1) - 2 s) t (1 - t) = s (t^2 + (1 - t)^2) + (d_k + d_(k+1)) t
    (1 - t), so that no digit is lost in single precision. The map is that of Durkan, Bekasov, Murray and Papamakarios,
    Neural Spline Flows (2019).

    Args:
        bins: K, at least 2.
        bound: b.

    >>> spline = RationalQuadratic(8)
    >>> spline.coefficients
    23
    >>> y, log_slope = spline.forward(torch.tensor([-9.0, 0.5]), torch.zeros(23, 2))
    >>> y.tolist(), log_slope.tolist()
    ([-9.0, 0.5], [0.0, 0.0])
    """

    def __init__(self, bins: int, bound: float = 5.0):
        if bins < 2:
            raise ValueError(f"bins: got {bins}; expected at least 2")
        if not bound > 0:
            raise ValueError(f"bound: got {bound}; expected a positive number")
        self.bins, self.bound, self.coefficients = bins, bound, 3 * bins - 1

    def forward(self, x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        at = x.clamp(-self.bound, self.bound)
        places_x, places_y, raw = self._knots(c)
        piece = _piece(_index(at, places_x), places_x, places_y, raw)
        t, rest = _parts(at - piece.x, piece.width)
        y = piece.y + piece.height * t * (piece.mean * t + piece.slope * rest) / _denominator(piece, t, rest)
        return self._within(x, y, _log_slope(piece, t, rest))

    def inverse(self, y: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        at = y.clamp(-self.bound, self.bound)
        places_x, places_y, raw = self._knots(c)
        piece = _piece(_index(at, places_y), places_x, places_y, raw)
        g, above = _parts(at - piece.y, piece.height)
        lead = piece.slope * above - piece.next_slope * g
        root = (lead.square() + 4 * piece.mean.square() * g * above).sqrt()  # never 0, so it has a derivative
        # The mirror image gives 1 - t; the difference itself could round to below 0, where a logarithm follows.
        t, rest = _solution(lead, root, piece.mean, g), _solution(-lead, root, piece.mean, above)
        return self._within(y, piece.x + piece.width * t, -_log_slope(piece, t, rest))

    def _knots(self, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x_k, y_k and what d_k is made of, 0 for slope 1, (*batch, K + 1, n) each."""
        widths, heights, raw = c.split([self.bins, self.bins, self.bins - 1], -2)
        return self._places(widths), self._places(heights), pad(raw, (0, 0, 1, 1))

    def _places(self, raw: Tensor) -> Tensor:
        """From -b to b; the ends are put there, since a sum of parts rounds."""
        parts = (1 - EVEN) * raw.softmax(-2) + EVEN / self.bins
        inner = self.bound * (2 * parts[..., :-1, :].cumsum(-2) - 1)
        return pad(pad(inner, (0, 0, 1, 0), value=-self.bound), (0, 0, 0, 1), value=self.bound)

    def _within(self, x: Tensor, y: Tensor, log_slope: Tensor) -> tuple[Tensor, Tensor]:
        inside = x.abs() < self.bound
        return torch.where(inside, y, x), torch.where(inside, log_slope, 0)


class _Piece(NamedTuple):
    """What is known of the piece that each point lies in, (*batch, n) each."""

    x: Tensor
    y: Tensor
    width: Tensor
    height: Tensor
    mean: Tensor
    slope: Tensor
    next_slope: Tensor


def _index(at: Tensor, places: Tensor) -> Tensor:
    """The piece of each point: how many inner knots are not beyond it, (*batch, n)."""
    return (at[..., None, :] >= places[..., 1:-1, :]).sum(-2)


def _piece(index: Tensor, places_x: Tensor, places_y: Tensor, raw: Tensor) -> _Piece:
    x, y, slope = (_pick(knots, index) for knots in (places_x, places_y, raw))
    next_x, next_y, next_slope = (_pick(knots, index + 1) for knots in (places_x, places_y, raw))
    width, height = next_x - x, next_y - y
    slope, next_slope = (bounded_log_scale(of, log(STEEPEST)).exp() for of in (slope, next_slope))
    return _Piece(x, y, width, height, height / width, slope, next_slope)


def _pick(knots: Tensor, index: Tensor) -> Tensor:
    return knots.expand(*index.shape[:-1], *knots.shape[-2:]).gather(-2, index[..., None, :]).squeeze(-2)


def _parts(run: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
    """r / w and 1 - r / w, neither negative, both with all their digits."""
    return run / whole, (whole - run) / whole


def _denominator(piece: _Piece, t: Tensor, rest: Tensor) -> Tensor:
    return piece.mean * (t.square() + rest.square()) + (piece.slope + piece.next_slope) * t * rest


def _log_slope(piece: _Piece, t: Tensor, rest: Tensor) -> Tensor:
    """log of s^2 (d_(k+1) t^2 + 2 s t (1 - t) + d_k (1 - t)^2) / (the denominator)^2."""
    top = piece.next_slope * t.square() + 2 * piece.mean * t * rest + piece.slope * rest.square()
    return 2 * piece.mean.log() + top.log() - 2 * _denominator(piece, t, rest).log()


def _solution(lead: Tensor, root: Tensor, mean: Tensor, g: Tensor) -> Tensor:
    """The t of g(t) = g: (s - b) t^2 + b t - s g = 0 with b = lead + 2 s g, in the form that does not cancel."""
    b = lead + 2 * mean * g
    large = b.abs() + root
    return torch.where(b < 0, large, 2 * mean * g) / torch.where(b < 0, 2 * (mean - b), large)
