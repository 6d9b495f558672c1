"""The parts of the loop, each against its definition."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from tests.training.small_models import NOISY, Gaussian, Noisy, gaussian_rows, noisy_source
from torch import nn

from tessella.data import Rows
from tessella.training import TrainingConfig, average_decay, learning_rate
from tessella.training.batches import Batches
from tessella.training.step import NO_STEP, TrainingStep
from tessella.training.validation import nll_sums


def test_schedule_rises_linearly_then_falls_to_its_final_fraction():
    config = TrainingConfig(steps=1000, warmup_steps=100, learning_rate=2.0, final_fraction=0.1)
    rates = [learning_rate(step, config) for step in range(1000)]
    assert rates[:100] == pytest.approx([2.0 * (step + 1) / 100 for step in range(100)])
    assert all(later <= earlier for earlier, later in pairwise(rates[99:]))
    assert (max(rates), rates[-1]) == pytest.approx((2.0, 0.2))
    assert rates[100 + 449] + rates[100 + 450] == pytest.approx(2 * 1.1)
    assert learning_rate(0, replace(config, warmup_steps=0)) == 2.0


def make_step(model: nn.Module, optimizer=torch.optim.Adam, clip_norm: float = 0.0, **options) -> TrainingStep:
    parameters = dict(model.named_parameters())
    averages = [p.detach().clone() for p in parameters.values()]
    rate = torch.tensor(0.0)
    return TrainingStep(model.loss, parameters, averages, optimizer(parameters.values(), lr=rate, **options), clip_norm)


@pytest.mark.parametrize("clip_norm", [0.0, 0.3, 100.0])
@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW], ids=["adam", "adamw"])
def test_step_is_the_textbook_step_and_the_average_follows_its_recursion(optimizer, clip_norm: float):
    config, rows = TrainingConfig(ema_decay=0.8, warmup_steps=5, steps=30), gaussian_rows()
    model, reference = Gaussian(), Gaussian()
    step = make_step(model, optimizer, clip_norm, weight_decay=0.1)
    plain = optimizer(reference.parameters(), weight_decay=0.1)
    averages = [p.detach().clone() for p in reference.parameters()]
    losses = []
    for t in range(30):
        step.prepare(t, learning_rate(t, config), average_decay(t, config))
        step(rows)
        plain.param_groups[0]["lr"] = learning_rate(t, config)
        plain.zero_grad()
        loss = reference.loss(rows)
        loss.backward()
        if clip_norm:
            nn.utils.clip_grad_norm_(reference.parameters(), clip_norm)
        plain.step()
        decay = average_decay(t, config)
        averages = [decay * a + (1 - decay) * p.detach() for a, p in zip(averages, reference.parameters(), strict=True)]
        losses.append(loss.item())
    for actual, expected in zip([*step.parameters, *step.averages], [*reference.parameters(), *averages], strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-9)
    assert step.meter.tolist() == pytest.approx([sum(losses), 30])
    assert int(step.first_bad) == NO_STEP


def test_no_averaging_means_the_weights_themselves():
    step = make_step(Gaussian())
    for t in range(3):
        step.prepare(t, 0.1, average_decay(t, TrainingConfig(ema_decay=0)))
        step(gaussian_rows())
    assert all(torch.equal(a, p) for a, p in zip(step.averages, step.parameters, strict=True))


def test_step_remembers_the_first_trouble_only():
    model = Gaussian()
    step = make_step(model)
    for t, scale in enumerate([1.0, float("nan"), float("inf")]):
        step.prepare(t, 0.0, 0.0)
        step(gaussian_rows() * scale)
    assert int(step.first_bad) == 1
    assert step.evidence[0].isnan()


def test_a_parameter_outside_the_loss_is_left_alone():
    model = Gaussian()
    model.unused = nn.Parameter(torch.ones(3))
    step = make_step(model, torch.optim.AdamW, clip_norm=1.0, weight_decay=0.5)
    step.prepare(0, 0.1, 0.5)
    step(gaussian_rows())
    assert model.unused.tolist() == [1.0, 1.0, 1.0]
    assert int(step.first_bad) == NO_STEP


@pytest.mark.parametrize(("rows", "size"), [(10, 3), (12, 4), (5, 8)])
def test_an_epoch_shows_every_row_at_most_once_and_epochs_differ(rows: int, size: int):
    batches = Batches(Rows(torch.arange(rows)), size, seed=2)
    epochs = [torch.cat([batches(e * batches.per_epoch + i)[0] for i in range(batches.per_epoch)]) for e in range(3)]
    for epoch in epochs:
        assert len(set(epoch.tolist())) == len(epoch) == rows - rows % batches.size
    assert not torch.equal(epochs[0], epochs[1])


def test_batches_are_a_function_of_seed_and_step():
    rows = Rows(torch.arange(100))
    forwards, backwards = Batches(rows, 7, seed=2), Batches(rows, 7, seed=2)
    one = [forwards(step)[0] for step in range(40)]
    torch.rand(5)
    other = [backwards(step)[0] for step in reversed(range(40))][::-1]
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert not torch.equal(one[0], Batches(rows, 7, seed=3)(0)[0])


@pytest.mark.parametrize(("rows", "size"), [(100, 8), (7, 8)])
def test_processes_share_the_global_batch(rows: int, size: int):
    table = Rows(torch.arange(rows))
    whole = Batches(table, size, seed=2)
    shares = [Batches(table, size, seed=2, rank=rank, processes=4) for rank in range(4)]
    for step in range(5):
        parts = torch.cat([share(step)[0] for share in shares])
        assert len(set(parts.tolist())) == len(parts) == min(size, rows) // 4 * 4
        if size <= rows:
            assert torch.equal(parts, whole(step)[0])


def test_validation_noise_does_not_depend_on_the_number_of_processes():
    model, source, rows = Noisy().eval(), noisy_source(70), torch.arange(70)
    whole = nll_sums(model, source, rows, NOISY)
    parts = [nll_sums(model, source, rows, NOISY, rank, processes=3) for rank in range(3)]
    assert torch.equal(sum(parts), whole)
    assert len(whole) == 5


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("steps", 0, "steps: got 0; expected at least 1"),
        ("learning_rate", 0.0, "learning_rate: got 0.0; expected a positive number"),
        ("ema_decay", 1.0, "expected a number below 1"),
        ("final_fraction", 1.5, "final_fraction: got 1.5; expected at most 1"),
        ("clip_norm", float("nan"), "clip_norm: got nan"),
        ("optimizer", "sgd", "optimizer: got 'sgd'; expected one of adam, adamw"),
        ("time_budget", 0.0, "expected a positive number of seconds, or None"),
        ("devices", 3, "batch_size: got 256; expected a multiple of devices = 3"),
    ],
)
def test_config_refuses_what_cannot_work(field: str, value: object, message: str):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**{field: value})
