"""Models of sets of items: one description, one way to build it, one way to start it from the training sets."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad

from tessella.baselines.sets import DPP, KDPP, BernoulliMixture, ConditionalBernoulli, ItemTransformer, SetBaseline
from tessella.configs import Choice
from tessella.contracts import Batch
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets import (
    CouplingSetConfig,
    SetDensityConfig,
    SetFlowDensity,
    SetSizes,
    log_orders,
    mask_of,
)
from tessella.densities.sets.flow import item_noise
from tessella.dequantizers import CellsConfig, VoronoiConfig
from tessella.dequantizers.sets import SetContext, SetDequantizer
from tessella.models.bound import ImportanceBound

NARROW = 0.2  # spread of the noise in a cell at the start, as a share of the way to its nearest wall
ROUNDS = 100  # of drawing again what had an item twice


class SemiDiscreteSets(ImportanceBound):
    """log P(set) >= log n! P(n) + E_q log 1/S sum_s p(x_s) / q(x_s | items): a density of points as a model of sets.

    p does not change when points change places, so the n! orders of a set have the same mass, that of the points in its
    items' cells. Points of one cell, which no set has, are mass that the bound does without.

    Args:
        dequantizer: q(x | items).
        density: p(x), exchangeable, over (n, D) points.
        train_samples, validation_samples: see `ImportanceBound`.
    """

    def __init__(
        self,
        dequantizer: SetDequantizer,
        density: SetFlowDensity,
        train_samples: int = 1,
        validation_samples: int = 4,
    ):
        super().__init__(train_samples, validation_samples)
        self.dequantizer, self.density = dequantizer, density
        self.shape = dequantizer.shape
        self.sizes = SetSizes(self.shape)

    def elbo(self, *batch: Tensor) -> Tensor:
        items, mask = batch
        x, log_q = self.dequantizer.dequantize(items, mask)
        return self._log_density(x, mask) - log_q

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New sets; draws in which an item comes twice are drawn again."""
        return self._draw(rows)[1]

    @torch.no_grad()
    def sample_with_weights(self, rows: int) -> tuple[Batch, Tensor]:
        x, batch = self._draw(rows)
        own = self._log_density(x, batch[1]).double() - self.dequantizer.log_prob(x, *batch).double()
        return batch, own

    @torch.no_grad()
    def log_next(self, items: Tensor, samples: int) -> Tensor:
        """log P(S and k | S is in a set of one item more), (K), by bounds: -inf for the items of S, (n)."""
        found = torch.full((self.shape.items,), -torch.inf, dtype=torch.float64, device=items.device)
        others = torch.ones_like(found).bool().index_fill(0, items, False).nonzero()  # (K - n, 1)
        sets = torch.cat([items.expand(len(others), -1), others], 1)
        mask = mask_of(torch.full_like(others[:, 0], sets.shape[1]), self.shape.most)
        bounds = self.log_prob(pad(sets, (0, self.shape.most - sets.shape[1])), mask, samples=samples)
        return found.scatter(0, others[:, 0], bounds.double().log_softmax(0))

    def initialize(self, items: Tensor, mask: Tensor) -> None:
        """Nothing: `start` takes all training sets."""

    @torch.no_grad()
    def start(self, items: Tensor, mask: Tensor) -> None:
        """Sizes, cells, noise and base where training sets suggest."""
        self.shape.check(items, mask)
        self.sizes.start(mask)
        self.dequantizer.arrange(items, mask)
        seen = torch.bincount(items[mask], minlength=self.shape.items) + 0.5
        centre = self.dequantizer.cells.centre(torch.arange(self.shape.items)[:, None])[:, 0]
        self.density.base.start((seen / seen.sum()).log(), len(items), centre, self.dequantizer.spread())

    def loss(self, *batch: Tensor) -> Tensor:
        """Mean negative bound of a batch, and the base's prior."""
        return super().loss(*batch) + self.density.base.penalty()

    def _log_density(self, x: Tensor, mask: Tensor) -> Tensor:
        """log n! P(n) p(x), (B)."""
        context = None if self.shape.one_size else mask[..., None].to(x)
        return self.density.log_prob(x, context) + (self.sizes.log_prob(mask) + log_orders(mask)).to(x)

    def _draw(self, sets: int) -> tuple[Tensor, Batch]:
        """Points of sets without repetition, and the sets."""
        points, found, left = [], [], sets
        for _ in range(ROUNDS):
            mask = mask_of(self.sizes.sample(min(left, self.points_at_once)), self.shape.most)
            context = (
                None if self.shape.one_size else mask[..., None].to(next(self.density.parameters(), torch.zeros(1)))
            )
            x = self.density.sample((len(mask),), context) * mask[..., None]
            items, _ = self.dequantizer.quantize(x, mask)
            different = ~_repeats(items, mask)
            points.append(x[different])
            found.append((items[different], mask[different]))
            left -= int(different.sum())
            if left <= 0:
                items, mask = (torch.cat(part) for part in zip(*found, strict=True))
                return torch.cat(points), (items, mask)
        raise ArithmeticError(
            f"{sets - left} of {sets} sets after {ROUNDS} rounds: nearly all draws have an item twice; train longer"
        )


