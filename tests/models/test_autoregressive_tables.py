"""Laws of the exact model in any order: mass one in every order, draws that agree, conditionals that are proper."""

import pickle
from dataclasses import replace
from itertools import combinations, permutations, product
from math import log

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from tessella import checks
from tessella.baselines import CategoricalMixture
from tessella.bijections import CellBijection
from tessella.configs import from_json, to_json
from tessella.data import Rows, TableShape
from tessella.densities import Gaussian
from tessella.densities.components import QUICK
from tessella.densities.walking import RowWalk
from tessella.dequantizers import Dequantizer, FixedNoise, LaguerreConfig, VoronoiConfig
from tessella.models import AutoregressiveConfig, AutoregressiveTable, TableConfig
from tessella.training import Trainable, TrainingConfig, fit

CATEGORIES = {"ragged": (3, 1, 4, 2), "one": (5,), "one of one": (1,), "two": (2, 2), "wide": (2, 70, 3)}
SMALL = AutoregressiveConfig(width=8, layers=2, bins=4, fast=False)
CONFIGS = {"network": SMALL, "beside a mixture": replace(SMALL, components=3)}
# A category, a real number that may be missing or an atom, an integer, an integer that may be missing.
MIXED = TableShape((2, 3, 2), whole=(False, True, True), indicators=(1, -1, 2))
REAL, WHOLE, MAYBE = 1, 2, 3  # columns of the density


def rows_of(shape: TableShape, number: int = 400) -> tuple[torch.Tensor, ...]:
    codes = torch.stack([torch.randint(count, (number,)) for count in shape.counts], 1)
    if shape != MIXED:
        return (codes, torch.randn(number, shape.numbers).double()) if shape.numbers else (codes,)
    real = codes[:, 0] + torch.randn(number)
    whole = torch.where(torch.rand(number) < 0.4, 3, (4 * real).round())
    numbers = torch.stack([real, whole, (2 * real).floor()], 1)
    there = torch.stack([codes[:, 1] == 1, torch.ones(number, dtype=torch.bool), codes[:, 2] == 1], 1)
    return codes, torch.where(there, numbers, 0).double()


def scattered(shape: TableShape, scale: float = 0.4, config: AutoregressiveConfig = SMALL) -> AutoregressiveTable:
    """A model far from its start."""
    batch = rows_of(shape)
    model = config.start(shape, batch, tuple(part[:100] for part in batch)).model
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            quick = QUICK if ".components." in name else 1
            parameter.add_(scale / quick * torch.randn_like(parameter))
    return model.eval()


