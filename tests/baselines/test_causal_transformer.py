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
