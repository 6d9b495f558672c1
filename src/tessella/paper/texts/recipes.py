"""What is chosen about each method of Table 3, for a GPU, and small for a CPU.

tessella reproduce text --data text8 --dequantizer voronoi --dim 8 --minutes 9 --accelerator cuda
"""

from dataclasses import dataclass
from typing import Literal

from tessella.dequantizers import BinaryConfig, CellsConfig, CharacterNoise, OrdinalConfig, VoronoiConfig
from tessella.models import DisjointTextConfig, SoftmaxTextConfig, TextConfig, TextFlowConfig
from tessella.nets import AttentionConfig, CausalNetConfig, LSTMConfig
from tessella.training import TrainingConfig

Dequantization = Literal["voronoi", "binary-argmax", "ordinal", "exact", "none"]
Network = Literal["transformer", "lstm"]
Preset = Literal["best", "small"]

STRIDES = 4  # training windows that overlap: each character is seen at so many places of a window
NETWORKS: dict[Preset, dict[Network, CausalNetConfig]] = {
    "best": {"transformer": AttentionConfig(), "lstm": LSTMConfig()},
    "small": {"transformer": AttentionConfig(64, 2, 32), "lstm": LSTMConfig(64, 128, 1)},
}
# Losses are sums over a window, and so are gradients: they are clipped at about 1 for each character.
TRAINING: dict[Preset, TrainingConfig] = {
    "best": TrainingConfig(
        steps=18_000,
        batch_size=256,
        learning_rate=3e-3,
        optimizer="muon",
        weight_decay=0.05,
        warmup_steps=100,
        clip_norm=256.0,
        validation_rows=2_000,
        checkpoint_seconds=300.0,
        compile="fuse",
    ),
    "small": TrainingConfig(
        steps=600,
        batch_size=64,
        learning_rate=1e-2,
        optimizer="muon",
        weight_decay=0.05,
        warmup_steps=50,
        clip_norm=64.0,
        ema_decay=0.98,
        validation_rows=200,
    ),
}


@dataclass(frozen=True)
class TextRecipe:
    """What is chosen about a method."""

    model: TextConfig
    training: TrainingConfig


def recipe_for(dequantizer: Dequantization, dim: int, network: Network, preset: Preset) -> TextRecipe:
    """Of one method: the same network, training and density of points for all of them."""
    return TextRecipe(_model(dequantizer, dim, NETWORKS[preset][network], preset), TRAINING[preset])


def _model(dequantizer: Dequantization, dim: int, network: CausalNetConfig, preset: Preset) -> TextConfig:
    voronoi = VoronoiConfig(dim, shared=True, spread=SPREAD)
    if dequantizer == "none":
        return SoftmaxTextConfig(network)
    if dequantizer == "exact":
        return DisjointTextConfig(network, voronoi)
    cells: CellsConfig = {"voronoi": voronoi, "binary-argmax": BinaryConfig(), "ordinal": OrdinalConfig()}[dequantizer]
    noise = CharacterNoise(spread=SPREAD)
    if preset == "small":
        return TextFlowConfig(network, cells, CharacterNoise(spread=SPREAD, width=32), blocks=2, width=32)
    return TextFlowConfig(network, cells, noise)


SPREAD = 0.1
"""Of the noise at the start, as a share of the way to the nearest wall."""
