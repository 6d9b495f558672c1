"""Batches of any number of tensors, from any source."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.training.small_models import Gaussian
from torch import Tensor

from tessella.data import PaddedSets, Rows, Windows
from tessella.training import TrainingConfig, evaluate, fit

QUICK = TrainingConfig(
    steps=200, batch_size=32, learning_rate=0.1, warmup_steps=0, validate_every=10, accelerator="cpu", progress=False
)


class Regression(torch.nn.Module):
    """-log N(y; a x + b, 1) of pairs (x, y): a batch of two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Parameter(torch.zeros(2))

    def nll(self, x: Tensor, y: Tensor) -> Tensor:
        return (y - self.line[0] * x - self.line[1]).square() / 2

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        return self.nll(x, y).mean()

    def initialize(self, x: Tensor, y: Tensor) -> None:
        self.line[1] = y.mean()


def test_a_batch_may_be_several_tensors(tmp_path: Path):
    x = torch.linspace(-1, 1, 50)
    model, pairs = Regression(), Rows(x, 3 * x + 2)
    config = replace(QUICK, steps=300, batch_size=50, ema_decay=0.9)
    result = fit(model, pairs, pairs, config, tmp_path)
    torch.testing.assert_close(model.line.detach(), torch.tensor([3.0, 2.0]), atol=1e-2, rtol=0)
    assert evaluate(model, pairs, config) == result.best_validation
    data = json.loads((tmp_path / "config.json").read_text())["data"]
    assert data == {"train": [[50], [50]], "validation": [[50], [50]]}


@pytest.mark.parametrize("other", [Rows(torch.zeros(3)), Rows(torch.zeros(3), torch.zeros(3, dtype=torch.float32))])
def test_both_sources_are_of_one_kind(tmp_path: Path, other: Rows):
    with pytest.raises(
        ValueError, match=r"validation: got rows of shape .* expected those of train, shape \(\) .* and"
    ):
        fit(Regression(), Rows(torch.zeros(3), torch.zeros(3)), other, QUICK, tmp_path)


def test_sets_and_windows_train_like_rows(tmp_path: Path):
    class Items(Gaussian):
        """Of the mean of a set."""

        def nll(self, items: Tensor, mask: Tensor) -> Tensor:
            return super().nll((items.sum(1) / mask.sum(1)).unsqueeze(1).expand(-1, 2))

        def loss(self, items: Tensor, mask: Tensor) -> Tensor:
            return self.nll(items, mask).mean()

        def initialize(self, items: Tensor, mask: Tensor) -> None:
            pass

    sets = PaddedSets([torch.full((size,), 5.0) for size in range(1, 40)])
    assert fit(Items(), sets, sets, QUICK, tmp_path / "sets").best_validation < -4
    windows = Windows(torch.full((100,), 5.0), length=2)
    assert fit(Gaussian(), windows, windows, QUICK, tmp_path / "windows").best_validation < -4
