"""Laws of every baseline: mass one, samples that agree with probabilities, save and load, no row impossible."""

from itertools import product
from math import log

import pytest
import torch
from safetensors.torch import load_file, save_file

from tessella.baselines import (
    BASELINES,
    BlockAutoregressiveMixture,
    CategoricalMixture,
    CausalTransformer,
    ChowLiu,
    DiscreteFlow,
    Independent,
)
from tessella.baselines import base as base_module
from tessella.data import Rows
from tessella.training import Trainable, TrainingConfig, fit

COUNTS = (3, 1, 4, 2)
ALL_ROWS = torch.tensor(list(product(*map(range, COUNTS))))

# name: an untouched model; what the constructor's arguments alone restore
CONSTRUCTORS = {
    "independent": lambda counts: Independent(counts),
    "chow-liu": lambda counts: ChowLiu(counts),
    "mixture": lambda counts: CategoricalMixture(counts, components=3),
    "blocks": lambda counts: BlockAutoregressiveMixture(counts, groups=2, components=3, width=8, layers=1),
    "causal-transformer": lambda counts: CausalTransformer(counts, width=8, layers=2),
    "discrete-flow": lambda counts: DiscreteFlow(counts, layers=5, width=8),
}
TRAINABLE = ["blocks", "causal-transformer", "discrete-flow"]


def dependent_rows(number: int, counts: tuple[int, ...]) -> torch.Tensor:
    """Each code follows the one before it most of the time; the last category of every column but the last is rare."""
    codes = torch.zeros(number, len(counts), dtype=torch.int64)
    for j, count in enumerate(counts):
        before = codes[:, j - 1] if j else torch.zeros(number, dtype=torch.int64)
        free = torch.rand(number) < 0.3
        codes[:, j] = torch.where(free, torch.randint(max(1, count - 1), (number,)), (2 * before + 1) % count)
    return codes


def perturbed(model, scale: float):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(scale * torch.randn_like(parameter))
    return model


def ready(name: str, counts: tuple[int, ...] = COUNTS, rows: int = 300):
    """A model that has seen rows: fitted in closed form, or initialised and far from its initial weights."""
    model = CONSTRUCTORS[name](counts)
    codes = dependent_rows(rows, counts)
    if name in TRAINABLE:
        model.initialize(codes)
        return perturbed(model, 0.5)
    return model.fit(codes)


@pytest.fixture(params=CONSTRUCTORS, ids=str)
def name(request):
    return request.param


def test_every_baseline_is_under_the_laws():
    assert set(CONSTRUCTORS) == set(BASELINES)


@pytest.mark.parametrize("counts", [COUNTS, (5,), (2, 2), (6, 3, 5)], ids=str)
def test_probabilities_of_all_rows_sum_to_one(name, counts):
    rows = torch.tensor(list(product(*map(range, counts))))
    for model in (CONSTRUCTORS[name](counts), ready(name, counts)):
        log_prob = model.log_prob(rows)
        assert log_prob.shape == (len(rows),)
        assert log_prob.exp().sum().item() == pytest.approx(1.0, abs=1e-12)


def test_a_new_model_is_uniform(name):
    new = CONSTRUCTORS[name](COUNTS)
    torch.testing.assert_close(new.log_prob(ALL_ROWS), torch.full((24,), -log(24)))
    assert ready(name).log_prob(ALL_ROWS).std() > 0.5


@torch.no_grad()
def test_samples_follow_the_probabilities(name):
    """Pearson's chi-squared, mean 23 and deviation 6.8 or less; rows expected fewer than 5 times are one class."""
    model, number = ready(name), 20_000
    draws = model.sample(number)
    assert draws.shape == (number, 4)
    assert draws.dtype == torch.int64
    seen = torch.stack([(draws == row).all(-1).sum() for row in ALL_ROWS])
    assert int(seen.sum()) == number
    expected = number * model.log_prob(ALL_ROWS).exp()
    rare = expected < 5
    seen, expected = (torch.cat([n[~rare], n[rare].sum(0, keepdim=True) + 1e-9]) for n in (seen.double(), expected))
    assert len(expected) > 8
    assert ((seen - expected).square() / expected).sum().item() < 50


def test_constructor_and_state_restore_the_model_bitwise(name, tmp_path):
    model = ready(name)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    again = CONSTRUCTORS[name](COUNTS)
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(again.log_prob(ALL_ROWS), model.log_prob(ALL_ROWS))
    torch.manual_seed(1)
    draws = model.sample(50)
    torch.manual_seed(1)
    assert torch.equal(again.sample(50), draws)


def test_no_row_is_impossible(name):
    """Training rows are all the same: the others keep a positive probability, less than theirs."""
    model = CONSTRUCTORS[name](COUNTS)
    codes = torch.tensor([[1, 0, 2, 0]]).repeat(100, 1)
    model.initialize(codes) if name in TRAINABLE else model.fit(codes)
    log_prob = model.log_prob(ALL_ROWS)
    assert log_prob.isfinite().all()
    assert torch.equal(ALL_ROWS[log_prob.argmax()], codes[0])
    assert log_prob.max() > log(0.9)


def test_small_integers_are_codes_too(name):
    model = ready(name)
    assert torch.equal(model.log_prob(ALL_ROWS.to(torch.uint8)), model.log_prob(ALL_ROWS))


