"""Models of texts: one description, one way to build it, one way to start it from the training text."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from torch import Tensor

from tessella.configs import Choice
from tessella.densities import Gaussian
from tessella.dequantizers import CellsConfig, CharacterDequantizer, CharacterNoise, VoronoiConfig
from tessella.models.semidiscrete import SemiDiscrete
from tessella.models.texts.causal import CausalText, DisjointText
from tessella.models.texts.logistics import ConditionalLogistics
from tessella.models.texts.points import CausalPoints
from tessella.nets import AttentionConfig, CausalNetConfig

WIDE = 8  # times the memory of a token elsewhere, since networks are wider
USUAL = 256  # numbers that a point is compared with, one for each coordinate of a component
TextModel = CausalText | SemiDiscrete
"""What scores and draws windows of a text: exact values, or bounds through cells."""


@dataclass(frozen=True)
class TextShape:
    """How many different characters, and how many of them make a window."""

    characters: int
    length: int


class TextConfig(Choice, ABC):
    """Everything that is chosen about a model of a text."""

    network: CausalNetConfig

    @abstractmethod
    def build(self, shape: TextShape) -> TextModel:
        """The model, untrained and not started: what saved weights are loaded into."""

    def start(self, shape: TextShape, codes: Tensor) -> TextModel:
        """Build it, and put it where the training text, (n,), suggests."""
        return self.build(shape)


@dataclass(frozen=True)
class SoftmaxTextConfig(TextConfig, kind="softmax"):
    """`CausalText`: a softmax over the characters, no cells."""

    network: CausalNetConfig = field(default_factory=AttentionConfig)
    """Over the characters before."""

    def build(self, shape: TextShape) -> CausalText:
        return CausalText(shape.characters, shape.length, self.network.build())


@dataclass(frozen=True)
class DisjointTextConfig(TextConfig, kind="disjoint"):
    """`DisjointText`: conditionals that are disjoint mixtures over cells, whose bound is tight."""

    network: CausalNetConfig = field(default_factory=AttentionConfig)
    """Over the cells of the points before."""
    cells: CellsConfig = field(default_factory=lambda: VoronoiConfig(dim=8, shared=True))
    """Regions of the characters."""

    def build(self, shape: TextShape) -> DisjointText:
        cells = self.cells.build((shape.characters,))
        dequantizer = CharacterDequantizer(cells, Gaussian((cells.dim,)))
        return DisjointText(shape.characters, shape.length, self.network.build(), dequantizer)

    def start(self, shape: TextShape, codes: Tensor) -> DisjointText:
        model = self.build(shape)
        model.dequantizer.arrange(codes)
        return model


@dataclass(frozen=True)
class TextFlowConfig(TextConfig, kind="flow"):
    """A semi-discrete flow of a text: cells of the characters, noise in them, points given those before."""

    network: CausalNetConfig = field(default_factory=AttentionConfig)
    """Over the points before."""
    cells: CellsConfig = field(default_factory=lambda: VoronoiConfig(dim=8, shared=True))
    """Regions of the characters."""
    noise: CharacterNoise = field(default_factory=CharacterNoise)
    """Where in its region the point of a character lies."""
    blocks: int = 4
    """Affine couplings of the coordinates of a point, given the state."""
    width: int = 128
    """Of their networks."""
    displacement: float = 0.01
    """How loudly the network is told where in its cell a point lies; which cell it is told in any case."""
    train_samples: int = 1
    """Importance samples of the training objective; 1 is the ELBO."""
    validation_samples: int = 1
    """Importance samples of the values that training validates with."""

    def build(self, shape: TextShape) -> SemiDiscrete:
        cells, net = self.cells.build((shape.characters,)), self.network.build()
        dequantizer = self.noise.build(cells, shape.length, fast=getattr(self.network, "fast", False))
        conditional = ConditionalLogistics(cells, net.width, self.blocks, self.width)
        density = CausalPoints(shape.length, net, conditional, self.displacement)
        samples = self.train_samples, self.validation_samples
        wider = max(WIDE, shape.characters * cells.dim // USUAL)
        return SemiDiscrete(dequantizer, density, *samples, tokens=shape.length * wider)

    def start(self, shape: TextShape, codes: Tensor) -> SemiDiscrete:
        """Cells where characters that stand between the same others are neighbours."""
        model = self.build(shape)
        assert isinstance(model.dequantizer, CharacterDequantizer)
        model.dequantizer.arrange(codes)
        return model
