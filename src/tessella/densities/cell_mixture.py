"""Latent classes over modes: a base density that can start from a mixture of categoricals."""

from collections.abc import Sequence
from math import log, pi

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.densities.base import Density

LEAST = 1e-4  # of every class's law goes evenly to all modes, so that no point has probability 0


class CellMixture(Density):
    """p(x) = sum_m w_m prod_j sum_k P_mj(k) N(x_j; c_jk, diag s_jk^2): points come in M classes, token j in K_j modes.

    With the modes at the anchors of a tessellation, and narrow, this is the mixture of products of categoricals with
    weights w_m and tables P_mj; layers of a flow in front of it refine that. All parameters are learned.

    Args:
        counts: number of modes K_j of each of the N tokens.
        dim: D, coordinates of a token.
        classes: M.

    >>> CellMixture((2, 3), dim=2, classes=4).sample((5,)).shape
    torch.Size([5, 2, 2])
    """

    def __init__(self, counts: Sequence[int], dim: int, classes: int):
        super().__init__()
        if classes < 1:
            raise ValueError(f"classes: got {classes}; expected at least 1")
        self.counts, self.event_shape = tuple(counts), (len(counts), dim)
        modes = sum(counts)
        self.centre = nn.Parameter(torch.randn(modes, dim))
        self.log_scale = nn.Parameter(torch.zeros(modes, dim))
        self.logit = nn.Parameter(torch.zeros(modes, classes))
        self.log_weight = nn.Parameter(torch.zeros(classes))

    def log_prob(self, x: Tensor, context: None = None) -> Tensor:
        by_class = self.log_weight.log_softmax(0)
        for j, (centre, log_scale, table) in enumerate(self._tokens()):
            z = (x[..., j, None, :] - centre) * (-log_scale).exp()
            kernel = -0.5 * z.square().sum(-1) - log_scale.sum(-1)  # (*batch, K_j)
            highest = kernel.detach().amax(-1, keepdim=True)
            by_class = by_class + ((kernel - highest).exp() @ table).log() + highest
        return by_class.logsumexp(-1) - 0.5 * x.shape[-1] * x.shape[-2] * log(2 * pi)

    def sample(self, shape: tuple[int, ...], context: None = None) -> Tensor:
        size = torch.Size(shape).numel()
        classes = torch.multinomial(self.log_weight.softmax(0), size, replacement=True)
        points = []
        for centre, log_scale, table in self._tokens():
            mode = torch.multinomial(table.mT[classes], 1)[:, 0]
            points.append(torch.addcmul(centre[mode], log_scale[mode].exp(), torch.randn_like(centre[mode])))
        return torch.stack(points, 1).view(*shape, *self.event_shape)

    @torch.no_grad()
    def start(self, log_weight: Tensor, log_table: Tensor, centre: Tensor, scale: Tensor) -> None:
        """Begin with this mixture and these modes.

        Args:
            log_weight: log w_m, (M).
            log_table: log P_mj(k), tokens below each other, (sum K_j, M).
            centre, scale: c and s, (sum K_j, D) each.
        """
        for name, parameter, value in (
            ("log_weight", self.log_weight, log_weight),
            ("log_table", self.logit, log_table.clamp_min(log(LEAST) - 5)),
            ("centre", self.centre, centre),
            ("scale", self.log_scale, scale.log()),
        ):
            if value.shape != parameter.shape:
                raise ValueError(f"{name}: got shape {tuple(value.shape)}; expected {tuple(parameter.shape)}")
            checks.finite(name, value)
            parameter.copy_(value)

    def _tokens(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Of each token: centres and log-scales of its modes, (K_j, D), and their probabilities in the classes."""
        parts = zip(*(t.split(self.counts) for t in (self.centre, self.log_scale, self.logit)), strict=True)
        return [(c, s, (1 - LEAST) * logit.softmax(0) + LEAST / len(c)) for c, s, logit in parts]
