"""Presets: each says its launch line, its time, and the score it reached (records in results/)."""

from dataclasses import replace

from tessella.models import SemiDiscreteConfig
from tessella.runs.run import DataConfig, RunConfig
from tessella.training import TrainingConfig

# tessella train nursery --out runs/nursery
# 3.5 minutes on one CPU core; IW-100 test bound 9.505 nats, floor 9.470 (results/nursery-cpu.json).
NURSERY = RunConfig(
    data=DataConfig("nursery"),
    model=SemiDiscreteConfig(
        dim=2, blocks=4, width=32, layers=1, noise_width=32, noise_base="ball", box=3.0, train_samples=4
    ),
    training=TrainingConfig(steps=3_000, batch_size=128, learning_rate=2e-3, validate_every=400, accelerator="cpu"),
    preset="nursery-cpu",
)

# tessella reproduce quantized-2d --data pinwheel
# 4 minutes on one CPU core; KL 0.157 nats, independent variables 1.026 (results/quantized-2d-pinwheel.json).
QUANTIZED_2D = RunConfig(
    data=DataConfig("quantized-pinwheel"),
    model=SemiDiscreteConfig(
        dim=2,
        density="flat",
        blocks=12,
        width=128,
        noise_blocks=4,
        noise_width=64,
        noise_base="ball",
        box=4.0,
        train_samples=4,
    ),
    training=TrainingConfig(steps=5_000, batch_size=256, learning_rate=2e-3, validate_every=500, accelerator="cpu"),
    preset="quantized-2d-cpu",
)

# tessella train paper --name connect4 --out runs/connect4-paper
# The published architecture and budget, for one GPU; not run yet.
PAPER = RunConfig(
    data=DataConfig("connect4"),
    model=SemiDiscreteConfig(
        placement="random",
        dim=6,
        density="flat",
        blocks=16,
        width=512,
        noise_blocks=4,
        noise_width=512,
        noise_base="gaussian",
        box=3.0,
        context=64,
    ),
    training=TrainingConfig(steps=200_000, batch_size=64, learning_rate=5e-4, validate_every=2_000),
    preset="paper",
)

ABOUT = {
    "nursery": "Nursery on a CPU, minutes.",
    "quantized-2d": "A quantized 2-D toy on a CPU, minutes (`tessella reproduce quantized-2d` adds the pictures).",
    "paper": "The published architecture and budget, for a GPU; --name picks the table.",
    "custom": "Plain defaults to start from; --name picks the table.",
}

PRESETS: dict[str, RunConfig] = {
    "nursery": NURSERY,
    "quantized-2d": QUANTIZED_2D,
    "paper": PAPER,
    "custom": replace(RunConfig(), preset="custom"),
}
