"""`tessella reproduce`."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import tyro


def reproduce(
    experiment: tyro.conf.Positional[Literal["quantized-2d", "dequantizers"]],
    data: str = "pinwheel",
    out: Path = Path("runs/reproduce"),
    results: Path | None = None,
    steps: int = 0,
    samples: int = 100,
    seed: int = 0,
) -> None:
    """Reproduce an experiment of the paper, with pictures and a record of the numbers.

    quantized-2d: Figures 4 and 5, a 2-D density quantized to 91 x 91 categories whose order the model is not told; the
    divergence from the known law, beside that of independent variables. dequantizers: Figure 3, the geometries.

    Args:
        experiment: which.
        data: quantized-2d: pinwheel, eight_gaussians, two_moons, checkerboard, rings, two_spirals, swiss_roll.
        out: folder for the run and the pictures.
        results: folder for the JSON record; the run's own without it.
        steps: train for so many steps instead of the preset's.
        samples: importance samples per cell of the final comparison.
        seed: of everything.
    """
    if experiment == "dequantizers":
        from tessella.report.dequantizers import draw_dequantizers

        print(f"Figure 3: {draw_dequantizers(out / 'dequantizers.png', seed)}")
        return
    _quantized(data, out / f"quantized-2d-{data}", results, steps, samples, seed)


def _quantized(data: str, out: Path, results: Path | None, steps: int, samples: int, seed: int) -> None:
    import torch

    from tessella import records
    from tessella.experiments import PRESETS, train_run
    from tessella.experiments.quantized import compare_with_law
    from tessella.experiments.run import QUANTIZED, DataConfig, record_of
    from tessella.report.quantized import draw_learned_cells, draw_quantized

    preset = PRESETS["quantized-2d"]
    training = replace(preset.training, seed=seed, steps=steps or preset.training.steps)
    config = replace(preset, data=DataConfig(QUANTIZED + data), training=training)
    run, fitted = train_run(config, out)
    torch.manual_seed(seed)
    result, probabilities, target = compare_with_law(run, samples)
    codes = run.model.sample(100_000)
    bins = len(target.probabilities)
    frequencies = torch.bincount(codes[:, 0] * bins + codes[:, 1], minlength=bins**2).view(bins, bins) / len(codes)
    title = f"{data}: KL {result.kl:.3f} nats (independent variables: {result.kl_independent:.3f})"
    pictures = [
        draw_quantized(out / f"{data}.png", target.probabilities, frequencies, probabilities, title),
        draw_learned_cells(out / f"{data}-cells.png", run.model),
    ]
    records.write((results or out) / f"quantized-2d-{data}.json", record_of(run, **asdict(result)))
    print(f"{title}\nmass of all cells {result.mass:.4f}; trained {fitted.seconds:.0f} s, {fitted.steps:,} steps")
    print(*pictures, sep="\n")
