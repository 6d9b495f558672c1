"""A disjoint mixture at a few moments while it learns: what its cells do."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch.optim import Adam

from tessella.densities import DisjointMixture, DisjointMixtureConfig, Flow
from tessella.models import VectorModel, build_vectors
from tessella.paper.toys import toy_rows

MOMENTS = (0, 30, 100, 300, 1_000, 3_000)
TOY = "pinwheel"
RATE, BATCH = 2e-3, 512


def moments(config: DisjointMixtureConfig, folder: Path, seed: int = 0) -> dict[int, Flow]:
    """Step -> the density after so many steps of Adam, in one run; those in the folder are read.

    No schedule and no averages, unlike in `training.fit`: a picture of the weights as they are. The anchors start at
    random, not among the points, so that there is something to be seen.
    """
    if not (folder / f"{MOMENTS[-1]}.safetensors").exists():
        _train(config, folder, seed)
    found = {}
    for step in MOMENTS:
        model = build_vectors(config, 2)
        model.load_state_dict(load_file(folder / f"{step}.safetensors"))
        assert isinstance(model.density, Flow)
        found[step] = model.density
    return found


def _train(config: DisjointMixtureConfig, folder: Path, seed: int) -> None:
    torch.manual_seed(seed)
    model = build_vectors(config, 2)
    (rows,) = toy_rows(TOY)["train"].tensors
    _start(model, rows[:BATCH])
    optimizer = Adam(model.parameters(), RATE)
    folder.mkdir(parents=True, exist_ok=True)
    for step in range(MOMENTS[-1] + 1):
        if step in MOMENTS:
            save_file(model.state_dict(), folder / f"{step}.safetensors")
        optimizer.zero_grad()
        model.loss(rows[torch.randint(len(rows), (BATCH,))]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()


def _start(model: VectorModel, rows: torch.Tensor) -> None:
    """As the rows suggest, but for the anchors."""
    assert isinstance(model.density, Flow)
    assert isinstance(model.density.base, DisjointMixture)
    tessellation = model.density.base.tessellation
    anchors = tessellation.anchors.detach().clone()
    model.initialize(rows)
    tessellation.move_anchors(anchors)
