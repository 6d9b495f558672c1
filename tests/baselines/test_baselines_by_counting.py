"""The baselines that are fitted by counting: known answers, and the published tables."""

from math import log

import pytest
import torch

from tessella.baselines import CategoricalMixture, ChowLiu, Independent
from tessella.baselines.trees import maximum_spanning_tree, mutual_information, pair_counts
from tessella.data import Table, load_table

# A tree over five variables, not in the order of the columns: parent of each, and how often a child copies its parent.
COUNTS = (4, 3, 5, 2, 4)
EDGES = {(2, 0), (2, 3), (0, 1), (3, 4)}
COPIES = 0.7


def rows_of_the_tree(number: int) -> torch.Tensor:
    codes = torch.zeros(number, 5, dtype=torch.int64)
    codes[:, 2] = torch.randint(5, (number,))
    for parent, child in [(2, 0), (2, 3), (0, 1), (3, 4)]:
        free = torch.randint(COUNTS[child], (number,))
        codes[:, child] = torch.where(torch.rand(number) < COPIES, codes[:, parent] % COUNTS[child], free)
    return codes


def entropy_of_the_tree() -> float:
    """log 5 + the entropy of each child given its parent, which does not depend on the parent."""
    total = log(5)
    for _, child in EDGES:
        count = COUNTS[child]
        other = (1 - COPIES) / count
        total -= (COPIES + other) * log(COPIES + other) + (count - 1) * other * log(other)
    return total


def nats(model, rows: torch.Tensor) -> float:
    return -model.log_prob(rows).mean().item()


@pytest.fixture(scope="module")
def mushroom() -> Table:
    return load_table("mushroom")


def test_independent_on_nursery():
    """The complete grid: nothing to gain over independent, and nearly uniform, columns."""
    table = load_table("nursery")
    model = Independent(table.encoding.counts).fit(*table.train.tensors)
    assert nats(model, *table.test.tensors) == pytest.approx(9.473, abs=0.01)


def test_chow_liu_recovers_the_tree_and_its_entropy():
    train, test = rows_of_the_tree(40_000), rows_of_the_tree(40_000)
    model = ChowLiu(COUNTS).fit(train)
    found = {frozenset((j, parent)) for j, parent in enumerate(model.parent.tolist()) if parent >= 0}
    assert found == {frozenset(edge) for edge in EDGES}
    error = model.log_prob(test).std().item() / len(test) ** 0.5
    assert nats(model, test) == pytest.approx(entropy_of_the_tree(), abs=4 * error)
    assert nats(model, test) < nats(Independent(COUNTS).fit(train), test) - 1


def test_chow_liu_is_sparse_in_wide_columns():
    """Two columns with 3000 categories that always agree: 9 million pairs, of which 3000 at most are held."""
    codes = torch.randint(3000, (20_000, 1)).repeat(1, 2)
    model = ChowLiu((3000, 3000)).fit(codes)
    assert len(model.keys) <= 3001
    assert nats(model, codes) < log(3000) + 0.2
    assert (model.sample(1000)[0].diff() == 0).double().mean() > 0.8
    everywhere = torch.stack([torch.full((3000,), 7), torch.arange(3000)], 1)
    conditional = model.log_prob(everywhere) - Independent((3000,)).fit(codes[:, :1]).log_prob(torch.tensor([[7]]))
    assert conditional.exp().sum().item() == pytest.approx(1.0, abs=1e-9)


def test_counting_pairs_sparsely_or_densely_is_the_same(monkeypatch):
    a, b = torch.randint(30, (500,)), torch.randint(40, (500,))
    dense = pair_counts(a, b, 30, 40)
    monkeypatch.setattr("tessella.baselines.trees.DENSE", 0)
    sparse = pair_counts(a, b, 30, 40)
    assert all(torch.equal(x, y) for x, y in zip(dense, sparse, strict=True))


def test_pairs_of_small_integers_do_not_overflow():
    codes = torch.randint(200, (3000, 1)).repeat(1, 2)
    small, large = (ChowLiu((200, 200)).fit(rows) for rows in (codes.to(torch.uint8), codes))
    assert torch.equal(small.keys, large.keys)


def test_mutual_information_against_its_definition():
    codes = rows_of_the_tree(500)
    joint = torch.zeros(4, 5).index_put((codes[:, 0], codes[:, 2]), torch.tensor(1 / 500), accumulate=True)
    outer = joint.sum(1, keepdim=True) * joint.sum(0)
    expected = torch.special.xlogy(joint, joint / outer).sum()
    torch.testing.assert_close(mutual_information(codes, COUNTS)[0, 2], expected)


