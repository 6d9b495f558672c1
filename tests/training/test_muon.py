"""Orthogonal steps for matrices, Adam's for the rest."""

import pytest
import torch
from torch import nn

from tessella.training.muon import SIZE, SMALLEST, Muon, divided, orthogonal

SHAPES = [(16, 16), (16, 64), (48, 16), (33, 17)]


def wide(shape: tuple[int, int]) -> tuple[int, int]:
    return min(shape), max(shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [1e-12, 1.0, 1e6])
def test_singular_values_become_one_and_singular_vectors_stay(shape, size):
    left, _, right = torch.linalg.svd(torch.randn(3, *wide(shape), dtype=torch.float64), full_matrices=False)
    values = size * torch.linspace(0.05, 1.0, min(shape), dtype=torch.float64)
    found = orthogonal(left * values @ right)
    inner = left.mT @ found @ right.mT
    torch.testing.assert_close(inner, torch.diag_embed(inner.diagonal(dim1=1, dim2=2)), atol=1e-9, rtol=0)
    assert 0.65 < inner.diagonal(dim1=1, dim2=2).min() <= inner.diagonal(dim1=1, dim2=2).max() < 1.25


def test_nothing_comes_of_nothing():
    assert torch.equal(orthogonal(torch.zeros(2, 16, 16)), torch.zeros(2, 16, 16))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_matrix_and_its_transpose_take_the_same_step_of_the_promised_size(shape):
    start, gradient = torch.randn(2, *shape)
    moved = []
    for flip in (False, True):
        matrix = nn.Parameter(start.mT.clone() if flip else start.clone())
        matrix.grad = gradient.mT.clone() if flip else gradient.clone()
        Muon([matrix], [], torch.tensor(0.1)).step()
        moved.append((matrix.mT if flip else matrix).detach())
    torch.testing.assert_close(moved[0], moved[1])
    size = (moved[0] - start).square().mean().sqrt() / 0.1
    assert size == pytest.approx(SIZE, rel=0.3)


def test_others_take_the_steps_of_adam_and_everything_decays():
    model, reference = (nn.Sequential(nn.Linear(20, 20), nn.Linear(20, 2)) for _ in range(2))
    reference.load_state_dict(model.state_dict())
    rate = torch.tensor(0.01)
    muon = Muon(*divided(model, model.parameters()), rate, weight_decay=0.1)
    adam = torch.optim.AdamW(reference.parameters(), lr=0.01, weight_decay=0.1)
    for step in range(3):
        for optimizer in (muon, adam):
            optimizer.zero_grad()
        for p, q in zip(model.parameters(), reference.parameters(), strict=True):
            p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(step))
            q.grad = p.grad.clone()
        muon.step()
        adam.step()
    for (name, p), q in zip(model.named_parameters(), reference.parameters(), strict=True):
        assert torch.equal(p, q) is (name != "0.weight"), name
    assert set(muon.state[model[0].weight]) == {"momentum"}


def test_matrices_are_weights_of_wide_linear_layers():
    model = nn.ModuleDict(
        {
            "wide": nn.Linear(SMALLEST, 2 * SMALLEST),
            "narrow": nn.Linear(SMALLEST - 1, 64),
            "names": nn.Embedding(64, 64),
            "norm": nn.LayerNorm(64),
        }
    )
    matrices, others = divided(model, model.parameters())
    assert [id(p) for p in matrices] == [id(model["wide"].weight)]
    assert len(matrices) + len(others) == len(list(model.parameters()))


def test_a_parameter_without_a_gradient_stays():
    kept, moved = (nn.Parameter(torch.randn(16, 16)) for _ in range(2))
    before, moved.grad = kept.detach().clone(), torch.randn(16, 16)
    Muon([kept, moved], [], torch.tensor(0.1)).step()
    assert torch.equal(kept, before)
