"""A run and what is made of it: placement, the way back from the folder, divergence from a known distribution."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tessella.bijections import Coupling, LogisticMixture, VariableCoupling
from tessella.configs import changed
from tessella.data import load_table
from tessella.dequantizers import ConditionalNoise
from tessella.models import MixtureStartConfig
from tessella.paper.quantized import compare_with_target
from tessella.paper.tables.recipes import QUANTIZED, SMALL
from tessella.runs import DataConfig, RunConfig, load_run, record_of, train_run
from tessella.training import TrainingConfig

TOY, NURSERY = load_table("quantized-two_moons"), load_table("nursery")
TRAINING = TrainingConfig(
    steps=1, learning_rate=1e-9, batch_size=64, validation_rows=20, progress=False, warmup_steps=0, accelerator="cpu"
)


def small(placement: str) -> RunConfig:
    tiny = {"density.blocks": 2, "density.width": 8, "noise.blocks": 0, "noise.width": 8, "cells.placement": placement}
    return RunConfig(DataConfig("quantized-two_moons"), changed(QUANTIZED.model, tiny), TRAINING)


def roughness(model) -> float:
    """Distance between anchors of neighbouring bins, against that between any two."""
    anchors = model.dequantizer.cells.map.tessellation.anchors[0, 20:70].detach()  # where the data is
    return float(anchors.diff(dim=0).norm(dim=-1).mean() / torch.cdist(anchors, anchors).mean())


def test_training_starts_from_the_profiles_of_its_rows(tmp_path):
    placed, _ = train_run(small("profiles"), TOY, tmp_path / "profiles")
    random, _ = train_run(small("random"), TOY, tmp_path / "random")
    assert roughness(placed.model) < 0.6 < roughness(random.model)


@pytest.mark.parametrize("blocks", [0, 2])
def test_a_start_from_a_mixture_is_near_what_counting_gives(blocks, tmp_path):
    """On Nursery, whose columns are independent, that is 9.47 nats; a Gaussian base starts many nats above."""
    torch.set_default_dtype(torch.float32)
    model = MixtureStartConfig(components=2, blocks=blocks, width=8, noise=ConditionalNoise(width=8, layers=1))
    config = RunConfig(DataConfig("nursery"), model, replace(TRAINING, validation_rows=100))
    run, result = train_run(config, NURSERY, tmp_path)
    assert 9.46 < result.best_validation < 9.8
    assert run.model.sample(5)[0].shape == (5, 8)
    again, few = load_run(tmp_path), NURSERY.test.batch(torch.arange(3))
    assert bool(again.model.log_prob(*few, samples=2).isfinite().all())


@pytest.mark.parametrize("logistics", [0, 3])
def test_couplings_across_variables_train(logistics, tmp_path):
    tiny = {"density.logistics": logistics, "density.width": 8, "noise.width": 8}
    model = changed(SMALL["voronoi"].model, {"density": "coupling", "density.blocks": 4, "density.across": True} | tiny)
    training = replace(TRAINING, steps=3, batch_size=32, learning_rate=2e-3)
    run, result = train_run(RunConfig(DataConfig("nursery"), model, training), NURSERY, tmp_path)
    assert result.best_validation < 100
    moves = [part.elementwise for part in run.model.density.modules() if isinstance(part, Coupling | VariableCoupling)]
    assert [isinstance(move, LogisticMixture) for move in moves] == [logistics > 0] * 4
    assert sum(isinstance(part, VariableCoupling) for part in run.model.density.modules()) == 2
    assert run.model.sample(3)[0].shape == (3, 8)


def test_a_folder_gives_the_model_back(tmp_path):
    torch.set_default_dtype(torch.float32)
    run, result = train_run(small("profiles"), TOY, tmp_path)
    again = load_run(tmp_path)
    for name, weight in run.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weight), name
    record = record_of(again, TOY, kl=1.0)
    assert (record["steps"], record["kl"], record["validation_nll"]) == (1, 1.0, result.best_validation)


def test_divergence_of_the_target_from_itself_and_from_its_marginals(tmp_path, monkeypatch):
    torch.set_default_dtype(torch.float32)
    run, _ = train_run(small("profiles"), TOY, tmp_path)
    target = compare_with_target(run, samples=1)[2].probabilities.double()
    codes_in_order = target.clamp_min(1e-30).log().flatten()
    monkeypatch.setattr(type(run.model), "log_prob", lambda self, *batch, samples: codes_in_order)
    result, _, _ = compare_with_target(run, samples=1)
    assert result.kl == pytest.approx(0, abs=1e-9)
    assert result.mass == pytest.approx(1)
    own = -(target * target.clamp_min(1e-300).log()).sum()
    apart = sum(-(p * p.clamp_min(1e-300).log()).sum() for p in (target.sum(0), target.sum(1)))
    assert result.kl_independent == pytest.approx(float(apart - own))


def test_a_folder_of_an_older_version_is_refused_with_advice():
    folder = Path(__file__).parent.parent / "legacy" / "0.1.0" / "run"
    with pytest.raises(
        ValueError, match=r"a run of tessella 0\.1\.0.*train it again, or evaluate it with that version"
    ):
        load_run(folder)