def test_spanning_tree_is_the_heaviest():
    """Against all 16 trees on four vertices."""
    for _ in range(20):
        half = torch.rand(4, 4)
        weight = half + half.T
        parent, order = maximum_spanning_tree(weight)
        assert all(order.index(p) < order.index(j) for j, p in enumerate(parent) if p >= 0)
        mine = sum(weight[j, p].item() for j, p in enumerate(parent) if p >= 0)
        assert mine == pytest.approx(max(all_trees_on_four(weight)))


def all_trees_on_four(weight: torch.Tensor) -> list[float]:
    """Weights of all spanning trees: three edges that reach every vertex."""
    pairs = torch.combinations(torch.arange(4)).tolist()
    totals = []
    for three in torch.combinations(torch.arange(6), 3).tolist():
        edges = [pairs[e] for e in three]
        reached = {0}
        for _ in range(3):
            reached |= {v for edge in edges if reached & set(edge) for v in edge}
        if len(reached) == 4:
            totals.append(sum(weight[i, j].item() for i, j in edges))
    assert len(totals) == 16
    return totals


def test_em_never_loses_likelihood(mushroom: Table):
    codes = mushroom.train.tensors[0][:1500]
    model = CategoricalMixture(mushroom.encoding.counts, 12)
    model.start(codes)
    values = torch.tensor([model.improve(codes, smoothing=1e-9) for _ in range(40)])
    assert (values.diff() > -1e-8).all()
    assert values[-1] > values[0] + 5
    assert model.improve(codes, 1e-9) == pytest.approx(-nats(model, codes), abs=1e-3)


def test_em_in_blocks_is_em(mushroom: Table):
    codes = mushroom.train.tensors[0][:200]
    whole, blocks = (CategoricalMixture(mushroom.encoding.counts, 5) for _ in range(2))
    blocks.rows_at_once = 33
    for model in (whole, blocks):
        model.start(codes)
        model.improve(codes, 0.1)
    torch.testing.assert_close(blocks.log_table, whole.log_table)
    torch.testing.assert_close(blocks.log_weight, whole.log_weight)


def test_mixture_of_one_is_the_independent_model(mushroom: Table):
    counts = mushroom.encoding.counts
    mixture = CategoricalMixture(counts, 1).fit(mushroom.train.tensors[0], smoothing=1e-9)
    independent = Independent(counts).fit(mushroom.train.tensors[0], smoothing=1e-9)
    torch.testing.assert_close(
        mixture.log_prob(mushroom.train.tensors[0]), independent.log_prob(mushroom.train.tensors[0])
    )


def test_mixture_repeats_with_its_seed_and_stops_by_validation(mushroom: Table):
    train, validation = mushroom.train.tensors[0][:500], mushroom.validation.tensors[0]
    first, again, other = (CategoricalMixture(mushroom.encoding.counts, 40) for _ in range(3))
    first.fit(train, validation)
    again.fit(train, validation)
    other.fit(train, validation, seed=1)
    assert torch.equal(first.log_table, again.log_table)
    assert not torch.equal(first.log_table, other.log_table)
    unwatched = CategoricalMixture(mushroom.encoding.counts, 40).fit(train)
    assert nats(first, validation) < nats(unwatched, validation)
    assert nats(first, train) > nats(unwatched, train)


def test_baselines_on_mushroom_stand_in_order(mushroom: Table):
    """Measured: 22.02, 14.86 and 9.05, where ln 8124 = 9.003 is the entropy floor."""
    counts = mushroom.encoding.counts
    independent = nats(Independent(counts).fit(mushroom.train.tensors[0]), mushroom.test.tensors[0])
    tree = nats(ChowLiu(counts).fit(mushroom.train.tensors[0]), mushroom.test.tensors[0])
    mixture = nats(
        CategoricalMixture(counts, 200).fit(mushroom.train.tensors[0], mushroom.validation.tensors[0]),
        mushroom.test.tensors[0],
    )
    assert independent == pytest.approx(22.02, abs=0.01)
    assert tree == pytest.approx(14.86, abs=0.01)
    assert mushroom.entropy_floor is not None
    assert mushroom.entropy_floor < mixture < 9.1