def all_rows(counts: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor(list(product(*map(range, counts))))


def in_order(model: AutoregressiveTable, order, *batch: torch.Tensor) -> torch.Tensor:
    rows = model.density.place(*batch)
    return model.density(rows, torch.tensor(order).expand_as(rows.flat))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("counts", CATEGORIES.values(), ids=CATEGORIES)
@torch.no_grad()
def test_probabilities_sum_to_one_in_every_order(counts, config):
    model, rows = scattered(TableShape(counts), config=config), all_rows(counts)
    sums = [in_order(model, order, rows).sum(-1).exp().sum() for order in permutations(range(len(counts)))]
    torch.testing.assert_close(torch.stack(sums), torch.ones(len(sums)))
    for orders in (1, 4):
        assert float(model.log_prob(rows, orders=orders).exp().sum()) == pytest.approx(1, abs=1e-12)


@torch.no_grad()
def test_orders_differ_and_more_of_them_are_their_mean():
    model, rows = scattered(TableShape((3, 4, 2))), all_rows((3, 4, 2))
    chosen = model.some_orders(3)
    assert chosen[0] == [0, 1, 2]
    members = torch.stack([in_order(model, order, rows).sum(-1).exp() for order in chosen])
    assert (members[0] - members[1:]).abs().max() > 0.01
    torch.testing.assert_close(model.log_prob(rows, orders=3).exp(), members.mean(0))
    own = torch.stack([torch.tensor(chosen[i % 3]) for i in range(len(rows))])  # an order for each row
    mixed = model.density(model.density.place(rows), own).sum(-1).exp()
    torch.testing.assert_close(mixed, members[torch.arange(len(rows)) % 3, torch.arange(len(rows))])


@torch.no_grad()
def test_what_the_network_corrects_is_a_mixture_of_products():
    """Before the first update, in every order: sum_m w_m prod_j P_mj(c_j), components around the frequencies."""
    counts = (3, 1, 4, 2)
    codes, rows = rows_of(TableShape(counts))[0], all_rows(counts)
    density = replace(SMALL, components=5).start(TableShape(counts), (codes,), (codes,)).model.density
    density.components.log_weight.normal_(std=0.1)
    log_share, prior = density.components()
    expected = (prior.log_softmax(0) + log_share[rows + density.offset].sum(1)).logsumexp(-1)
    for order in permutations(range(4)):
        found = density(density.place(rows), torch.tensor(order).expand(len(rows), -1)).sum(-1)
        torch.testing.assert_close(found, expected)
    for column, parts in enumerate(log_share.split(counts)):
        assert torch.equal(density.components(column).log_share, parts)
        assert (parts.std(1) > 0.05).all() or counts[column] == 1  # components differ


@torch.no_grad()
def test_it_begins_as_a_mixture_that_was_found_before():
    counts = (3, 1, 4, 2)
    codes, rows = rows_of(TableShape(counts))[0], all_rows(counts)
    mixture = CategoricalMixture(counts, 4).fit(codes, iterations=5)
    model = replace(SMALL, components=4).start(TableShape(counts), (codes,), (codes,)).model
    model.density.components.take(mixture.log_weight, mixture.log_table)
    torch.testing.assert_close(model.log_prob(rows, orders=3), mixture.log_prob(rows), atol=1e-6, rtol=0)


@pytest.mark.parametrize("known", [[], [0], [WHOLE], [MAYBE, WHOLE, 0]], ids=str)
@torch.no_grad()
def test_a_real_number_has_mass_one_given_any_columns(known):
    """Quadrature over its bins and tails, and what its indicator says instead."""
    model, (codes, numbers) = scattered(MIXED, 0.3), rows_of(MIXED, 4)
    bins = model.density.numbers
    x, dx = quadrature(bins.edges[0, : int(bins.bins[0]) + 1], 3000)
    for row in range(4):
        said, there = codes[row].repeat(len(x), 1), numbers[row].repeat(len(x), 1)
        said[:, 1], there[:, 0] = 1, x
        mass = (model.conditional(said, there, column=REAL, known=known)[1].exp() * dx).sum()
        for state in (0, 2):
            said[:, 1] = state
            mass += model.conditional(said[:1], there[:1], column=REAL, known=known)[1][0].exp()
        assert float(mass) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("known", [[], [REAL], [MAYBE, 0, REAL]], ids=str)
@torch.no_grad()
def test_a_number_on_a_grid_has_mass_one_given_any_columns(known):
    """All integers but those further out than 30,000, of which there are some in the tails."""
    model, (codes, numbers) = scattered(MIXED, 0.3), rows_of(MIXED, 2)
    window = torch.arange(-30_000.0, 30_001)
    for row in range(2):
        there = numbers[row].repeat(len(window), 1)
        there[:, 1] = window
        said = codes[row].expand(len(window), -1)
        mass = model.conditional(said, there, column=WHOLE, known=known)[1].exp().sum()
        assert 0.997 < float(mass) < 1 + 1e-9


@torch.no_grad()
def test_fewer_rows_than_orders_are_drawn():
    model = scattered(MIXED, 0.3)
    model.orders = 16
    assert [len(part) for part in model.sample(2)] == [2, 2]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@torch.no_grad()
def test_a_mixed_table_has_mass_one_in_every_order(config):
    shape = TableShape((3,), whole=(False,), indicators=(-1,))
    model = scattered(shape, 0.3, config)
    bins = model.density.numbers
    x, dx = quadrature(bins.edges[0, : int(bins.bins[0]) + 1], 8000)
    codes = torch.arange(3).repeat_interleave(len(x))[:, None]
    for order in ([0, 1], [1, 0]):
        mass = in_order(model, order, codes, x.repeat(3)[:, None]).sum(-1).exp() * dx.repeat(3)
        assert float(mass.sum()) == pytest.approx(1, abs=1e-4)


def quadrature(edges: torch.Tensor, points: int) -> tuple[torch.Tensor, ...]:
    """Points and volumes: the midpoint rule in every bin, and in the tails over t = d / (L + d)."""
    t, width, span = (torch.arange(points) + 0.5) / points, edges.diff()[:, None], edges[-1] - edges[0]
    far, stretch = span * t / (1 - t), span / (1 - t) ** 2 / points
    inner = (edges[:-1, None] + t * width).flatten(), (width / points).expand(-1, points).flatten()
    return torch.cat([inner[0], edges[0] - far, edges[-1] + far]), torch.cat([inner[1], stretch, stretch])


@pytest.mark.parametrize("orders", [1, 3])
@torch.no_grad()
def test_samples_follow_the_probabilities(orders):
    """Pearson's chi-squared, mean 23 and deviation 6.8."""
    counts, number = (3, 1, 4, 2), 20_000
    model = scattered(TableShape(counts), 0.3, AutoregressiveConfig(width=8, layers=1, orders=orders))
    (draws,), rows = model.sample(number), all_rows(counts)
    seen = torch.stack([(draws == row).all(-1).sum() for row in rows])
    expected = number * model.log_prob(rows).exp()
    often = expected > 5
    assert often.sum() > 8
    assert ((seen - expected).square() / expected)[often].sum().item() < 55


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@torch.no_grad()
def test_samples_of_a_mixed_table_follow_its_likelihood(config):
    """Shares of the parts of every column in draws, against the exact conditionals averaged over the draws."""
    model, number = scattered(MIXED, 0.3, config), 6_000
    batch = model.sample(number)
    assert [part.shape for part in batch] == [(number, 3), (number, 3)]
    rows = model.density.place(*batch)
    for column in range(model.density.columns):
        table, _ = model.conditional(*batch, column=column, known=range(column))
        shares = torch.bincount((rows.flat - model.density.offset)[:, column], minlength=table.shape[1]) / number
        assert (shares - table.mean(0)).abs().max() < 5 * 0.5 / number**0.5
    bridge = (scattered(MIXED, 0.1, config).log_prob(*batch) - model.log_prob(*batch)).exp()
    assert float(bridge.mean()) == pytest.approx(1, abs=6 * float(bridge.std()) / number**0.5)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("shape", [TableShape((3, 1, 4, 2)), MIXED], ids=["categories", "mixed"])
@torch.no_grad()
def test_log_prob_is_the_sum_of_conditionals_in_any_order(shape, config):
    model, batch = scattered(shape, config=config), rows_of(shape, 50)
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        rows = model.density.place(*batch)
        asked = [model.density.conditional(rows, j, order[:t]) for t, j in enumerate(order)]
        torch.testing.assert_close(sum(log_prob for _, log_prob in asked), in_order(model, order, *batch).sum(-1))
        for table, _ in asked:
            torch.testing.assert_close(table.exp().sum(-1), torch.ones(50))
    torch.testing.assert_close(in_order(model, [0, 1, 2, 3], *batch).sum(-1), model.log_prob(*batch))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@torch.no_grad()
def test_rows_given_columns_keep_them_and_follow_the_exact_conditional(config):
    counts, number = (3, 2, 4), 20_000
    model = scattered(TableShape(counts), config=config)
    (draws,) = model.complete(torch.tensor([[9, 1, 9]]).expand(number, 3), known=[1])
    assert (draws[:, 1] == 1).all()
    rows = all_rows(counts)
    rows = rows[rows[:, 1] == 1]
    exact = in_order(model, [1, 0, 2], rows)[:, [0, 2]].sum(-1).exp()
    assert float(exact.sum()) == pytest.approx(1)
    seen = torch.stack([(draws == row).all(-1).sum() for row in rows]) / number
    assert ((seen - exact).abs() < 5 * (exact / number).sqrt() + 1e-4).all()


@torch.no_grad()
def test_given_numbers_are_kept_and_matter():
    model = scattered(MIXED)
    codes, numbers = rows_of(MIXED, 500)
    made_codes, made_numbers = model.complete(codes, numbers, known=[MAYBE, REAL])
    assert torch.equal(made_codes[:, 1:], codes[:, 1:])
    assert torch.equal(made_numbers[:, [0, 2]], numbers[:, [0, 2]])
    assert not torch.equal(made_numbers[:, 1], numbers[:, 1])
    moved = numbers + torch.tensor([1e-3, 0.0, 0.0])  # within its bin, for most
    told = [model.conditional(codes, values, column=WHOLE, known=[REAL])[0] for values in (numbers, moved)]
    there = codes[:, 1] == 1
    assert ((told[0] - told[1]).abs().amax(1) > 0)[there].all()
    assert torch.equal(told[0][~there], told[1][~there])


@torch.no_grad()
def test_orders_are_drawn_in_the_shares_that_were_asked_for():
    """In the table's order, with some columns first and one asked about, or in any order, half of which look so too."""
    rows, columns = torch.zeros(4000, 6), torch.arange(6)
    for natural, given, own in ((1.0, 0.0, ()), (0.25, 0.5, ()), (0.25, 0.5, (3, 0, 5, 1, 4, 2)), (0.0, 0.0, ())):
        model = AutoregressiveTable(scattered(TableShape((2,) * 6)).density, natural, given, order=own)
        orders = model._drawn_orders(rows)
        assert torch.equal(orders.sort(1).values, columns.expand(4000, 6))
        descents = (model.rank[orders].diff(dim=1) < 0).sum(1)
        plain, some = (float((descents <= most).double().mean()) for most in (0, 2))
        assert plain >= natural - 0.03
        assert natural + given - 0.03 < some < natural + given + (1 - natural - given) * 0.5 + 0.03


@torch.no_grad()
def test_every_column_is_asked_about_right_after_any_others():
    """All sets of known columns, and every other column after them, come up in training."""
    model = AutoregressiveTable(scattered(TableShape((2,) * 4)).density, order=(2, 0, 3, 1))
    seen = {
        (tuple(order[:t]), order[t]) for order in model._drawn_orders(torch.zeros(6000, 4)).tolist() for t in range(4)
    }
    for size in range(4):
        for known in combinations((2, 0, 3, 1), size):
            assert {column for first, column in seen if first == known} >= set(range(4)) - set(known)


@torch.no_grad()
def test_a_table_has_an_order_of_its_own(monkeypatch):
    """Likelihoods are those of that order; what is known comes in it, and so does what is drawn."""
    own, batch = (2, 0, 3, 1), rows_of(MIXED, 60)
    model = scattered(MIXED, config=replace(SMALL, order=own))
    plain = AutoregressiveTable(model.density).eval()
    assert model.some_orders(2)[0] == list(own)
    torch.testing.assert_close(model.log_prob(*batch), in_order(plain, own, *batch).sum(-1))
    _, log_prob = model.conditional(*batch, column=REAL, known=[3, 0, 2])
    torch.testing.assert_close(log_prob, in_order(plain, [2, 0, 3, 1], *batch)[:, REAL])
    walked = []
    monkeypatch.setattr(RowWalk, "step", lambda walk, column, known: walked.append((column, known)))
    for known, expected in (((), own), ((3, 0), (0, 3, 2, 1))):
        walked.clear()
        model.complete(*batch, known=known)
        assert walked == [(column, column in known) for column in expected]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@torch.no_grad()
def test_what_is_not_known_makes_no_difference(config):
    model, (codes, numbers) = scattered(MIXED, config=config), rows_of(MIXED, 50)
    others = (codes.flip(0), numbers.flip(0))
    others[0][:, 0] = codes[:, 0]
    first, second = (model.conditional(*batch, column=WHOLE, known=[0])[0] for batch in ((codes, numbers), others))
    assert torch.equal(first, second)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@torch.no_grad()
def test_drawing_with_kept_keys_and_values_is_the_one_pass(config):
    for dtype in (torch.float32, torch.float64):
        model, batch = scattered(MIXED, config=config).to(dtype), rows_of(MIXED, 20)
        order = [2, 0, 3, 1]
        walk = model.density.net.walk(20)
        for t, column in enumerate(order):
            kept = model.density.log_table(column, walk.spread(walk.ask(column))).exp()
            table, _ = model.density.conditional(model.density.place(*batch), column, order[:t])
            torch.testing.assert_close(kept, table.exp(), atol=1e-5, rtol=1e-5)
            located, tables = model.density.locate(column, *batch), model.density.tables(column)
            walk.tell(column, *model.density.told(column, located, tables))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("shape", [TableShape((3, 1, 4, 2)), MIXED], ids=["categories", "mixed"])
def test_the_training_step_never_looks_at_a_value(shape, config):
    """On tensors without values, loss and gradient still work: what a step captured as a CUDA graph needs."""
    model, batch = scattered(shape, config=config), rows_of(shape, 64)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode, checks.values(False):
        loss = model.loss(*(mode.from_tensor(part) for part in batch))
        loss.backward()
        with pytest.raises(DataDependentOutputException):
            loss.item()  # it would have been noticed


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_loss_is_one_graph(config):
    """All rows in the table's order, so that nothing is drawn."""
    torch.compiler.reset()
    model, batch = (
        AutoregressiveTable(scattered(MIXED, config=config).density, natural=1.0, given=0.0).eval(),
        rows_of(MIXED, 16),
    )
    compiled = torch.compile(model.loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*batch), model.loss(*batch))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("shape", [TableShape((3, 1, 4, 2)), MIXED], ids=["categories", "mixed"])
