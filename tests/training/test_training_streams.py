"""Streams: windows of groups in an order that the step alone decides, and fits that resume bit by bit."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.training.small_models import Gaussian, gaussian_source
from torch import Tensor

from tessella.data import Rows
from tessella.training import TrainingConfig, fit
from tessella.training.windows import WindowBatches, deal, windows

CONFIG = TrainingConfig(
    steps=30, batch_size=16, validate_every=10, warmup_steps=0, accelerator="cpu", threads=1, progress=False
)


class Numbers:
    """Group g holds the next sizes[g] integers, or rows of a tensor."""

    digest = "numbers"

    def __init__(self, sizes: list[int], window: int, rows: Tensor | None = None):
        self.sizes, self.window, self.reads = sizes, window, list[int]()
        self.groups = (torch.arange(sum(sizes)) if rows is None else rows).split(sizes)

    def __len__(self) -> int:
        return sum(self.sizes)

    def read(self, group: int) -> tuple[Tensor, ...]:
        self.reads.append(group)
        return (self.groups[group],)

    @property
    def shapes(self) -> list[list[int]]:
        return [[len(self), *self.groups[0].shape[1:]]]


class Breaking(Numbers):
    """The disk goes away after some reads."""

    def read(self, group: int) -> tuple[Tensor, ...]:
        if len(self.reads) == 9:
            raise OSError("the disk is gone")
        return super().read(group)


SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)


@settings(max_examples=50, deadline=None)
@given(SIZES, st.integers(1, 20), st.integers(1, 7), st.integers(0, 5))
def test_an_epoch_has_every_row_once_but_for_the_last_few(sizes: list[int], window: int, batch: int, seed: int):
    batches = WindowBatches(Numbers(sizes, window), batch, seed)
    for epoch in range(2):
        steps = range(epoch * batches.per_epoch, (epoch + 1) * batches.per_epoch)
        seen = torch.cat([batches(step)[0] for step in steps]).tolist()
        assert len(seen) == len(set(seen)) > sum(sizes) - batches.size


@settings(max_examples=50, deadline=None)
@given(SIZES, st.integers(1, 20), st.integers(0, 30))
def test_a_batch_is_a_function_of_the_step(sizes: list[int], window: int, step: int):
    """A new object, as after a kill, gives the batch that one has which made all those before."""
    going = WindowBatches(Numbers(sizes, window), 3, seed=1)
    (expected,) = [going(before) for before in range(step + 1)][-1]
    assert torch.equal(WindowBatches(Numbers(sizes, window), 3, seed=1)(step)[0], expected)


@given(SIZES, st.integers(1, 20), st.integers(1, 4))
def test_windows_are_bounded_and_processes_share_no_group(sizes: list[int], most: int, processes: int):
    groups = [group for group, size in enumerate(sizes) if size]
    found = windows(groups, sizes, most)
    assert [group for window in found for group in window] == groups
    assert max(sum(sizes[group] for group in window) for window in found) <= most + max(sizes)
    dealt = deal(sizes, processes, seed=0)
    assert sorted(group for share in dealt for group in share) == groups
    rows = [sum(sizes[group] for group in share) for share in dealt]
    assert max(rows) - min(rows) <= max(sizes)


def test_orders_differ_and_mix_groups():
    batches = WindowBatches(Numbers([10] * 10, window=50), 50, seed=0)
    first, second, later = (batches(step)[0] for step in (0, 1, 2))
    assert not torch.equal(first.sort().values, later.sort().values)
    assert len({*(first // 10).tolist()}) == 5
    assert (first[:-1] // 10 != first[1:] // 10).sum() > 20
    assert not {*first.tolist()} & {*second.tolist()}


def test_each_process_reads_its_own_groups():
    streams = [Numbers([5] * 6, window=10) for _ in range(2)]
    for rank, stream in enumerate(streams):
        batches = WindowBatches(stream, 4, seed=0, rank=rank, processes=2)
        for step in range(2 * batches.per_epoch):
            batches(step)
    assert not {*streams[0].reads} & {*streams[1].reads}
    with pytest.raises(ValueError, match="write smaller row groups"):
        WindowBatches(Numbers([5], window=10), 4, seed=0, processes=2)


def test_a_stream_is_fitted_and_resumes_bit_by_bit(tmp_path: Path):
    rows = gaussian_source(200).tensors[0]
    validation = Rows(gaussian_source(50).tensors[0])
    whole = fit(Gaussian(), Numbers([40] * 5, 80, rows), validation, CONFIG, tmp_path / "whole")
    with pytest.raises(OSError, match="gone"):
        fit(Gaussian(), Breaking([40] * 5, 80, rows), validation, replace(CONFIG, checkpoint_every=7), tmp_path / "two")
    resumed = fit(Gaussian(), Numbers([40] * 5, 80, rows), validation, CONFIG, tmp_path / "two")
    assert (resumed.steps, resumed.best_validation) == (whole.steps, whole.best_validation)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "two"))
    assert all(torch.equal(one[name], two[name]) for name in one)
