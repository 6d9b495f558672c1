"""A density of points given a state: a mixture of logistics behind affine couplings."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.bijections import Chain, ContextAffine
from tessella.densities.base import Density
from tessella.densities.couplings import flat_couplings
from tessella.nets.mlp import zero


class ConditionalLogistics(Density):
    """log p(x | h) = log sum_m w_m(h) prod_d l((y_d - mu_md) / s_md) / s_md + log |dy/dx|,  y = f(x; h).

    l is the logistic density, f a conditional affine map and affine couplings of half of the coordinates given the
    other half, all of which begin as the identity. Components stay where they are; a state weighs them, and f moves
    what they are compared with.

    Args:
        dim: D.
        components: M.
        context: size of h.
        blocks: couplings.
        width: of their networks, each of one hidden layer.
    """

    def __init__(self, dim: int, components: int, context: int, blocks: int, width: int):
        super().__init__()
        self.event_shape = (dim,)
        first = ContextAffine(zero(nn.Linear(context, 2 * dim)))
        self.bijection = Chain(first, *flat_couplings(dim, blocks, width, 1, context, norm=False))
        self.weigh = zero(nn.Linear(context, components))
        self.centre = nn.Parameter(torch.randn(components, dim))
        self.log_scale = nn.Parameter(torch.zeros(components, dim))

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        y, ladj = self.bijection.forward_and_ladj(x, context)
        z = ((y[..., None, :] - self.centre) * (-self.log_scale).exp()).abs()
        inside = (-z - 2 * torch.log1p((-z).exp()) - self.log_scale).sum(-1)
        return (self.weigh(context).log_softmax(-1) + inside).logsumexp(-1) + ladj

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        return self.draw(context, shape=shape)

    def draw(self, context: Tensor | None, temperature: float = 1.0, shape: tuple[int, ...] | None = None) -> Tensor:
        """Points given states (*batch, context); weights to the power of 1 / temperature."""
        logits = self.weigh(context) / temperature
        shape = logits.shape[:-1] if shape is None else shape
        chosen = torch.multinomial(logits.expand(*shape, -1).flatten(0, -2).softmax(-1), 1)[:, 0].view(shape)
        share = torch.rand(*shape, *self.event_shape, dtype=logits.dtype, device=logits.device)
        eps = torch.finfo(share.dtype).eps
        noise = share.clamp(eps, 1 - eps).logit()
        scale = functional.embedding(chosen, self.log_scale).exp()
        y = functional.embedding(chosen, self.centre) + scale * noise
        return self.bijection.inverse_and_ladj(y, context)[0]

    @torch.no_grad()
    def start(self, points: Tensor, component: Tensor, centre: Tensor) -> None:
        """Begin as points (n, D) lie, each in its component (n): means and spreads of all that have some, and weights.

        Components without points are put at `centre`, (M, D), with the mean spread of the others.
        """
        number = torch.bincount(component, minlength=len(centre)).to(points.dtype)
        enough = (number > 1)[:, None]
        mean = torch.zeros_like(centre).index_add(0, component, points) / number.clamp_min(1)[:, None]
        mean = torch.where(enough, mean, centre)
        square = (points - functional.embedding(component, mean)).square()
        variance = torch.zeros_like(centre).index_add(0, component, square) / number.clamp_min(1)[:, None]
        usual = (variance * number[:, None]).sum(0) / number.sum()
        variance = torch.where(enough, variance, usual).clamp_min(torch.finfo(points.dtype).eps)
        self.centre.copy_(mean)
        self.log_scale.copy_(0.5 * (3 * variance / torch.pi**2).log())  # a logistic of scale s has variance (pi s)^2 / 3
        self.weigh.bias.copy_(((number + 0.5) / (number + 0.5).sum()).log())
