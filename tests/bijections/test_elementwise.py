"""What the laws of couplings do not see: the maps of the line themselves."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tessella.bijections import LogisticMixture


@given(components=st.integers(1, 6), dtype=st.sampled_from([torch.float32, torch.float64]), seed=st.integers(0, 99))
def test_a_mixture_is_increasing_and_finite_however_far_out_and_comes_back(components, dtype, seed):
    mixture = LogisticMixture(components)
    coefficients = 3 * torch.randn(mixture.coefficients, 1, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    x = torch.tensor([-1e6, -1e3, -10, -1, 0, 1, 10, 1e3, 1e6], dtype=dtype)[:, None]
    y, ladj = mixture.forward(x, coefficients)
    assert y.isfinite().all()
    assert ladj.isfinite().all()
    assert (y.diff(dim=0) >= 0).all()  # between two narrow components it rises by less than a digit
    v = torch.linspace(-20, 20, 9, dtype=dtype)[:, None]
    back, back_ladj = mixture.inverse(v, coefficients)
    again, ladj = mixture.forward(back, coefficients)
    torch.testing.assert_close(again, v, rtol=0, atol=2000 * torch.finfo(dtype).eps)
    torch.testing.assert_close(back_ladj, -ladj)


def test_its_modes_become_one_logistic():
    mixture = LogisticMixture(2)
    log_weight, centre, log_scale = torch.tensor([0.3, 0.7]).log(), torch.tensor([-3.0, 4.0]), torch.tensor([-1.0, 0.5])
    start = torch.tensor([-0.5, 0.5])  # where centres are without coefficients
    raw = 3 * (log_scale / 3).atanh()
    coefficients = torch.cat([log_weight, centre - start, raw, torch.zeros(2)])[:, None]
    which = torch.multinomial(log_weight.exp(), 20_000, replacement=True)
    uniform = torch.rand(20_000)
    x = centre[which] + log_scale[which].exp() * uniform.logit()
    y, _ = mixture.forward(x[:, None], coefficients)
    distance = (y[:, 0].sort().values.sigmoid() - torch.arange(20_000) / 20_000).abs().max()
    assert distance < 1.95 / 20_000**0.5  # Kolmogorov and Smirnov: exceeded once in a thousand


def test_between_narrow_modes_far_apart_the_inverse_stays_between_them():
    """Logit F is 3 there to the last digit, its slope nearly 0: Newton's steps from there leave for infinity."""
    coefficients = torch.tensor([3.0, 0.0, -20.0, 20.0, -9.0, -9.0, 0.0, 0.0], dtype=torch.float32)[:, None]
    y = 3 + torch.arange(-4, 5, dtype=torch.float32)[:, None] * 2**-22  # neighbours of 3
    x, _ = LogisticMixture(2).inverse(y, coefficients)
    assert (x.abs() < 25).all()


def test_one_mode_is_affine():
    mixture, x = LogisticMixture(1), torch.randn(7, 3)
    y, ladj = mixture.forward(x, torch.randn(5, 3))
    slope = (y[1:] - y[:1]) / (x[1:] - x[:1])
    torch.testing.assert_close(slope, slope[:1].expand_as(slope))
    torch.testing.assert_close(ladj, slope[:1].log().expand_as(ladj))


def test_there_must_be_a_mode():
    with pytest.raises(ValueError, match="components: got 0; expected at least 1"):
        LogisticMixture(0)
