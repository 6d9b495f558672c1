"""`tessella reproduce when-cells-help`."""

from pathlib import Path
from typing import Literal


def when_cells_help(
    out: Path = Path("runs/regimes"),
    results: Path = Path("results"),
    jobs: int = 1,
    minutes: float = 0.0,
    first: int = 0,
    steps: int = 0,
    dims: tuple[int, ...] = (),
    cells: tuple[int, ...] = (),
    bent: bool = False,
    seed: int = 0,
    accelerator: Literal["auto", "cpu", "cuda"] = "auto",
) -> None:
    """The same blocks with and without cells, on modes of known density; a record for each cell of the grid.

    What has a record is not trained again, and the most telling questions come first, so that the study can be stopped
    and continued. `tessella results` writes its tables into docs/mixtures.md, and its picture.

    Args:
        out: folder for the runs.
        results: folder of the records, which go to results/regimes.
        jobs: processes that train at the same time.
        minutes: stop then, whatever is left; 0 for all of the grid. Processes are ended amid their work: under CUDA MPS
            that can end other programs on the GPU, too.
        first: only so many questions; 0 for all.
        steps: only questions of so many steps; 0 for all.
        dims: only questions of these dimensions; none for all.
        cells: only questions of these numbers of cells, 0 where there are none.
        bent: only questions about modes that are bent, which no Gaussian is.
        seed: of the data and of training.
        accelerator: where to train.
    """
    from tessella.paper.regimes import grid, study

    questions = [
        question
        for question in grid(seed)
        if steps in (0, question.steps)
        and (not dims or question.data.dim in dims)
        and (not cells or question.cells in cells)
        and (question.data.bent or not bent)
    ]
    if not questions:
        raise ValueError(f"steps, dims, cells: got {steps}, {dims}, {cells}; expected some question of the grid")
    for question, record in study(questions[: first or None], out, results, jobs, minutes, accelerator):
        print(
            f"{question.name}: KL {record['kl']:.3f} +- {record['kl_stderr']:.3f} nats, {record['seconds']} s",
            flush=True,
        )