def _repeats(items: Tensor, mask: Tensor) -> Tensor:
    """Whether an item comes twice in a set, (B, n) -> (B)."""
    absent = torch.arange(items.shape[1], device=items.device) - items.shape[1]
    return (torch.where(mask, items, absent).sort(1).values.diff(dim=1) == 0).any(1)


SetModel = SemiDiscreteSets | SetBaseline
"""What scores and draws sets: bounds through cells, or exact values."""


class SetConfig(Choice, ABC):
    """Everything that is chosen about a model of sets; with their shape it determines the model."""

    @abstractmethod
    def build(self, shape: SetShape) -> SetModel:
        """The model, untrained and not started: what saved weights are loaded into."""

    def start(self, shape: SetShape, items: Tensor, mask: Tensor) -> SetModel:
        """Build it, and put it where the training sets suggest."""
        model = self.build(shape)
        model.start(items, mask)
        return model


@dataclass(frozen=True)
class SetFlowConfig(SetConfig, kind="flow"):
    """A semi-discrete flow of sets: one geometry for all items, noise in it, an exchangeable density of points."""

    cells: CellsConfig = field(default_factory=lambda: VoronoiConfig(dim=6, shared=True, spread=NARROW))
    """Regions of the items; of a tessellation, one that all places share."""
    density: SetDensityConfig = field(default_factory=CouplingSetConfig)
    """Of the points."""
    noise_blocks: int = 2
    """Conditional coupling blocks of the noise."""
    noise_width: int = 32
    """Width of their networks."""
    embedding: int = 16
    """Of an item, in what the noise is told."""
    fast: bool = False
    """On a GPU, attention multiplies in bfloat16 and trains with fused kernels; couplings only."""
    train_samples: int = 1
    """Importance samples of the training objective."""
    validation_samples: int = 4
    """Importance samples of the values that training validates with."""

    def build(self, shape: SetShape) -> SemiDiscreteSets:
        if isinstance(self.cells, VoronoiConfig) and not self.cells.shared:
            raise ValueError("cells.shared: got False; expected True, since items have no places of their own")
        cells = self.cells.build((shape.items,), 2)
        size = (self.noise_blocks, self.noise_width, 1, self.embedding)
        noise = item_noise(shape.most, cells.dim, *size, fast=self.fast)
        context = SetContext(shape.items, self.embedding, self.noise_width, self.fast)
        density = self.density.build(shape, cells.dim, self.fast)
        dequantizer = SetDequantizer(shape, cells, noise, context)
        return SemiDiscreteSets(dequantizer, density, self.train_samples, self.validation_samples)


@dataclass(frozen=True)
class ConditionalBernoulliConfig(SetConfig, kind="independent"):
    """`ConditionalBernoulli`: nothing to choose; it is fitted at the start."""

    def build(self, shape: SetShape) -> ConditionalBernoulli:
        return ConditionalBernoulli(shape)

    def start(self, shape: SetShape, items: Tensor, mask: Tensor) -> ConditionalBernoulli:
        return self.build(shape).fit(items, mask)


@dataclass(frozen=True)
class BernoulliMixtureConfig(SetConfig, kind="mixture"):
    """`BernoulliMixture`."""

    components: int = 256
    """Kinds of sets."""
    rank: int = 16
    """Dimensions in which they differ."""
    prior: float = 3.0
    """Strength of the prior on these differences."""

    def build(self, shape: SetShape) -> BernoulliMixture:
        return BernoulliMixture(shape, self.components, self.rank, self.prior)


@dataclass(frozen=True)
class DPPConfig(SetConfig, kind="dpp"):
    """`DPP`."""

    rank: int = 65
    """Of the kernel."""

    def build(self, shape: SetShape) -> DPP:
        return DPP(shape, self.rank)


@dataclass(frozen=True)
class KDPPConfig(SetConfig, kind="kdpp"):
    """`KDPP`."""

    rank: int = 65
    """Of the kernel."""

    def build(self, shape: SetShape) -> KDPP:
        return KDPP(shape, self.rank)


@dataclass(frozen=True)
class ItemTransformerConfig(SetConfig, kind="transformer"):
    """`ItemTransformer`."""

    width: int = 128
    """Of the residual stream."""
    layers: int = 4
    """Attention layers."""
    dropout: float = 0.3
    """Share that is left out in training."""

    def build(self, shape: SetShape) -> ItemTransformer:
        return ItemTransformer(shape, self.width, self.layers, self.dropout)
