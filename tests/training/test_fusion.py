"""A compiled loss is the loss; what cannot be compiled is computed as it is written, with a reason."""

import pytest
import torch
from tests.training.small_models import Noisy, noisy_rows

from tessella.training import fusion
from tessella.training.fusion import FusedLoss


def test_models_of_one_structure_share_a_compilation(monkeypatch):
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    fused = torch.compile(lambda model, *batch: model.loss(*batch), backend=backend, dynamic=False)
    monkeypatch.setattr(fusion, "_compiled", lambda: fused)
    x = noisy_rows(8)
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = Noisy()
        state = torch.get_rng_state()
        expected = model.loss(x)
        torch.set_rng_state(state)
        torch.testing.assert_close(FusedLoss(model)(x), expected)
    assert len(compiled) == 1


def test_a_failed_compilation_is_said_once_and_costs_nothing(monkeypatch):
    def fails(model, *batch):
        raise RuntimeError("no compiler\nno linker\nno luck\nand a long trace")

    monkeypatch.setattr(fusion, "_compiled", lambda: fails)
    model, x = Noisy(), noisy_rows(8)
    fused = FusedLoss(model)
    state = torch.get_rng_state()
    with pytest.warns(UserWarning, match="of Noisy is not compiled: RuntimeError: no compiler no linker no luck$"):
        first = fused(x)
    second = fused(x)
    torch.set_rng_state(state)
    assert torch.equal(torch.stack([first, second]), torch.stack([model.loss(x), model.loss(x)]))
