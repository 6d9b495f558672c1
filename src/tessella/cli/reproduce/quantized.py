"""`tessella reproduce quantized-2d`."""

from dataclasses import asdict, replace
from pathlib import Path


def quantized_2d(
    data: str = "pinwheel",
    out: Path = Path("runs/reproduce"),
    results: Path | None = None,
    steps: int = 0,
    samples: int = 100,
    seed: int = 0,
) -> None:
    """Figures 4 and 5: a 2-D density quantized to 91 x 91 categories whose order the model is not told.

    Measures the divergence from the known distribution, beside that of independent variables.

    Args:
        data: pinwheel, eight_gaussians, two_moons, checkerboard, rings, two_spirals, swiss_roll.
        out: folder for the run and the pictures.
        results: folder for the JSON record; the run's own without it.
        steps: train for so many steps instead of the preset's.
        samples: importance samples per cell of the final comparison.
        seed: of everything.
    """
    import torch

    from tessella import records
    from tessella.data import load_table
    from tessella.models import SemiDiscrete
    from tessella.paper.figures.quantized import draw_learned_cells, draw_quantized
    from tessella.paper.quantized import compare_with_target
    from tessella.paper.tables.recipes import QUANTIZED
    from tessella.runs import DataConfig, RunConfig, record_of, train_run

    out, name = out / f"quantized-2d-{data}", f"quantized-{data}"
    training = replace(QUANTIZED.training, seed=seed, steps=steps or QUANTIZED.training.steps)
    table = load_table(name)
    run, fitted = train_run(RunConfig(DataConfig(name), QUANTIZED.model, training, "small"), table, out)
    assert isinstance(run.model, SemiDiscrete)
    torch.manual_seed(seed)
    result, probabilities, target = compare_with_target(run, samples)
    (codes,) = run.model.sample(100_000)
    bins = len(target.probabilities)
    frequencies = torch.bincount(codes[:, 0] * bins + codes[:, 1], minlength=bins**2).view(bins, bins) / len(codes)
    title = f"{data}: KL {result.kl:.3f} nats (independent variables: {result.kl_independent:.3f})"
    pictures = [
        draw_quantized(out / f"{data}.png", target.probabilities, frequencies, probabilities, title),
        draw_learned_cells(out / f"{data}-cells.png", run.model),
    ]
    records.write((results or out) / f"quantized-2d-{data}.json", record_of(run, table, **asdict(result)))
    print(f"{title}\nmass of all cells {result.mass:.4f}; trained {fitted.seconds:.0f} s, {fitted.steps:,} steps")
    print(*pictures, sep="\n")
