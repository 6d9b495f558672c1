"""A semi-discrete flow from its typed description."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tessella.densities import (
    BASES,
    CellMixture,
    Density,
    ZukoDensity,
    conditional_flow,
    flat_flow,
    token_flow,
)
from tessella.dequantizers import CELLS, Cells, Dequantizer
from tessella.dequantizers.components import component_counts
from tessella.dequantizers.dequantizer import NoContext, RowContext
from tessella.geometry import binary_dim
from tessella.models.semidiscrete import SemiDiscrete


@dataclass(frozen=True)
class SemiDiscreteConfig:
    """Everything that is chosen about a semi-discrete flow; with the numbers of categories it determines the model."""

    dequantizer: Literal["voronoi", "laguerre", "simplex", "argmax", "binary-argmax", "ordinal"] = "voronoi"
    """Geometry of the categories' regions."""
    placement: Literal["profiles", "random"] = "profiles"
    """Where learned cells start: categories that keep the same company close together, or at random."""
    dim: int = 0
    """Dimensions per variable; 0 picks 4 for learned cells and what the geometry needs for fixed ones."""
    density: Literal["token", "flat", "spline"] = "token"
    """token: attention across variables; flat: the paper's MLP coupling; spline: zuko's neural spline flow."""
    blocks: int = 8
    """Coupling blocks (or spline transforms) of the density; with a mixture as the base there may be none."""
    width: int = 64
    """Width of the density's networks."""
    layers: int = 2
    """Hidden layers (flat, spline) or attention layers (token) of each network."""
    coupling: Literal["within", "across"] = "within"
    """token: blocks move half of every variable's coordinates; or, in turn, also half of the variables."""
    modes: int = 0
    """token: blocks move coordinates by the distribution function of so many logistics; 0: affinely."""
    base: Literal["gaussian", "student", "classes"] = "gaussian"
    """Base of the density; token: also modes in every cell, of a mixture of categoricals that is fitted beforehand."""
    classes: int = 128
    """base classes: components of that mixture, besides one of independent variables."""
    noise: Literal["conditional", "uniform"] = "conditional"
    """q(x | row): learned and conditional; or uniform, for the ordinal geometry."""
    noise_blocks: int = 2
    """Conditional coupling blocks of q."""
    noise_width: int = 64
    """Width of q's networks."""
    noise_base: Literal["gaussian", "student", "ball"] = "gaussian"
    """Base of q: a Gaussian gathers around the anchor, a ball fills the cell evenly up to its walls."""
    context: int = 32
    """Size of the embeddings that q is conditioned on."""
    shared: bool = False
    """One tessellation for all variables (they must have equally many categories) instead of one each."""
    box: float = 0.0
    """Half-width of a box around the cells (the paper's setting); 0 leaves outer cells unbounded."""
    squashing: Literal["softsign", "root", "arctan", "exponential"] = "softsign"
    """Radial profile of the map into a cell."""
    nets: Literal["plain", "fast"] = "plain"
    """Arithmetic of the token networks on a GPU: plain, or bfloat16 products and fused kernels."""
    train_samples: int = 1
    """Importance samples of the training objective; 1 is the ELBO."""


def build(config: SemiDiscreteConfig, counts: Sequence[int]) -> SemiDiscrete:
    """The model for rows of len(counts) variables with so many categories each."""
    dim = config.dim or _default_dim(config, counts)
    learned = config.dequantizer in ("voronoi", "laguerre")
    options = {"box": config.box, "squashing": config.squashing, "shared": config.shared} if learned else {}
    cells = CELLS[config.dequantizer](counts, dim, **options)
    event = (len(counts), dim)
    return SemiDiscrete(_dequantizer(config, cells, event), _density(config, counts, event), config.train_samples)


def _default_dim(config: SemiDiscreteConfig, counts: Sequence[int]) -> int:
    most = max(counts)
    needed = {"simplex": most - 1, "argmax": most, "binary-argmax": binary_dim(most), "ordinal": 1}
    least = 2 if config.density == "token" else 1
    return max(least, needed.get(config.dequantizer, 4))


def _dequantizer(config: SemiDiscreteConfig, cells: Cells, event: tuple[int, int]) -> Dequantizer:
    if config.noise == "uniform":
        if config.dequantizer != "ordinal":
            raise ValueError(f"noise: got 'uniform' with {config.dequantizer!r} cells; expected 'ordinal' cells for it")
        return Dequantizer(cells, BASES["logistic"](event), NoContext())
    tokens = config.density == "token"
    fast = config.nets == "fast"
    context = RowContext(cells.counts, config.context, config.noise_width, 1, tokens, fast)
    base = BASES[config.noise_base](event)
    noise = conditional_flow(base, config.noise_blocks, config.noise_width, config.layers, config.context, tokens, fast)
    return Dequantizer(cells, noise, context)


def _density(config: SemiDiscreteConfig, counts: Sequence[int], event: tuple[int, int]) -> Density:
    if config.modes and (config.density != "token" or config.base == "classes"):
        raise ValueError(
            f"modes: got {config.modes} with a {config.density!r} density from {config.base!r}; expected 0, or a token "
            "density from a gaussian or student base"
        )
    if config.base == "classes":
        if config.density != "token" or config.dequantizer not in ("voronoi", "laguerre") or config.shared:
            got = f"{config.density!r} and {'shared ' if config.shared else ''}{config.dequantizer!r}"
            raise ValueError(
                f"base: got {config.base!r} with {got}; expected a token density and learned cells, not shared"
            )
        modes = CellMixture(component_counts(tuple(counts), 0), event[1], config.classes + 1)
        if not config.blocks:
            return modes
        return token_flow(modes, config.blocks, config.width, config.layers, norm=False, fast=config.nets == "fast")
    base = BASES[config.base](event)
    if config.density == "token":
        fast, across = config.nets == "fast", config.coupling == "across"
        return token_flow(
            base, config.blocks, config.width, config.layers, fast=fast, across=across, modes=config.modes
        )
    if config.density == "flat":
        return flat_flow(base, config.blocks, config.width, config.layers)
    import zuko

    hidden = [config.width] * config.layers
    return ZukoDensity(zuko.flows.NSF(event[0] * event[1], transforms=config.blocks, hidden_features=hidden), event)
