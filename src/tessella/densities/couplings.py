"""The flows of this project, assembled from bijections and networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from tessella.bijections import (
    AFFINE,
    ActNorm,
    Bijection,
    CellBumps,
    CellCoupling,
    Chain,
    ContextAffine,
    Coupling,
    Elementwise,
    Flattened,
    Invert,
    LinearLU,
    LogisticMixture,
    VariableCoupling,
    partitions,
    variable_groups,
    variable_halves,
)
from tessella.contracts import Regions
from tessella.densities.base import Density
from tessella.densities.flow import Flow
from tessella.nets import MLP, Transformer
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero


@dataclass(frozen=True)
class BlockParts:
    """What coupling blocks of vectors are made of; by default those of the paper."""

    elementwise: Elementwise = AFFINE
    """How coordinates move."""
    network: Callable[[int, int, int, int, int], nn.Module] = MLP
    """Of the coefficients, from sizes: inputs, outputs, width, layers, context."""
    linear: bool = False
    """A linear map of all coordinates (`LinearLU`) between every two blocks."""


PAPER = BlockParts()


def flat_flow(base: Density, blocks: int, width: int, layers: int = 2, parts: BlockParts = PAPER) -> Flow:
    """The paper's density: ActNorm and affine coupling over the flat vector, four partitions in turn, MLPs inside.

    Args:
        base: of vectors, or of points (N, D) that are seen as vectors.
        blocks: coupling blocks.
        width, layers: of each network.
        parts: what else the blocks can be made of.

    >>> from tessella.bijections import RationalQuadratic
    >>> from tessella.densities import Gaussian
    >>> flow = flat_flow(Gaussian((2,)), 4, 16, parts=BlockParts(RationalQuadratic(8), linear=True))
    >>> [type(part).__name__ for part in flow.bijection.parts][:4]
    ['ActNorm', 'Coupling', 'LinearLU', 'ActNorm']
    """
    size = prod(base.event_shape)
    chain = Chain(*(flat_couplings(size, blocks, width, layers, parts=parts) or [ActNorm((size,))]))
    return Flow(base, chain if len(base.event_shape) == 1 else Flattened(chain))


def token_flow(
    base: Density,
    blocks: int,
    width: int,
    layers: int = 2,
    norm: bool = True,
    fast: bool = False,
    across: bool = False,
    logistics: int = 0,
    linear: bool = False,
) -> Flow:
    """Coupling over tokens (N, D), attention across variables computes the coefficients.

    Args:
        base: of the tokens.
        blocks: coupling blocks.
        width, layers: of each network.
        norm: begin every block with an ActNorm; without, the flow starts as its base.
        fast: see `Transformer`.
        across: every second block moves half of the variables given the others (`VariableCoupling`); the rest, and all
            without it, move half of every variable's coordinates.
        logistics: coordinates move by the distribution function of a mixture of so many logistics
            (`LogisticMixture`); 0: affinely.
        linear: between every two blocks, a linear map of each variable's coordinates (`LinearLU`).
    """
    return Flow(base, Chain(*_token_blocks(base, blocks, width, layers, 0, norm, fast, across, logistics, linear)))


def group_flow(
    base: Density,
    sweeps: int,
    groups: int,
    width: int,
    layers: int = 2,
    fast: bool = False,
    logistics: int = 0,
) -> Flow:
    """Coupling over tokens (N, D), of one group of variables after another given all others (`VariableCoupling`).

    A coupling of half of every variable's coordinates shows each half what the other tells already, the category, and
    leaves noise: what categories have to do with each other is learned slowly. Here a group moves given whole
    variables. Its first half of coordinates moves given the second, too, then the second given the first.

    Args:
        base: of the tokens.
        sweeps: over all groups, other ones each time.
        groups: of variables in a sweep.
        width, layers: of each network.
        fast: see `Transformer`.
        logistics: see `token_flow`.
    """
    variables, dim = base.event_shape
    return Flow(base, Chain(*group_couplings(variables, dim, range(sweeps), groups, width, layers, fast, logistics)))


def group_couplings(
    variables: int, dim: int, sweeps: range, groups: int, width: int, layers: int, fast: bool, logistics: int
) -> list[Bijection]:
    """The couplings of `group_flow`, of some of its sweeps, which have groups of their own."""
    _check_groups(groups, variables)
    move = LogisticMixture(logistics) if logistics else AFFINE
    halves = [half for half in (range(dim // 2), range(dim // 2, dim)) if half]
    parts: list[Bijection] = []
    for sweep in sweeps:
        parts.append(ActNorm((variables, dim)))
        for group in variable_groups(variables, groups, sweep):
            for half in halves:
                outputs = move.coefficients * len(half)
                net = Transformer(dim, outputs, width, layers, positions=variables, fast=fast)
                parts.append(VariableCoupling(group, half, net, variables, move))
    return parts


def _check_groups(groups: int, variables: int) -> None:
    if not 1 <= groups <= variables:
        raise ValueError(f"groups: got {groups} of {variables} variables; expected at least 1, none of them empty")


class CellFlow(Flow):
    """A flow whose first couplings are `CellCoupling`s, one group of variables after another, over the same bumps.

    Group G_i moves given the cells of the groups after it, and noise, which the groups before have become. Further
    couplings are for what the variables of a group have in common, and for numbers, which lie in no cells.

    Args:
        base: of the tokens; logistic, to which the bumps are carried.
        regions: of the first variables, those that are categories.
        groups: of these.
        width, layers: of each network.
        fast: see `Transformer`.
        components: see `CellCoupling`.
        dropout: share of what each block of a network adds that is left out in training.
        rest: further bijections.
    """

    def __init__(
        self,
        base: Density,
        regions: Regions,
        groups: int,
        width: int,
        layers: int = 2,
        fast: bool = False,
        components: int = 1,
        dropout: float = 0.0,
        rest: Sequence[Bijection] = (),
    ):
        number, dim = base.event_shape
        categories = len(regions.counts)
        _check_groups(groups, categories)
        bumps, parts = CellBumps(regions), list[Bijection]()
        left = set(range(categories))
        for group in variable_groups(categories, groups, 0):
            left -= {*group}
            net = Transformer(dim + width, width, width, layers, positions=number, dropout=dropout, fast=fast)
            own = components if len(group) > 1 else 1
            parts.append(CellCoupling(bumps, group, sorted(left), net, width, width, number, own))
        super().__init__(base, Chain(*parts, *rest))
        self.bumps = bumps

    @torch.no_grad()
    def initialize(self, x: Tensor, context: Tensor | None = None) -> None:
        self.bumps.start(x)
        super().initialize(x, context)


def conditional_flow(
    base: Density, blocks: int, width: int, layers: int, context: int, tokens: bool, fast: bool = False
) -> Flow:
    """q(u | context): a conditional Gaussian (or Student-t) followed by conditional coupling blocks.

    Args:
        base: of points (N, D).
        blocks, width, layers: as in `token_flow`.
        context: size of the context, per token when `tokens`, of the whole row otherwise.
        tokens: attention across variables, or MLPs over the flat vector.
        fast: see `Transformer`.
    """
    variables, dim = base.event_shape
    if tokens:
        first: Bijection = ContextAffine(zero(Linear(context, 2 * dim)), event_dim=2)
        rest = _token_blocks(base, blocks, width, layers, context, norm=False, fast=fast)
        return Flow(base, Invert(Chain(first, *rest)))
    first = ContextAffine(zero(Linear(context, 2 * variables * dim)))
    rest = flat_couplings(variables * dim, blocks, width, layers, context, norm=False)
    return Flow(base, Invert(Flattened(Chain(first, *rest))))


def flat_couplings(
    size: int,
    blocks: int,
    width: int,
    layers: int,
    context: int = 0,
    norm: bool = True,
    parts: BlockParts = PAPER,
) -> list[Bijection]:
    """(ActNorm and) coupling of vectors, `blocks` times, every partition in turn; none of a single number.

    Args:
        size: of the vectors.
        blocks: how many.
        width, layers: of each network.
        context: size of the context that the networks are told.
        norm: begin every block with an ActNorm.
        parts: what the blocks are made of.
    """
    keeps = [list(keep) for keep in dict.fromkeys(map(tuple, partitions(size))) if keep or context]
    chain: list[Bijection] = []
    for block in range(blocks if keeps else 0):
        keep = keeps[block % len(keeps)]
        outputs = parts.elementwise.coefficients * (size - len(keep))
        net = parts.network(len(keep), outputs, width, layers, context)
        chain += [LinearLU(size)] if parts.linear and block else []
        chain += [ActNorm((size,))] if norm else []
        chain.append(Coupling(size, keep, net, elementwise=parts.elementwise))
    return chain


def _token_blocks(
    base: Density,
    blocks: int,
    width: int,
    layers: int,
    context: int,
    norm: bool,
    fast: bool,
    across: bool = False,
    logistics: int = 0,
    linear: bool = False,
) -> list[Bijection]:
    variables, dim = base.event_shape
    if blocks and dim < 2:
        raise ValueError(f"dim: got {dim}; expected at least 2 for token coupling, which halves it; or a flat density")
    if across and variables < 2:
        raise ValueError(f"across: got {variables} variable; expected at least 2, of which half move")
    move = LogisticMixture(logistics) if logistics else AFFINE

    def network(inputs: int, outputs: int) -> Transformer:
        return Transformer(
            inputs, move.coefficients * outputs, width, layers, positions=variables, context=context, fast=fast
        )

    parts: list[Bijection] = []
    for block in range(blocks):
        parts += [LinearLU(dim, variables=variables)] if linear and block else []
        parts += [ActNorm((variables, dim))] if norm else []
        turn = block // 2 if across else block
        if across and block % 2:
            moves = [j for j, stays in enumerate(variable_halves(variables, turn)) if not stays]
            parts.append(VariableCoupling(moves, range(dim), network(dim, dim), variables, move))
        else:
            keep = partitions(dim)[turn % len(partitions(dim))]
            parts.append(Coupling(dim, keep, network(len(keep), dim - len(keep)), 2, move))
    return parts
