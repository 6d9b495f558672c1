"""The flows of this project, assembled from bijections and networks."""

from torch import nn

from tessella.bijections import ActNorm, AffineCoupling, Bijection, Chain, ContextAffine, Flattened, Invert, partitions
from tessella.densities.base import Density
from tessella.densities.flow import Flow
from tessella.nets import MLP, TokenTransformer
from tessella.nets.mlp import zero


def flat_flow(base: Density, blocks: int, width: int, layers: int = 2) -> Flow:
    """The paper's density: ActNorm and affine coupling over the flat vector, four partitions in turn, MLPs inside."""
    return Flow(base, Flattened(Chain(*_flat_blocks(base, blocks, width, layers, context=0, norm=True))))


def token_flow(base: Density, blocks: int, width: int, layers: int = 2, norm: bool = True, fast: bool = False) -> Flow:
    """Coupling over tokens: halves of D alternate, attention across variables computes the coefficients.

    Args:
        norm: begin every block with an ActNorm; without, the flow starts as its base.
        fast: see `TokenTransformer`.
    """
    return Flow(base, Chain(*_token_blocks(base, blocks, width, layers, context=0, norm=norm, fast=fast)))


def conditional_flow(
    base: Density, blocks: int, width: int, layers: int, context: int, tokens: bool, fast: bool = False
) -> Flow:
    """q(u | context): a conditional Gaussian (or Student-t) followed by conditional coupling blocks.

    Args:
        context: size of the context, per token when `tokens`, of the whole row otherwise.
    """
    variables, dim = base.event_shape
    if tokens:
        first: Bijection = ContextAffine(zero(nn.Linear(context, 2 * dim)), event_dim=2)
        rest = _token_blocks(base, blocks, width, layers, context, norm=False, fast=fast)
        return Flow(base, Invert(Chain(first, *rest)))
    first = ContextAffine(zero(nn.Linear(context, 2 * variables * dim)))
    rest = _flat_blocks(base, blocks, width, layers, context, norm=False)
    return Flow(base, Invert(Flattened(Chain(first, *rest))))


def _flat_blocks(base: Density, blocks: int, width: int, layers: int, context: int, norm: bool) -> list[Bijection]:
    variables, dim = base.event_shape
    size = variables * dim
    parts: list[Bijection] = []
    for block in range(blocks):
        keep = partitions(size)[block % len(partitions(size))]
        net = MLP(len(keep), 2 * (size - len(keep)), width, layers, context)
        parts += [ActNorm((size,))] if norm else []
        parts.append(AffineCoupling(size, keep, net))
    return parts


def _token_blocks(
    base: Density, blocks: int, width: int, layers: int, context: int, norm: bool, fast: bool
) -> list[Bijection]:
    variables, dim = base.event_shape
    if dim < 2:
        raise ValueError(f"dim: got {dim}; expected at least 2 for token coupling, which halves it; or a flat density")
    parts: list[Bijection] = []
    for block in range(blocks):
        keep = partitions(dim)[block % len(partitions(dim))]
        net = TokenTransformer(variables, len(keep), 2 * (dim - len(keep)), width, layers, context, fast)
        parts += [ActNorm((variables, dim))] if norm else []
        parts.append(AffineCoupling(dim, keep, net, event_dim=2))
    return parts
