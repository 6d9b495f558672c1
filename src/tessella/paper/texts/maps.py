"""Where a model puts its characters, seen from the side that shows most."""

from typing import Any

import torch
from torch import Tensor

from tessella.data import Text
from tessella.models import CausalText, SemiDiscrete
from tessella.runs import TextRun

MOST = 64  # characters of a map, the most frequent


@torch.no_grad()
def character_map(run: TextRun, text: Text) -> dict[str, Any]:
    """Names, frequencies, positions in the plane and nearest others of the most frequent characters.

    Positions are the middles of the learned cells, or the embeddings where the likelihood knows no cells; of more than
    two coordinates, the two principal ones. Who is nearest is decided in all of them.
    """
    share = torch.bincount(text.train, minlength=len(text.alphabet)).double() / len(text.train)
    chosen = share.argsort(descending=True, stable=True)[:MOST]
    chosen = chosen[share[chosen] > 0]
    points = _places(run.model)[chosen.to(run.device)].double().cpu()
    distance = torch.cdist(points, points).fill_diagonal_(torch.inf)
    names = run.alphabet.names()
    return {
        "of": "embeddings" if isinstance(run.model, CausalText) else "cells",
        "names": [names[i] for i in chosen],
        "share": [round(float(value), 6) for value in share[chosen]],
        "positions": [[round(x, 4) for x in point] for point in _flat(points).tolist()],
        "nearest": distance.argmin(1).tolist(),
    }


def _places(model: CausalText | SemiDiscrete) -> Tensor:
    if isinstance(model, CausalText):
        return model.embed
    cells = model.dequantizer.cells
    every = torch.arange(max(cells.counts), device=model.device)
    return cells.centre(every[None])[0]


def _flat(points: Tensor) -> Tensor:
    """(n, D) -> (n, 2): themselves, or their principal coordinates; a line where D = 1."""
    if points.shape[1] <= 2:
        return torch.nn.functional.pad(points, (0, 2 - points.shape[1]))
    centred = points - points.mean(0)
    axes: Tensor = torch.linalg.svd(centred, full_matrices=False).Vh[:2]
    return centred @ axes.T
