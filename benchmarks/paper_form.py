"""The cell map as the paper states it: rays, lambda*, a rank-2 determinant. Oracle of tests, reference of benchmarks.

Written from equations (5)-(9) and Proposition 3 of Chen, Amos, Nickel (2022). All walls are intersected at once and the
gradients that the determinant needs come from automatic differentiation inside the forward pass. One correction: as
printed, u_1 and u_2 lack a factor 1 / lambda* on d alpha / d Delta~, because the derivative of the norm
|x(lambda*) - x_k| was taken without its denominator; with it the formula agrees with autograd.
"""

import torch
from torch import Tensor


def paper_form(
    x: Tensor, cell: Tensor, anchors: Tensor, log_scale: Tensor, lo: Tensor | None = None, hi: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """f_k(x) = x_k + alpha_k(|x - x_k| / lambda*) lambda* delta and its log-determinant.

    Args:
        x: points (B, N, D), not displacements.
        cell: (B, N).
        anchors: (N, K, D); log_scale: (N, K).
        lo, hi: corners of the box, (D,); without a box the ray must hit a wall.
    """
    dim, cells = anchors.shape[-1], anchors.shape[-2]
    variable = torch.arange(anchors.shape[0], device=x.device)
    here = anchors[variable, cell]  # (B, N, D)
    gamma = log_scale[variable, cell].exp()[..., None]
    distance = (x - here).norm(dim=-1, keepdim=True)
    with torch.enable_grad():
        delta = (x - here) / distance
        normal = 2 * (anchors - here[..., None, :])  # (B, N, K, D)
        offset = anchors.square().sum(-1) - here.square().sum(-1, keepdim=True)  # (B, N, K)
        ahead = (normal * delta[..., None, :]).sum(-1)
        own = torch.arange(cells, device=x.device) == cell[..., None]
        lambdas = (offset - (normal * here[..., None, :]).sum(-1)) / ahead.masked_fill(own, -1)
        lambdas = lambdas.masked_fill(own, -1)
        if lo is not None and hi is not None:
            lambdas = torch.cat([lambdas, (hi - here) / delta, (lo - here) / delta], -1)
        reach = torch.where(lambdas > 0, lambdas, torch.inf).amin(-1, keepdim=True)  # lambda*
        (v1,) = torch.autograd.grad(reach.sum(), delta, create_graph=True)
        relative = distance / reach
        alpha = gamma * relative / (1 + gamma * relative)
        (slope,) = torch.autograd.grad(alpha.sum(), relative, create_graph=True)
    z = here + alpha * reach * delta
    c = alpha * reach / distance
    along = (v1 * delta).sum(-1, keepdim=True)
    u1 = (alpha / distance - slope / reach) * delta
    u2 = (slope - alpha * reach / distance - alpha / distance * along + slope / reach * along) * delta
    w11, w12 = (v1 * u1).sum(-1) / c[..., 0], (v1 * u2).sum(-1) / c[..., 0]
    w21, w22 = (delta * u1).sum(-1) / c[..., 0], (delta * u2).sum(-1) / c[..., 0]
    ladj = (1 + w11).abs().log() + (1 + w22 - w12 * w21 / (1 + w11)).abs().log() + dim * c[..., 0].log()
    return z, ladj
