from math import log

import pytest
import torch

from tessella.data import TOYS, Quantized, quantized_toy


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", TOYS)
def test_toys_lie_in_the_square_and_fill_it(name: str) -> None:
    x = TOYS[name](100_000, seeded(0))
    assert x.shape == (100_000, 2)
    assert x.dtype == torch.float32
    assert float(x.abs().max()) <= 4.0
    assert bool((x.max(dim=0).values > 1.5).all() and (x.min(dim=0).values < -1.5).all())


@pytest.mark.parametrize("name", TOYS)
def test_toys_come_from_their_seed(name: str) -> None:
    toy = TOYS[name]
    assert torch.equal(toy(50, seeded(3)), toy(50, seeded(3)))
    assert not torch.equal(toy(50, seeded(3)), toy(50, seeded(4)))


@pytest.mark.parametrize("name", TOYS)
def test_the_law_does_not_depend_on_the_default_dtype(name: str) -> None:
    double = quantized_toy(name, points=5000).probabilities
    torch.set_default_dtype(torch.float32)
    assert torch.equal(quantized_toy(name, points=5000).probabilities, double)


@pytest.mark.parametrize("name", ["checkerboard", "eight_gaussians", "pinwheel", "rings", "two_moons", "two_spirals"])
def test_symmetric_toys_are_centred(name: str) -> None:
    assert float(TOYS[name](100_000, seeded(0)).mean(dim=0).abs().max()) < 0.05


def test_checkerboard_has_eight_even_squares() -> None:
    table = quantized_toy("checkerboard", bins=4, points=80_000).probabilities
    dark = (torch.arange(4)[:, None] + torch.arange(4)) % 2 == 0
    assert float(table[~dark].sum()) == 0
    assert float((table[dark] - 1 / 8).abs().max()) < 0.006  # five standard deviations


def test_gaussians_are_eight() -> None:
    x = TOYS["eight_gaussians"](80_000, seeded(0))
    sector = (torch.atan2(x[:, 1], x[:, 0]) / (torch.pi / 4)).round().long() % 8
    assert float((torch.bincount(sector, minlength=8) / len(x) - 1 / 8).abs().max()) < 0.006


@pytest.mark.parametrize("name", TOYS)
def test_samples_of_a_quantized_toy_follow_its_table(name: str) -> None:
    quantized = quantized_toy(name, bins=9, points=50_000)
    assert quantized.probabilities.shape == (9, 9)
    assert float(quantized.probabilities.sum()) == pytest.approx(1.0, abs=1e-12)
    codes = quantized.sample(100_000, seeded(1))
    assert codes.dtype == torch.int64
    frequencies = torch.bincount(codes[:, 0] * 9 + codes[:, 1], minlength=81).reshape(9, 9) / len(codes)
    deviation = (quantized.probabilities / len(codes)).sqrt()
    assert bool(((frequencies - quantized.probabilities).abs() <= 5 * deviation).all())


def test_entropy_of_the_uniform_table_is_the_log_of_its_size() -> None:
    uniform = Quantized("uniform", torch.full((5, 5), 1 / 25, dtype=torch.float64))
    assert uniform.entropy() == pytest.approx(log(25))
    certain = Quantized("certain", torch.eye(1, dtype=torch.float64))
    assert certain.entropy() == 0.0


def test_the_table_and_the_toy_share_their_axes() -> None:
    """Cell (i, j) is around x = (8 (i + 1/2) / bins - 4, 8 (j + 1/2) / bins - 4)."""
    table = quantized_toy("swiss_roll", points=200_000).probabilities
    centres = 8 * (torch.arange(91, dtype=torch.float64) + 0.5) / 91 - 4
    mean = torch.stack([table.sum(1) @ centres, table.sum(0) @ centres])
    assert torch.allclose(mean, TOYS["swiss_roll"](200_000, seeded(0)).mean(0).double(), atol=2e-3)


def test_unfit_requests_are_explained() -> None:
    with pytest.raises(ValueError, match="toy 'torus': not known; expected one of checkerboard, eight_gaussians"):
        quantized_toy("torus")
    with pytest.raises(ValueError, match="bins, points: got 0 and 5; expected both positive"):
        quantized_toy("rings", bins=0, points=5)
