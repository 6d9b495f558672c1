"""The density of the next point given a state: a mixture of logistics around the middles of the cells."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.bijections import Chain, ContextAffine
from tessella.densities import BlockParts, Density
from tessella.densities.couplings import flat_couplings
from tessella.dequantizers import Cells
from tessella.nets import MLP
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero

LEAST = 1e-8  # variance of a component at the start
GENTLE = 0.01  # times what networks say: noise in a cell is narrow, and a small shift takes a point far from all of it


class ConditionalLogistics(Density):
    """log p(x | h) = log sum_k w_k(h) prod_d l((y_d - x_kd) / s_kd - o_kd) / s_kd + log |dy/dx|,  y = f(x; h).

    l is the logistic density, and every character k has a component, close to the middle x_k of its cell and moving
    with it; a state weighs them. f is a conditional affine map and affine couplings of half of the coordinates given
    the other half, all of which begin as the identity.

    Args:
        cells: of the characters.
        context: size of h.
        blocks: couplings.
        width: of their networks, each of one hidden layer.
    """

    every: Tensor

    def __init__(self, cells: Cells, context: int, blocks: int, width: int):
        super().__init__()
        self.cells, self.event_shape = cells, (cells.dim,)
        characters = max(cells.counts)
        first = ContextAffine(_Gentle(zero(Linear(context, 2 * cells.dim))))
        rest = flat_couplings(cells.dim, blocks, width, 1, context, norm=False, parts=BlockParts(network=_gentle_mlp))
        self.bijection = Chain(first, *rest)
        self.weigh = zero(Linear(context, characters))
        self.offset = nn.Parameter(torch.zeros(characters, cells.dim))
        self.log_scale = nn.Parameter(torch.zeros(characters, cells.dim))
        self.register_buffer("every", torch.arange(characters)[None], persistent=False)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        y, ladj = self.bijection.forward_and_ladj(x, context)
        z = (y[..., None, :] - self._middle(x)) * (-self.log_scale).exp() - self.offset
        inside = functional.logsigmoid(z) + functional.logsigmoid(-z) - self.log_scale
        log_prob: Tensor = (self.weigh(context).log_softmax(-1) + inside.sum(-1)).logsumexp(-1) + ladj
        return log_prob

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        if context is None:
            raise TypeError("context: got None; expected states, one for each draw")
        return self.draw(context.expand(*shape, context.shape[-1]))

    def draw(self, context: Tensor, temperature: float = 1.0) -> Tensor:
        """Points given states (*batch, context); weights to the power of 1 / temperature."""
        weight = (self.weigh(context) / temperature).softmax(-1)
        chosen = torch.multinomial(weight.flatten(0, -2), 1).view(weight.shape[:-1])
        share = torch.rand(*chosen.shape, *self.event_shape, dtype=weight.dtype, device=weight.device)
        eps = torch.finfo(share.dtype).eps
        z = share.clamp(eps, 1 - eps).logit() + functional.embedding(chosen, self.offset)
        y = functional.embedding(chosen, self._middle(z)) + z * functional.embedding(chosen, self.log_scale).exp()
        return self.bijection.inverse_and_ladj(y, context)[0]

    @torch.no_grad()
    def start(self, points: Tensor, codes: Tensor) -> None:
        """Begin as points (n, D) of characters (n) lie: the mean and spread of each, and how often it comes.

        Characters without points have the middle of their cell, and the mean spread of the others.
        """
        middle, number = self._middle(points), torch.bincount(codes, minlength=len(self.offset)).to(points)[:, None]
        mean = torch.zeros_like(middle).index_add(0, codes, points) / number.clamp_min(1)
        mean = torch.where(number > 1, mean, middle)
        square = (points - functional.embedding(codes, mean)).square()
        variance = torch.zeros_like(middle).index_add(0, codes, square)
        usual = variance.sum(0) / number.sum()
        variance = torch.where(number > 1, variance / number.clamp_min(1), usual).clamp_min(LEAST)
        self.log_scale.copy_(
            0.5 * (3 * variance / torch.pi**2).log()
        )  # a logistic of scale s has variance (pi s)^2 / 3
        self.offset.copy_((mean - middle) * (-self.log_scale).exp())
        self.weigh.bias.copy_(((number + 0.5) / (number + 0.5).sum()).log()[:, 0])

    def _middle(self, like: Tensor) -> Tensor:
        """x_k, (K, D)."""
        return self.cells.centre(self.every)[0].to(like)


class _Gentle(nn.Module):
    """GENTLE times what a network says."""

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, *inputs: Tensor) -> Tensor:
        out: Tensor = GENTLE * self.net(*inputs)
        return out


def _gentle_mlp(inputs: int, outputs: int, width: int, layers: int, context: int) -> nn.Module:
    return _Gentle(MLP(inputs, outputs, width, layers, context))
