"""What the laws of couplings do not see: the spline itself, at its knots, at its ends, and with wild coefficients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tessella.bijections import RationalQuadratic, spline

BOUND = 5.0


def of_seed(bins: int, size: float, seed: int, dtype: torch.dtype = torch.float64, points: int = 1) -> Tensor:
    """Coefficients of so many splines, in which every knot is another one's."""
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(points, 3 * bins - 1, 1, dtype=torch.float64, generator=generator).to(dtype)


def wild(bins: int, seed: int, dtype: torch.dtype) -> Tensor:
    """50 or -50 each: most pieces as short, and slopes as steep or flat, as can be."""
    return 50 * of_seed(bins, 1.0, seed, dtype)[0].sign()


def places(map_: RationalQuadratic, c: Tensor) -> tuple[Tensor, Tensor]:
    """The knots (x_k, y_k) of unbatched coefficients, (K + 1, 1) each."""
    return map_._knots(c)[:2]


cases = given(bins=st.integers(2, 12), size=st.sampled_from([0.1, 1.0, 2.0]), seed=st.integers(0, 99))


@cases
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_rises_and_comes_back(dtype, bins, size, seed):
    """To rounding: where the slope is small, one digit of y is many of x."""
    map_, c = RationalQuadratic(bins), of_seed(bins, size, seed, dtype)[0]
    grid = torch.linspace(-6, 6, 1001, dtype=dtype)[:, None]
    for there, back in ((map_.forward, map_.inverse), (map_.inverse, map_.forward)):
        image, ladj = there(grid, c)
        assert (image.diff(dim=0) > 0).all()
        error = (back(image, c)[0] - grid).abs()
        assert (error <= 100 * torch.finfo(dtype).eps * (1 + (-ladj).exp())).all()


@cases
def test_log_slopes_are_opposite_and_those_of_autograd(bins, size, seed):
    map_, c = RationalQuadratic(bins), of_seed(bins, size, seed)[0]
    for there, back in ((map_.forward, map_.inverse), (map_.inverse, map_.forward)):
        x = torch.linspace(-6, 6, 501)[:, None].requires_grad_()
        y, ladj = there(x, c)
        (slope,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(ladj, slope.log(), rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(back(y, c)[1], -ladj, rtol=0, atol=1e-7)


@cases
def test_it_meets_its_knots_with_the_slopes_of_both_neighbours(bins, size, seed):
    map_, c = RationalQuadratic(bins), of_seed(bins, size, seed)[0]
    x, y = places(map_, c)
    torch.testing.assert_close(map_.forward(x, c)[0], y, rtol=0, atol=1e-12)
    torch.testing.assert_close(map_.inverse(y, c)[0], x, rtol=0, atol=1e-12)
    below, above = (map_.forward(x + step, c)[1] for step in (-1e-11, 1e-11))
    torch.testing.assert_close(below, above, rtol=0, atol=1e-4)
    assert (above[[0, -1]].abs() < 1e-4).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [2, 8, 64])
def test_without_coefficients_it_is_the_identity(bins, dtype):
    map_, x = RationalQuadratic(bins), torch.linspace(-7, 7, 999, dtype=dtype)[:, None]
    for call in (map_.forward, map_.inverse):
        y, ladj = call(x, torch.zeros(map_.coefficients, 1, dtype=dtype))
        torch.testing.assert_close(y, x, rtol=0, atol=8 * torch.finfo(dtype).eps)
        torch.testing.assert_close(ladj, torch.zeros_like(x), rtol=0, atol=8 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("bound", [0.5, 5.0])
def test_outside_it_is_the_identity_to_the_last_digit(bound):
    map_ = RationalQuadratic(4, bound)
    x = torch.tensor([-torch.inf, -1e30, -1e6, -bound, bound, bound + 1e-12, 1e6, 1e30, torch.inf])[:, None]
    for call in (map_.forward, map_.inverse):
        y, ladj = call(x, of_seed(4, 3.0, 0, points=len(x)))
        assert torch.equal(y, x)
        assert (ladj == 0).all()


def delicate(map_: RationalQuadratic, c: Tensor) -> Tensor:
    """Knots of both directions and their neighbours, the ends and theirs, points between, far outside."""
    knots = torch.cat(places(map_, c))
    near = [torch.nextafter(knots, torch.full_like(knots, to)) for to in (-torch.inf, torch.inf)]
    far = torch.tensor([-1e30, -1e3, 1e3, 1e30], dtype=c.dtype)[:, None]
    return torch.cat([knots, *near, far, torch.linspace(-5, 5, 301, dtype=c.dtype)[:, None]]).sort(0).values


@given(
    bins=st.sampled_from([2, 3, 8, 32]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 99),
)
def test_with_wild_coefficients_it_still_rises_and_all_gradients_are_finite(bins, dtype, seed):
    map_, c = RationalQuadratic(bins), wild(bins, seed, dtype)
    x = delicate(map_, c)
    for call in (map_.forward, map_.inverse):
        points, coefficients = x.clone().requires_grad_(), c.expand(len(x), -1, -1).clone().requires_grad_()
        y, ladj = call(points, coefficients)
        assert (y.diff(dim=0) >= -16 * BOUND * torch.finfo(dtype).eps).all()
        assert y.isfinite().all()
        assert ladj.isfinite().all()
        assert (ladj.abs() < 21).all()  # (1 / 1000)^3 is the flattest that any piece can be
        gradients = torch.autograd.grad(torch.where(x.abs() < 1e3, y, 0).sum() + ladj.sum(), (points, coefficients))
        assert all(gradient.isfinite().all() for gradient in gradients)


@given(bins=st.sampled_from([2, 8, 32]), seed=st.integers(0, 99))
def test_with_wild_coefficients_single_precision_agrees_with_double(bins, seed):
    """The value to rounding: knots round, so steep pieces shift by that times their slope."""
    map_, c = RationalQuadratic(bins), wild(bins, seed, torch.float32)
    x = delicate(map_, c)
    y, ladj = map_.forward(x, c)
    exact, _ = map_.forward(x.double(), c.double())
    steep = ladj.exp().double()
    around = torch.stack([map_.forward(x.double() + d, c.double())[1].exp() for d in (-4e-6, 4e-6)]).amax(0)
    assert ((y - exact).abs() <= 4e-6 * (1 + torch.maximum(steep, around))).all()


def test_every_point_has_its_own_coefficients():
    map_, x = RationalQuadratic(4), torch.randn(6, 5, 3)
    c = torch.randn(6, 5, map_.coefficients, 3)
    y, ladj = map_.forward(x, c)
    one = map_.forward(x[2, 3, 1:2], c[2, 3, :, 1:2])
    torch.testing.assert_close((y[2, 3, 1:2], ladj[2, 3, 1:2]), one)


def test_no_piece_vanishes():
    map_ = RationalQuadratic(8)
    x, _ = places(map_, torch.tensor([1e4, *[-1e4] * 7, *[0.0] * 15])[:, None])
    assert x.diff(dim=0).min().item() == pytest.approx(2 * BOUND * spline.EVEN / 8)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1,), "bins: got 1; expected at least 2"),
        ((4, 0.0), "bound: got 0.0; expected a positive number"),
        ((4, float("nan")), "bound: got nan; expected a positive number"),
    ],
)
def test_errors_name_the_argument(arguments, said):
    with pytest.raises(ValueError, match=said):
        RationalQuadratic(*arguments)
