"""Laws of counts that back off to a network: mass one, each row left out of itself, draws that agree, sane tables."""

from itertools import product

import pytest
import torch
from safetensors.torch import load_file, save_file

from tessella.data import Rows, TableShape
from tessella.models import AutoregressiveConfig, BackoffConfig, BackoffTable
from tessella.models.backoff import DISCOUNTS
from tessella.training import Trainable, TrainingConfig, fit

COUNTS = (3, 1, 4, 2)
SHAPE = TableShape(COUNTS)
ALL_ROWS = torch.tensor(list(product(*map(range, COUNTS))))
CONFIG = BackoffConfig(AutoregressiveConfig(width=8, layers=1, dropout=0.0, orders=2, fast=False))


def rows_that_repeat(number: int = 60) -> torch.Tensor:
    """Some rows often, some once, most never."""
    return ALL_ROWS[(torch.randn(number) * 3).round().abs().long() % len(ALL_ROWS)]


def ready(codes: torch.Tensor | None = None, scale: float = 0.5) -> BackoffTable:
    """Counts of these rows; discounts and network far from their start."""
    codes = rows_that_repeat() if codes is None else codes
    model = CONFIG.start(SHAPE, (codes,), (codes[:10],)).model
    assert isinstance(model, BackoffTable)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(scale * torch.randn_like(parameter))
    return model.eval()


def same_weights(model: BackoffTable, codes: torch.Tensor) -> BackoffTable:
    """The model of other counts."""
    other = ready(codes, scale=0)
    other.network.load_state_dict(model.network.state_dict())
    with torch.no_grad():
        other.logit.copy_(model.logit)
    return other


@pytest.mark.parametrize("rows", [rows_that_repeat(), ALL_ROWS, ALL_ROWS[:1], ALL_ROWS[[5] * 9]], ids=len)
@torch.no_grad()
def test_probabilities_sum_to_one_and_none_is_zero(rows):
    for model in (ready(rows, scale=0), ready(rows)):
        log_prob = model.log_prob(ALL_ROWS)
        assert log_prob.isfinite().all()
        assert log_prob.exp().sum().item() == pytest.approx(1, abs=1e-12)


@torch.no_grad()
def test_counts_are_those_of_the_rows():
    codes = rows_that_repeat()
    expected = (codes == ALL_ROWS[:, None]).all(-1).sum(1)
    assert torch.equal(ready(codes).count(ALL_ROWS), expected)
    assert expected.min() == 0
    assert expected.max() > DISCOUNTS  # so that rows of all kinds were looked up


@torch.no_grad()
def test_in_training_a_row_does_not_know_of_itself():
    """The objective is the mean of -log P of each row under a model that counted all others, and of -log p."""
    codes = rows_that_repeat(12)
    model = ready(codes)
    model.network.natural, model.network.given, model.network.orders = 1.0, 0.0, 1  # one order: nothing is drawn
    others = [same_weights(model, torch.cat([codes[:i], codes[i + 1 :]])) for i in range(len(codes))]
    for other in others:
        other.network.orders = 1
    left_out = torch.cat([other.nll(codes[i : i + 1]) for i, other in enumerate(others)])
    expected = model.own * model.network.nll(codes).mean() + (1 - model.own) * left_out.mean()
    torch.testing.assert_close(model.loss(codes), expected)


@torch.no_grad()
def test_where_all_rows_differ_a_row_that_is_left_out_is_the_networks():
    """All mass that counts keep was taken from others; P of a new row is D / n p(row)."""
    model = ready(ALL_ROWS[:10])
    new = ALL_ROWS[10:]
    discounted = float(model.logit[0].sigmoid())
    torch.testing.assert_close(model.log_prob(new), model.network.log_prob(new) + torch.tensor(discounted).log())


@torch.no_grad()
def test_discounts_begin_as_one_would_by_counts_alone():
    """Of rows that came once, 1 - 2 Y n_2 / n_1 with Y = n_1 / (n_1 + 2 n_2), and so on."""
    codes = ALL_ROWS[[*range(8), *range(8, 12), *range(8, 12), 12, 12, 12]]  # 8 rows once, 4 twice, one three times
    model = ready(codes, scale=0)
    share = 8 / (8 + 2 * 4)
    expected = torch.tensor([1 - 2 * share * 4 / 8, 2 - 3 * share * 1 / 4])
    torch.testing.assert_close(model.logit.sigmoid()[:2] * torch.tensor([1, 2]), expected.to(model.logit))


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


def test_a_gradient_reaches_every_parameter():
    model = ready()
    assert isinstance(model, Trainable)
    model.loss(rows_that_repeat()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_what_a_small_network_cannot_learn_by_heart_is_counted(tmp_path):
    """Rows at random that come as often as words of a text do, a quarter of them with one column at random."""
    torch.set_default_dtype(torch.float32)
    shape, kinds = TableShape((5,) * 6), torch.randint(5, (100, 6))
    codes = kinds[torch.multinomial(1 / torch.arange(1.0, 101), 1500, replacement=True)]
    noisy = torch.nn.functional.one_hot(torch.randint(6, (1500,)), 6).bool() & (torch.rand(1500, 1) < 0.25)
    codes = torch.where(noisy, torch.randint(5, (1500, 6)), codes)
    train, test = codes[:1000], codes[1000:]
    assert 0.1 < (train != test[:, None]).any(-1).all(1).float().mean() < 0.5  # new rows, which counts know nothing of
    training = TrainingConfig(steps=150, batch_size=64, learning_rate=1e-2, accelerator="cpu", progress=False)
    config = BackoffConfig(AutoregressiveConfig(width=16, layers=1, dropout=0.0, fast=False))
    learned = {}
    for kind in (config, config.network):
        model = kind.start(shape, (train,), (test,)).model
        learned[kind.kind] = fit(model, Rows(train), Rows(test), training, tmp_path / kind.kind)
    backoff = learned["backoff"]
    assert backoff.best_validation < backoff.initial_validation - 0.1
    assert backoff.best_validation < learned["autoregressive"].best_validation - 0.5


@torch.no_grad()
def test_config_and_state_restore_the_model_bitwise(tmp_path):
    codes = rows_that_repeat()
    started = CONFIG.start(SHAPE, (codes,), (codes,))
    save_file(started.model.state_dict(), tmp_path / "model.safetensors")
    again = started.config.build(SHAPE)
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    again.check_tables()
    assert torch.equal(again.eval().log_prob(ALL_ROWS), started.model.eval().log_prob(ALL_ROWS))


@pytest.mark.parametrize("buffer", ["seen", "number", "key", "came"])
def test_tables_that_were_changed_are_refused(buffer):
    model = ready()
    model.check_tables()
    getattr(model, buffer)[0] -= 100
    with pytest.raises(ValueError, match="expected"):
        model.check_tables()


def test_what_cannot_repeat_is_refused():
    batch = torch.zeros(5, 1, dtype=torch.int64), torch.randn(5, 1).double()
    with pytest.raises(ValueError, match="1 columns of numbers; expected categories only"):
        CONFIG.start(TableShape((2,), whole=(False,), indicators=(-1,)), batch, batch)
    with pytest.raises(ValueError, match="rows: got 0"):
        CONFIG.build(SHAPE)
    with pytest.raises(ValueError, match="own: got 1"):
        BackoffTable(CONFIG.network.build(SHAPE), rows=1, own=1.0)