def test_long_inputs_are_cut_without_a_trace(name, monkeypatch):
    whole = ready(name)
    monkeypatch.setattr(base_module, "NUMBERS_AT_ONCE", 1)
    cut = CONSTRUCTORS[name](COUNTS)
    assert cut.rows_at_once == 1
    cut.load_state_dict(whole.state_dict())
    torch.testing.assert_close(cut.log_prob(ALL_ROWS), whole.log_prob(ALL_ROWS))
    assert cut.sample(5).shape == (5, 4)


@pytest.mark.parametrize("name", TRAINABLE)
def test_a_gradient_reaches_every_parameter(name):
    model = ready(name, rows=100)
    model.loss(ALL_ROWS).backward()
    for label, parameter in model.named_parameters():
        assert parameter.grad is not None, label
        assert parameter.grad.isfinite().all(), label
        assert parameter.grad.abs().sum() > 0, label


@pytest.mark.parametrize("name", TRAINABLE)
def test_the_loss_is_one_graph(name):
    torch.compiler.reset()
    model = ready(name)
    compiled = torch.compile(model.loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(ALL_ROWS), model.loss(ALL_ROWS))


@pytest.mark.parametrize("name", TRAINABLE)
def test_initialize_starts_at_the_independent_model(name):
    codes = dependent_rows(200, COUNTS)
    one_component = BlockAutoregressiveMixture(COUNTS, groups=2, components=1, width=8, layers=1)  # several are parted
    model = one_component if name == "blocks" else CONSTRUCTORS[name](COUNTS)
    model.initialize(codes)
    torch.testing.assert_close(model.log_prob(ALL_ROWS), Independent(COUNTS).fit(codes).log_prob(ALL_ROWS))


@pytest.mark.parametrize("name", TRAINABLE)
def test_training_finds_a_dependence_between_variables(name, tmp_path):
    """Two free variables, a copy and a sum modulo 3: nearly all that the independent model pays too much is gained."""
    torch.set_default_dtype(torch.float32)
    a, b = (torch.multinomial(torch.tensor([0.5, 0.3, 0.2]), 2000, replacement=True) for _ in range(2))
    rows = torch.stack([a, a, b, (a + b) % 3], -1)
    counts = (3, 3, 3, 3)
    truth = -Independent((3, 3)).fit(rows[:, 1:3]).log_prob(rows[:, 1:3]).mean().item()
    alone = -Independent(counts).fit(rows).log_prob(rows).mean().item()
    options = {
        "blocks": {"groups": 2, "components": 8, "width": 32, "layers": 1},
        "causal-transformer": {"width": 32, "layers": 1},
        "discrete-flow": {"width": 32, "layers": 4},
    }
    model = BASELINES[name](counts, **options[name])
    assert isinstance(model, Trainable)
    config = TrainingConfig(
        steps=500, batch_size=128, learning_rate=1e-2, warmup_steps=20, ema_decay=0.9, accelerator="cpu", progress=False
    )
    result = fit(model, Rows(rows), Rows(rows[:500]), config, tmp_path)
    assert result.steps == 500
    assert truth - 0.01 < model.nll(rows).mean().item() < truth + 0.1 * (alone - truth)


BAD_ROWS = {
    "value": (torch.tensor([[0, 0, 4, 0]]), r"codes: value 4 at \[0, 2\] is out of range; expected 0 <= codes < 4"),
    "shape": (torch.zeros(2, 3, dtype=torch.int64), r"codes: got shape \(2, 3\); expected \(2, 4\)"),
    "empty": (torch.zeros(0, 4, dtype=torch.int64), "codes: got no rows; expected at least one"),
}


@pytest.mark.parametrize(("codes", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_named(name, codes, message):
    model = CONSTRUCTORS[name](COUNTS)
    learn = model.initialize if name in TRAINABLE else model.fit
    for call in (model.log_prob, learn):
        with pytest.raises(ValueError, match=message):
            call(codes)
    with pytest.raises(ValueError, match="rows: got 0; expected at least 1"):
        model.sample(0)


BAD_ARGUMENTS = {
    "counts": (lambda: Independent((3, 0)), r"counts: got \(3, 0\); expected at least one variable"),
    "none": (lambda: CategoricalMixture((), 2), r"counts: got \(\); expected at least one variable"),
    "components": (lambda: CategoricalMixture(COUNTS, 0), "components: got 0; expected at least 1"),
    "dropout": (lambda: CausalTransformer(COUNTS, 8, 1, 1.0), "dropout: got 1.0; expected 0 <= dropout < 1"),
    "width": (lambda: CausalTransformer(COUNTS, 0, 1), "width: got 0; expected at least 1"),
    "layers": (lambda: DiscreteFlow(COUNTS, 0, 8), "layers: got 0; expected at least 1"),
    "temperature": (lambda: DiscreteFlow(COUNTS, 1, 8, 0.0), "temperature: got 0.0; expected a positive number"),
    "smoothing": (lambda: Independent(COUNTS).fit(ALL_ROWS, 0.0), "smoothing: got 0.0; expected a positive number"),
    "smoothing of a tree": (lambda: ChowLiu(COUNTS).fit(ALL_ROWS, -1.0), "smoothing: got -1.0; expected a positive"),
    "patience": (
        lambda: CategoricalMixture(COUNTS, 2).fit(ALL_ROWS, patience=0),
        "patience: got 0; expected at least 1",
    ),
    "validation": (
        lambda: CategoricalMixture(COUNTS, 2).fit(ALL_ROWS, ALL_ROWS[:, :2]),
        r"validation: got shape \(24, 2\); expected \(24, 4\)",
    ),
    "smoothing of EM": (
        lambda: CategoricalMixture(COUNTS, 2).fit(ALL_ROWS, smoothing=float("nan")),
        "smoothing: got nan; expected a positive number",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
