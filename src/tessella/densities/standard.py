"""Base densities: independent coordinates, nothing to learn."""

from collections.abc import Callable
from math import lgamma, log, pi

import torch
from torch import Tensor
from torch.nn import functional

from tessella.bijections.base import sum_trailing
from tessella.bijections.squashing import power
from tessella.densities.base import Density


class Gaussian(Density):
    """log p(u) = sum -u^2 / 2 - log(2 pi) / 2.

    >>> Gaussian((2,)).log_prob(torch.zeros(3, 2))[0]
    tensor(-1.8379)
    """

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = event_shape
        self.register_buffer("like", torch.zeros(()), persistent=False)  # carries device and dtype

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        return sum_trailing(-0.5 * x.square() - 0.5 * log(2 * pi), len(self.event_shape))

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        return torch.randn(*shape, *self.event_shape, dtype=self.like.dtype, device=self.like.device)


class StudentT(Density):
    """log p(u) = sum_tokens -(nu + D)/2 log(1 + |u|^2 / nu) + const: the multivariate t in the last dimension.

    Its tail is |u|^-(nu + D). With nu = 1 (multivariate Cauchy) that is what the map into a cell turns into a finite,
    positive density on the walls; a lighter tail vanishes there. Drawn as normal / sqrt(chi^2 / nu), the chi^2 a sum of
    nu squares: a differentiable function of normals that can be captured in a graph. Degrees that are no integer take a
    draw of the gamma distribution instead.
    """

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...], degrees: float = 1):
        super().__init__()
        if degrees < 1:
            raise ValueError(f"degrees: got {degrees}; expected at least 1")
        self.event_shape, self.degrees = event_shape, degrees
        dim = event_shape[-1]
        self.constant = lgamma((degrees + dim) / 2) - lgamma(degrees / 2) - dim / 2 * log(degrees * pi)
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        nu, dim = self.degrees, self.event_shape[-1]
        radius = x.square().sum(-1) / nu
        return sum_trailing(self.constant - (nu + dim) / 2 * torch.log1p(radius), len(self.event_shape) - 1)

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        tokens, dim = (*shape, *self.event_shape[:-1]), self.event_shape[-1]
        if self.degrees != int(self.degrees):
            u = torch.randn(*tokens, dim, dtype=self.like.dtype, device=self.like.device)
            half = self.like.new_full((*tokens, 1), self.degrees / 2)
            return u / (torch._standard_gamma(half) / half).sqrt()
        size = (*tokens, dim + int(self.degrees))
        u, chi = torch.randn(size, dtype=self.like.dtype, device=self.like.device).tensor_split([dim], -1)
        draws: Tensor = u / chi.square().mean(-1, keepdim=True).sqrt()
        return draws


class Ball(Density):
    """log p(u) = sum_tokens -(D + p)/p log(1 + |u|^p) - log V_D:  |u| = a_p^-1(|v|), v uniform in a token's unit ball.

    The map of cells with the profile a_p, applied to a ball and run backwards: in a cell it is spread evenly instead of
    thinning out towards the walls, and the weights p / q of a bound stay bounded there. The outermost shell
    |v| > 1 - 1e-5 is left out (and the density normalised without it): no draw is further out than 1e5.

    Args:
        event_shape: of the points.
        degrees: p, the power of the profile; 1 for the softsign.
    """

    like: Tensor
    inner = 1 - 1e-5

    def __init__(self, event_shape: tuple[int, ...], degrees: float = 1):
        super().__init__()
        self.event_shape, self.degrees = event_shape, degrees
        dim = event_shape[-1]
        inner = torch.tensor(self.inner, dtype=torch.float64)
        self.furthest = 1.01 * float(power(degrees).undo(inner, 1 - inner))  # 1%: rounding of draws at the edge
        self.constant = lgamma(dim / 2 + 1) - dim / 2 * log(pi) - dim * log(self.inner)
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        radius = x.square().sum(-1).add(torch.finfo(x.dtype).tiny).sqrt()
        value = self.constant + power(self.degrees).log_volume(radius, self.event_shape[-1])
        return sum_trailing(torch.where(radius <= self.furthest, value, -torch.inf), len(self.event_shape) - 1)

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        size = (*shape, *self.event_shape)
        normal = torch.randn(size, dtype=self.like.dtype, device=self.like.device)
        direction = normal / normal.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(normal.dtype).tiny)
        share = torch.rand(*size[:-1], 1, dtype=self.like.dtype, device=self.like.device)
        radius = self.inner * share ** (1 / self.event_shape[-1])
        draws: Tensor = direction * power(self.degrees).undo(radius, 1 - radius)
        return draws


class Logistic(Density):
    """log p(u) = sum log sigmoid(u) + log sigmoid(-u): the logit of a uniform variable."""

    like: Tensor

    def __init__(self, event_shape: tuple[int, ...]):
        super().__init__()
        self.event_shape = event_shape
        self.register_buffer("like", torch.zeros(()), persistent=False)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        return sum_trailing(functional.logsigmoid(x) + functional.logsigmoid(-x), len(self.event_shape))

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        share = torch.rand(*shape, *self.event_shape, dtype=self.like.dtype, device=self.like.device)
        eps = torch.finfo(share.dtype).eps
        return share.clamp(eps, 1 - eps).logit()


BASES: dict[str, Callable[[tuple[int, ...]], Density]] = {
    "gaussian": Gaussian,
    "student": StudentT,
    "ball": Ball,
    "logistic": Logistic,
}


def base_in_cells(name: str, event_shape: tuple[int, ...], degrees: float) -> Density:
    """The base of that name; those whose tails follow the profile of cells, Student's t and the ball, do so."""
    following: dict[str, Callable[[tuple[int, ...], float], Density]] = {"student": StudentT, "ball": Ball}
    return following[name](event_shape, degrees) if name in following else BASES[name](event_shape)
