"""Laws of means of exact models: mass one, no worse than the members on average, draws that agree."""

from itertools import product

import pytest
import torch
from safetensors.torch import load_file, save_file

from tessella.data import TableShape
from tessella.models import AutoregressiveConfig, EnsembleConfig, EnsembleTable
from tessella.training import Trainable

COUNTS = (3, 1, 4, 2)
SHAPE = TableShape(COUNTS)
ALL_ROWS = torch.tensor(list(product(*map(range, COUNTS))))
MEMBER = AutoregressiveConfig(width=8, layers=1, dropout=0.0, orders=2, fast=False)


def ready(members: int = 3) -> EnsembleTable:
    """Far from its start."""
    model = EnsembleConfig(MEMBER, members).start(SHAPE, (ALL_ROWS,), (ALL_ROWS,)).model
    assert isinstance(model, EnsembleTable)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize("members", [1, 3])
@torch.no_grad()
def test_the_mean_of_distributions_is_one(members):
    model = ready(members)
    each = torch.stack([member.log_prob(ALL_ROWS) for member in model.members])
    torch.testing.assert_close(model.log_prob(ALL_ROWS).exp(), each.exp().mean(0))
    assert model.log_prob(ALL_ROWS).exp().sum().item() == pytest.approx(1, abs=1e-12)
    assert len(each.exp().unique(dim=0)) == members


@torch.no_grad()
def test_a_row_costs_no_more_than_it_costs_the_members_on_average():
    model = ready()
    mean = torch.stack([member.nll(ALL_ROWS) for member in model.members]).mean(0)
    assert (model.nll(ALL_ROWS) <= mean + 1e-12).all()
    assert (model.nll(ALL_ROWS) < mean - 1e-3).any()


def test_members_learn_side_by_side():
    model = ready(2)
    assert isinstance(model, Trainable)
    model.loss(ALL_ROWS).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@torch.no_grad()
def test_samples_follow_the_probabilities():
    """Pearson's chi-squared over 24 rows, mean 23 and deviation 6.8."""
    model, number = ready(), 20_000
    (draws,) = model.sample(number)
    seen = torch.stack([(draws == row).all(-1).sum() for row in ALL_ROWS])
    assert int(seen.sum()) == number
    expected = number * model.log_prob(ALL_ROWS).exp()
    rare = expected < 5
    seen, expected = (torch.cat([n[~rare], n[rare].sum(0, keepdim=True) + 1e-9]) for n in (seen.double(), expected))
    assert ((seen - expected).square() / expected).sum().item() < 60
    assert len(model.sample(1)[0]) == 1


@torch.no_grad()
def test_numbers_and_saved_weights(tmp_path):
    """Of a table with a number, whose bins the start found for all members alike."""
    shape = TableShape((3,), whole=(False,), indicators=(-1,))
    batch = torch.randint(3, (50, 1)), torch.randn(50, 1).double()
    started = EnsembleConfig(MEMBER, 2).start(shape, batch, batch)
    save_file(started.model.state_dict(), tmp_path / "model.safetensors")
    again = started.config.build(shape)
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(again.eval().log_prob(*batch), started.model.eval().log_prob(*batch))
    codes, numbers = again.sample(7)
    assert (codes.shape, numbers.shape) == ((7, 1), (7, 1))


@pytest.mark.parametrize("call", ["build", "start"])
def test_nobody_is_no_ensemble(call):
    rows = (ALL_ROWS,)
    with pytest.raises(ValueError, match="members: got none"):
        getattr(EnsembleConfig(MEMBER, 0), call)(SHAPE, *((rows, rows) if call == "start" else ()))