def test_a_gradient_reaches_every_parameter(shape, config):
    model = scattered(shape, config=config).train()
    model.loss(*rows_of(shape)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_the_start_is_independent_columns_uniform_in_their_parts():
    codes, numbers = rows_of(MIXED)
    started = SMALL.start(MIXED, (codes, numbers), (codes[:90], numbers[:90]))
    model = started.model.eval()
    torch.testing.assert_close(in_order(model, [3, 1, 0, 2], codes, numbers), in_order(model, range(4), codes, numbers))
    table, _ = model.conditional(codes[:1], numbers[:1], column=0, known=[])
    frequency = torch.bincount(codes[:, 0]) + 0.5
    torch.testing.assert_close(table[0], frequency / frequency.sum())
    model.initialize(codes[:5], numbers[:5])  # has no say any more
    torch.testing.assert_close(model.conditional(codes[:1], numbers[:1], column=0, known=[])[0], table)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_config_and_state_restore_the_model_bitwise(tmp_path, config):
    batch = rows_of(MIXED)
    started = replace(config, order=(3, 1, 0, 2)).start(MIXED, batch, batch)
    save_file(started.model.state_dict(), tmp_path / "model.safetensors")
    config = from_json(TableConfig, to_json(started.config))
    assert config == started.config
    again = config.build(MIXED)
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    copied = pickle.loads(pickle.dumps(started.model))
    for model in (again, copied):
        assert torch.equal(model.eval().log_prob(*batch), started.model.eval().log_prob(*batch))


def test_single_precision_gives_finite_values_for_extreme_numbers():
    torch.set_default_dtype(torch.float32)
    model, (codes, numbers) = scattered(MIXED, 3.0), rows_of(MIXED, 64)
    codes[:, 1:] = 1
    for value in (0.0, 1e-40, -1.0, 2.0**31, -(2.0**52), 1e38, -1e200):
        log_prob = model.log_prob(codes, torch.full_like(numbers, value))
        assert log_prob.dtype == torch.float32
        assert log_prob.isfinite().all()


def test_long_inputs_are_cut_without_a_trace(monkeypatch):
    model, batch = scattered(MIXED), rows_of(MIXED, 30)
    whole = model.log_prob(*batch)
    monkeypatch.setattr("tessella.models.any_order.NUMBERS_AT_ONCE", {"cpu": 1})
    torch.testing.assert_close(model.log_prob(*batch), whole)
    assert model.sample(5)[0].shape == (5, 3)


def test_a_table_of_numbers_alone_has_no_other_column():
    shape = TableShape((1,), whole=(False,), indicators=(-1,))
    batch = torch.zeros(200, 1, dtype=torch.int64), torch.randn(200, 1)
    model = SMALL.start(shape, batch, batch).model
    assert model.density.columns == 1
    codes, numbers = model.sample(4)
    assert torch.equal(codes, torch.zeros(4, 1, dtype=torch.int64))
    assert numbers.dtype == torch.float64


def test_training_finds_a_function_of_another_column(tmp_path):
    """A copy, a real number twice: the second costs no more than the bin it is in is narrow."""
    torch.set_default_dtype(torch.float32)
    a, x = torch.randint(3, (2000,)), torch.rand(2000, dtype=torch.float64)
    batch = torch.stack([a, a], 1), torch.stack([x, 10 * x], 1)
    shape = TableShape((3, 3), whole=(False, False), indicators=(-1, -1))
    config = AutoregressiveConfig(width=32, layers=1, dropout=0.0, bins=4)
    started = config.start(shape, batch, batch)
    assert isinstance(started.model, Trainable)
    training = TrainingConfig(
        steps=200, batch_size=128, learning_rate=1e-2, warmup_steps=20, ema_decay=0.9, accelerator="cpu", progress=False
    )
    fit(started.model, Rows(*batch), Rows(*batch), training, tmp_path)
    alone = 2 * log(3) + log(10)
    assert started.model.nll(*batch).mean().item() < alone - log(3) - 1.5


CELLS = {
    "plane": VoronoiConfig(dim=2),
    "space": VoronoiConfig(dim=3, squashing="softsign"),
    "power cells in a box": LaguerreConfig(dim=2, box=3.0),
}


def through_cells(counts: tuple[int, ...], cells: VoronoiConfig) -> tuple[AutoregressiveTable, Dequantizer]:
    """An exact model, and a dequantizer whose noise does not look at the row."""
    shape = TableShape(counts)
    geometry = cells.build(counts)
    dequantizer = Dequantizer(geometry, *FixedNoise("gaussian").build(shape, geometry, tokens=True, fast=False))
    return scattered(shape), dequantizer


def log_density(model: AutoregressiveTable, dequantizer: Dequantizer, x: torch.Tensor) -> torch.Tensor:
    """sum_j log pi_k + log p_in(x_j | k), k the cell that holds x_j: a Gaussian pushed there by the cell bijection."""
    bijection = dequantizer.cells.map
    assert isinstance(bijection, CellBijection)
    codes = bijection.tessellation.nearest(x)
    displacement, ladj = bijection.inverse_and_ladj(x, codes)
    return model.log_prob(codes) + Gaussian(x.shape[1:]).log_prob(displacement) + ladj.sum(-1)


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
@torch.no_grad()
def test_with_the_matching_noise_every_weight_is_the_exact_probability(cells):
    """p(x) / q(x | c) = P(c) for every draw x ~ q: the paper's bound is an equality, its variance zero."""
    counts = (3, 1, 4)
    model, dequantizer = through_cells(counts, cells)
    rows = all_rows(counts)
    x, log_q = dequantizer.dequantize(rows.repeat(20, 1))
    weights = (log_density(model, dequantizer, x) - log_q).view(20, len(rows))
    torch.testing.assert_close(weights, model.log_prob(rows).expand(20, -1), atol=1e-6, rtol=1e-6)


@torch.no_grad()
def test_the_density_through_cells_is_one():
    """Its integral over the box, all points of two variables of one dimension each."""
    model, dequantizer = through_cells((3, 2), VoronoiConfig(dim=1, box=3.0, squashing="softsign", spread=0.9))
    line = 6 * (torch.arange(500) + 0.5) / 500 - 3
    points = torch.cartesian_prod(line, line)[..., None]
    mass = log_density(model, dequantizer, points).exp().mean() * 36
    assert float(mass) == pytest.approx(1, abs=2e-3)


PAIR = TableShape((2, 2))
ROWS = all_rows((2, 2))
BAD = {
    "natural": (
        lambda: AutoregressiveConfig(natural=2.0).build(PAIR),
        "natural, given: got 2.0 and 0.5; expected",
    ),
    "orders": (lambda: scattered(PAIR).log_prob(ROWS, orders=0), "orders: got 0; expected at least 1"),
    "components": (lambda: replace(SMALL, components=-1).build(PAIR), "components: got -1; expected how many, or 0"),
    "sizes": (lambda: AutoregressiveConfig().build(MIXED), "sizes: got 0, which leaves them to the rows; expected"),
    "order": (
        lambda: AutoregressiveConfig(order=(0, 0)).build(PAIR),
        r"order: got \(0, 0\); expected every column once, 0 to 1",
    ),
    "codes": (lambda: scattered(PAIR).log_prob(torch.tensor([[0, 2]])), "codes: value 2 at"),
    "numbers": (lambda: scattered(MIXED).log_prob(rows_of(MIXED)[0]), r"numbers: got none; expected \(B, 3\)"),
    "infinite": (
        lambda: scattered(MIXED).log_prob(rows_of(MIXED, 1)[0], torch.full((1, 3), torch.inf)),
        "numbers: 3 of 3 values are NaN or infinite",
    ),
    "known": (lambda: scattered(PAIR).complete(ROWS, known=[2]), r"known: got \[2\]; expected different columns"),
    "rows": (lambda: scattered(PAIR).sample(0), "rows: got 0; expected at least 1"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
