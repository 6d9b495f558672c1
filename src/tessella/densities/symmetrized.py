"""The mean of a density over symmetries."""

from math import log

import torch
from torch import Tensor

from tessella.densities.base import Density


class Symmetrized(Density):
    """p(x) = 1/S sum_g q(T_g x), for the S maps of a finite group, whose determinants are 1 or -1.

    p(T_g x) = p(x). Where T_g x is as likely as x, q's expected log-likelihood is that of every q(T_g x), and by
    Jensen's inequality p's is at least that: S views of one point, for S evaluations of q.

    Args:
        density: q, of vectors of R^D.
        maps: T, (S, D, D): those of a group, the inverse of each among them.

    >>> from tessella.densities import Gaussian
    >>> mirrored = Symmetrized(Gaussian((1,)), torch.tensor([[[1.0]], [[-1.0]]]))
    >>> mirrored.log_prob(torch.zeros(3, 1))
    tensor([-0.9189, -0.9189, -0.9189])
    """

    maps: Tensor

    def __init__(self, density: Density, maps: Tensor):
        super().__init__()
        (dim,) = density.event_shape
        if maps.dim() != 3 or len(maps) == 0 or maps.shape[1:] != (dim, dim):
            raise ValueError(f"maps: got shape {tuple(maps.shape)}; expected (S, D, D) = (S, {dim}, {dim}), S >= 1")
        volumes = maps.double().det().abs()
        if not torch.allclose(volumes, torch.ones_like(volumes)):
            raise ValueError(f"maps: got determinants up to sign {volumes.tolist()[:8]}; expected 1, those of a group")
        self.density, self.event_shape = density, density.event_shape
        self.register_buffer("maps", maps)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        each = torch.stack([self.density.log_prob(x @ one.mT, context) for one in self.maps])
        return each.logsumexp(0) - log(len(self.maps))

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        x = self.density.sample(shape, context)
        which = torch.randint(len(self.maps), x.shape[:-1], device=x.device)
        return (self.maps[which] @ x[..., None]).squeeze(-1)

    def initialize(self, x: Tensor, context: Tensor | None = None) -> None:
        self.density.initialize(x, context)
