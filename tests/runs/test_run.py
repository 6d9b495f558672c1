"""A run and what is made of it: placement, the way back from the folder, divergence from a known law."""

from dataclasses import replace

import pytest
import torch

from tessella.bijections import Coupling, LogisticMixture, VariableCoupling
from tessella.paper.presets import PRESETS
from tessella.runs import load_run, train_run
from tessella.paper.quantized import compare_with_target
from tessella.runs.run import DataConfig, record_of


def small(placement: str):
    preset = PRESETS["quantized-2d"]
    training = replace(
        preset.training, steps=1, learning_rate=1e-9, batch_size=64, validation_rows=20, progress=False, warmup_steps=0
    )
    model = replace(preset.model, placement=placement, blocks=2, width=8, noise_blocks=0, noise_width=8)
    return replace(preset, data=DataConfig("quantized-two_moons"), model=model, training=training)


def roughness(model) -> float:
    """Distance between anchors of neighbouring bins, against that between any two."""
    anchors = model.dequantizer.cells.map.tessellation.anchors[0, 20:70].detach()  # where the data is
    return float(anchors.diff(dim=0).norm(dim=-1).mean() / torch.cdist(anchors, anchors).mean())


def test_training_starts_from_the_profiles_of_its_rows(tmp_path):
    placed, _ = train_run(small("profiles"), tmp_path / "profiles")
    random, _ = train_run(small("random"), tmp_path / "random")
    assert roughness(placed.model) < 0.6 < roughness(random.model)


@pytest.mark.parametrize("blocks", [0, 2])
def test_a_base_of_modes_starts_near_what_counting_gives(blocks, tmp_path):
    """On Nursery, whose columns are independent, that is 9.47 nats; a Gaussian base starts many nats above."""
    torch.set_default_dtype(torch.float32)
    preset = PRESETS["nursery"]
    training = replace(small("profiles").training, validation_rows=100)
    small_model = {"blocks": blocks, "width": 8, "noise_width": 8, "noise_base": "gaussian", "box": 0.0, "classes": 2}
    model = replace(preset.model, base="classes", **small_model, squashing="root", coupling="within")
    run, result = train_run(replace(preset, model=model, training=training), tmp_path)
    assert 9.46 < result.best_validation < 9.8
    assert run.model.sample(5).shape == (5, 8)
    again = load_run(tmp_path)
    assert torch.equal(again.model.log_prob(run.table.test[:3], 2).isfinite(), torch.ones(3, dtype=torch.bool))


@pytest.mark.parametrize("modes", [0, 3])
def test_couplings_across_variables_train(modes, tmp_path):
    preset = PRESETS["nursery"]
    model = replace(preset.model, coupling="across", modes=modes, blocks=4, width=8, noise_width=8)
    training = replace(preset.training, steps=3, batch_size=32, validation_rows=20, progress=False, warmup_steps=0)
    run, result = train_run(replace(preset, model=model, training=training), tmp_path)
    assert result.best_validation < 100
    moves = [part.elementwise for part in run.model.density.modules() if isinstance(part, Coupling | VariableCoupling)]
    assert [isinstance(move, LogisticMixture) for move in moves] == [modes > 0] * 4
    assert sum(isinstance(part, VariableCoupling) for part in run.model.density.modules()) == 2
    assert run.model.sample(3).shape == (3, 8)


def test_a_folder_gives_the_model_back(tmp_path):
    torch.set_default_dtype(torch.float32)
    run, result = train_run(small("profiles"), tmp_path)
    again = load_run(tmp_path)
    for name, weight in run.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], weight), name
    record = record_of(again, kl=1.0)
    assert (record["steps"], record["kl"], record["validation_nll"]) == (1, 1.0, result.best_validation)


def test_divergence_of_the_law_from_itself_and_from_its_marginals(tmp_path, monkeypatch):
    torch.set_default_dtype(torch.float32)
    run, _ = train_run(small("profiles"), tmp_path)
    target = compare_with_target(run, samples=1)[2].probabilities.double()
    codes_in_order = target.clamp_min(1e-30).log().flatten()
    monkeypatch.setattr(type(run.model), "log_prob", lambda self, codes, samples: codes_in_order)
    result, _, _ = compare_with_target(run, samples=1)
    assert result.kl == pytest.approx(0, abs=1e-9)
    assert result.mass == pytest.approx(1)
    own = -(target * target.clamp_min(1e-300).log()).sum()
    apart = sum(-(p * p.clamp_min(1e-300).log()).sum() for p in (target.sum(0), target.sum(1)))
    assert result.kl_independent == pytest.approx(float(apart - own))
