"""Two models of one text on the same windows: how far apart, with the error of the difference.

python -m benchmarks.paired_texts runs/text/text8-voronoi-d8-seed0 runs/text/text8-binary-argmax-seed0

Windows differ much more from each other than two models do on one window, so that the errors of the two values say
little about their difference.
"""

from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from torch import Tensor

from tessella import records
from tessella.configs import to_json
from tessella.runs import TextRun, load_text_run

SEED = 0


@dataclass(frozen=True)
class Pair:
    """Which runs, on how much of the test part of their text."""

    first: tyro.conf.Positional[Path]
    second: tyro.conf.Positional[Path]
    windows: int = 8_000
    """The first so many test windows."""
    samples: int = 20
    """Importance samples of a bound."""
    device: Literal["cpu", "cuda"] = "cpu"
    out: Path = Path("results/text-paired.json")


def main(pair: Pair) -> None:
    runs = [load_text_run(folder, pair.device) for folder in (pair.first, pair.second)]
    if runs[0].config.data != runs[1].config.data:
        raise ValueError(f"second: got a run on {runs[1].config.data}; expected the windows of {runs[0].config.data}")
    bits = [_bits(run, pair) for run in runs]
    difference = bits[0] - bits[1]
    record: dict[str, Any] = {
        "data": runs[0].config.data.name,
        "windows": len(difference),
        "samples": pair.samples,
        "models": [to_json(run.config.model) for run in runs],
        "steps": [run.config.training.steps for run in runs],
        "bpc": [float(one.mean()) for one in bits],
        "difference": float(difference.mean()),
        "stderr": float(difference.std() / len(difference) ** 0.5),
        **records.provenance(SEED),
    }
    records.write(pair.out, record)
    print(f"{record['bpc'][0]:.4f} - {record['bpc'][1]:.4f} = {record['difference']:.4f} +- {record['stderr']:.4f}")
    print(pair.out)


@torch.no_grad()
def _bits(run: TextRun, pair: Pair) -> Tensor:
    """Bits per character of each window: exact, or the importance-weighted bound."""
    data = run.config.data
    windows = data.load(run.alphabet).windows("test", data.length)
    (batch,) = windows.to(run.device).batch(torch.arange(len(windows))[: pair.windows])
    torch.manual_seed(SEED)
    return -run.model.log_prob(batch.long(), samples=pair.samples).double().cpu() / (data.length * log(2))


if __name__ == "__main__":
    main(tyro.cli(Pair))
