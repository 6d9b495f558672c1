"""From rows to points and back: regions of the categories (`Cells`), noise in them, numbers; `Dequantizer`."""

from tessella.dequantizers.cells import Cells, CellsConfig
from tessella.dequantizers.characters import CharacterContext, CharacterDequantizer, CharacterNoise
from tessella.dequantizers.dequantizer import Dequantizer
from tessella.dequantizers.fixed import (
    ArgmaxCells,
    ArgmaxConfig,
    BinaryCells,
    BinaryConfig,
    OrdinalCells,
    OrdinalConfig,
    SimplexCells,
    SimplexConfig,
)
from tessella.dequantizers.learned import LaguerreCells, LaguerreConfig, VoronoiCells, VoronoiConfig
from tessella.dequantizers.noise import ConditionalNoise, FixedNoise, NoiseConfig, RowContext
from tessella.dequantizers.numbers import Numbers

__all__ = [
    "ArgmaxCells",
    "ArgmaxConfig",
    "BinaryCells",
    "BinaryConfig",
    "Cells",
    "CellsConfig",
    "CharacterContext",
    "CharacterDequantizer",
    "CharacterNoise",
    "ConditionalNoise",
    "Dequantizer",
    "FixedNoise",
    "LaguerreCells",
    "LaguerreConfig",
    "NoiseConfig",
    "Numbers",
    "OrdinalCells",
    "OrdinalConfig",
    "RowContext",
    "SimplexCells",
    "SimplexConfig",
    "VoronoiCells",
    "VoronoiConfig",
]
