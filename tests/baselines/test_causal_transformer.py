"""The causal transformer looks back, never ahead."""

import torch

from tessella.baselines import CausalTransformer

COUNTS = (3, 2, 4, 5)


def scattered(**options) -> CausalTransformer:
    model = CausalTransformer(COUNTS, width=64, layers=2, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def test_each_state_depends_on_the_codes_before_it_alone():
    model = scattered()
    codes = torch.tensor([[0, 0, 0]])
    before = model._hidden(codes)
    for j in range(3):
        changed = codes.clone()
        changed[0, j] = 1
        after = model._hidden(changed)
        assert torch.equal(after[:, : j + 1], before[:, : j + 1])
        assert ((after[:, j + 1 :] - before[:, j + 1 :]).abs().amax(-1) > 1e-6).all()


def test_a_prefix_gives_the_states_of_the_whole_row():
    """What sampling relies on."""
    model = scattered()
    codes = torch.tensor([[2, 1, 3], [0, 1, 2]])
    torch.testing.assert_close(model._hidden(codes[:, :2]), model._hidden(codes)[:, :3])


def test_dropout_disturbs_training_and_nothing_else():
    model = scattered(dropout=0.5)
    codes = torch.tensor([[2, 1, 3, 4]])
    assert model.train().log_prob(codes) != model.log_prob(codes)
    assert model.eval().log_prob(codes) == model.log_prob(codes)


def test_a_column_of_names_costs_its_own_categories_only():
    """A table of 20,000 names beside 60 small columns: parameters and memory follow the sum of the counts."""
    counts = (20_000, *[4] * 60, 300)
    model = CausalTransformer(counts, width=8, layers=1)
    assert sum(parameter.numel() for parameter in (model.head, model.bias)) == 9 * sum(counts)
    assert model.rows_at_once > 100
    codes = torch.zeros(3, len(counts), dtype=torch.int64)
    codes[:, 0], codes[:, -1] = torch.tensor([0, 7, 19_999]), torch.tensor([0, 99, 299])
    expected = -torch.tensor(counts).double().log().sum().expand(3)
    torch.testing.assert_close(model.log_prob(codes), expected, check_dtype=False)


def test_variables_of_all_sizes_are_normalised():
    model = CausalTransformer((3, 70, 2), width=8, layers=1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    every = torch.cartesian_prod(torch.arange(3), torch.arange(70), torch.arange(2))
    assert torch.allclose(model.log_prob(every).exp().sum(), torch.ones(()))
    assert model.log_prob(every).std() > 0.1
