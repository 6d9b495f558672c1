"""What the laws do not see: how the linear map starts, and what it refuses."""

import pytest
import torch

from tessella.bijections import LinearLU


def test_it_starts_as_its_permutation():
    x = torch.randn(5, 4)
    assert torch.equal(LinearLU(4).forward_and_ladj(x)[0], x)
    assert torch.equal(LinearLU(4, [3, 1, 0, 2]).forward_and_ladj(x)[0], x[:, [3, 1, 0, 2]])


def test_a_permutation_is_saved_with_the_weights():
    shuffled, again = LinearLU(3, [1, 2, 0]), LinearLU(3, [0, 2, 1])
    again.load_state_dict(shuffled.state_dict())
    x = torch.randn(5, 3)
    assert torch.equal(again.forward_and_ladj(x)[0], shuffled.forward_and_ladj(x)[0])
    assert set(LinearLU(3).state_dict()) == {"factors", "shift"}


def test_it_learns_a_covariance():
    """Under a standard normal base, the best linear map whitens: the likelihood becomes that of the Gaussian."""
    mixing = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [-2.0, 1.0, 0.5]])
    x = torch.randn(2000, 3) @ mixing.mT
    bijection = LinearLU(3)
    optimizer = torch.optim.LBFGS(bijection.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        y, ladj = bijection.forward_and_ladj(x)
        value = (y.square().sum(-1) / 2 - ladj).mean()
        value.backward()
        return value

    optimizer.step(loss)
    best = 3 / 2 + torch.linalg.slogdet(torch.cov(x.mT, correction=0))[1] / 2
    assert loss().item() == pytest.approx(best.item(), abs=1e-6)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match=r"permutation: got \[0, 0, 1\]; expected each of 0, ..., 2 once"):
        LinearLU(3, [0, 0, 1])
