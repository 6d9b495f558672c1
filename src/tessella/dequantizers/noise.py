"""The noise of a dequantizer: where in its region a row's point lies."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from tessella.configs import Choice
from tessella.data.tables.shape import TableShape
from tessella.densities import Density, base_in_cells, conditional_flow
from tessella.dequantizers.cells import Cells
from tessella.nets import MLP, Transformer


class RowContext(nn.Module):
    """(codes, images of numbers) -> what q is conditioned on: tokens (B, G + R, size), or a vector (B, size) for a row.

    A code has an embedding, a number z the line z a + b; a network lets them see each other. One table of sum K_j
    embeddings: nothing is one-hot, nothing padded.

    Args:
        shape: of the table.
        size: of an embedding.
        width, layers: of the network.
        tokens: tokens, or one vector.
        fast: see `Transformer`.
    """

    first: Tensor

    def __init__(self, shape: TableShape, size: int, width: int, layers: int, tokens: bool, fast: bool = False):
        super().__init__()
        ends = torch.tensor(shape.counts).cumsum(0)
        self.register_buffer("first", ends - torch.tensor(shape.counts), persistent=False)
        self.embedding = nn.Embedding(int(ends[-1]), size)
        self.tokens = tokens
        if shape.numbers:
            self.slope, self.offset = (nn.Parameter(torch.randn(shape.numbers, size)) for _ in range(2))
        self.mix: nn.Module = (
            Transformer(size, size, width, layers, positions=shape.variables, fast=fast)
            if tokens
            else MLP(shape.variables * size, size, width, layers)
        )

    def forward(self, codes: Tensor, images: Tensor | None = None) -> Tensor:
        """(B, G), (B, R) -> (B, G + R, size) or (B, size)."""
        embedded = self.embedding(codes + self.first)  # (B, G, size)
        if images is not None:
            embedded = torch.cat([embedded, images[..., None].to(self.slope) * self.slope + self.offset], 1)
        mixed: Tensor = self.mix(embedded if self.tokens else embedded.flatten(-2))
        return embedded + mixed if self.tokens else mixed


class NoContext(nn.Module):
    """For noise that does not look at the row."""

    def forward(self, codes: Tensor, images: Tensor | None = None) -> None:
        return None


class NoiseConfig(Choice, ABC):
    """What is chosen about q(u | row), before it is mapped into the regions."""

    @abstractmethod
    def build(self, shape: TableShape, cells: Cells, tokens: bool, fast: bool) -> tuple[Density, nn.Module]:
        """The density over (G + R, D) points that goes with these regions, and what it is conditioned on."""


@dataclass(frozen=True)
class ConditionalNoise(NoiseConfig, kind="conditional"):
    """A flow that is told the row."""

    blocks: int = 2
    """Conditional coupling blocks."""
    width: int = 64
    """Width of the networks."""
    layers: int = 2
    """Layers of each network."""
    base: Literal["gaussian", "student", "ball", "logistic"] = "gaussian"
    """A Gaussian gathers around the anchor, a ball fills the cell evenly up to its walls, Student's t has the degrees
    with which it neither vanishes nor grows there; logistic noise is what densities that know the cells have there."""
    context: int = 32
    """Size of the embeddings of categories."""

    def build(self, shape: TableShape, cells: Cells, tokens: bool, fast: bool) -> tuple[Density, nn.Module]:
        context = RowContext(shape, self.context, self.width, 1, tokens, fast)
        base = base_in_cells(self.base, (shape.variables, cells.dim), cells.degrees)
        return conditional_flow(base, self.blocks, self.width, self.layers, self.context, tokens, fast), context


@dataclass(frozen=True)
class FixedNoise(NoiseConfig, kind="fixed"):
    """The same for every row, and nothing to learn: logistic noise is uniform in the intervals of ordinal cells."""

    base: Literal["logistic", "gaussian", "student", "ball"] = "logistic"

    def build(self, shape: TableShape, cells: Cells, tokens: bool, fast: bool) -> tuple[Density, nn.Module]:
        return base_in_cells(self.base, (shape.variables, cells.dim), cells.degrees), NoContext()
