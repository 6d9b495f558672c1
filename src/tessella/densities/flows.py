"""The flows of this project, assembled from bijections and networks."""

from torch import nn

from tessella.bijections import (
    AFFINE,
    ActNorm,
    Bijection,
    Chain,
    ContextAffine,
    Coupling,
    Flattened,
    Invert,
    LogisticMixture,
    VariableCoupling,
    partitions,
    variable_halves,
)
from tessella.densities.base import Density
from tessella.densities.flow import Flow
from tessella.nets import MLP, TokenTransformer
from tessella.nets.mlp import zero


def flat_flow(base: Density, blocks: int, width: int, layers: int = 2) -> Flow:
    """The paper's density: ActNorm and affine coupling over the flat vector, four partitions in turn, MLPs inside."""
    return Flow(base, Flattened(Chain(*_flat_blocks(base, blocks, width, layers, context=0, norm=True))))


def token_flow(
    base: Density,
    blocks: int,
    width: int,
    layers: int = 2,
    norm: bool = True,
    fast: bool = False,
    across: bool = False,
    modes: int = 0,
) -> Flow:
    """Coupling over tokens, attention across variables computes the coefficients.

    Args:
        norm: begin every block with an ActNorm; without, the flow starts as its base.
        fast: see `TokenTransformer`.
        across: every second block moves half of the variables given the others (`VariableCoupling`); the rest, and all
            without it, move half of every variable's coordinates.
        modes: coordinates move by the distribution function of so many logistics (`LogisticMixture`); 0: affinely.
    """
    return Flow(base, Chain(*_token_blocks(base, blocks, width, layers, 0, norm, fast, across, modes)))


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
        parts.append(Coupling(size, keep, net))
    return parts


def _token_blocks(
    base: Density,
    blocks: int,
    width: int,
    layers: int,
    context: int,
    norm: bool,
    fast: bool,
    across: bool = False,
    modes: int = 0,
) -> list[Bijection]:
    variables, dim = base.event_shape
    if dim < 2:
        raise ValueError(f"dim: got {dim}; expected at least 2 for token coupling, which halves it; or a flat density")
    if across and variables < 2:
        raise ValueError(f"across: got {variables} variable; expected at least 2, of which half move")
    move = LogisticMixture(modes) if modes else AFFINE
    parts: list[Bijection] = []
    for block in range(blocks):
        parts += [ActNorm((variables, dim))] if norm else []
        turn = block // 2 if across else block
        if across and block % 2:
            net = TokenTransformer(variables, dim, move.coefficients * dim, width, layers, context, fast)
            parts.append(VariableCoupling(variable_halves(variables, turn), net, move))
        else:
            keep = partitions(dim)[turn % len(partitions(dim))]
            outputs = move.coefficients * (dim - len(keep))
            net = TokenTransformer(variables, len(keep), outputs, width, layers, context, fast)
            parts.append(Coupling(dim, keep, net, 2, move))
    return parts
