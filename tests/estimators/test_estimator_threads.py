"""`threads=` of the estimators: taken for training, given back afterwards, checked, saved."""

import numpy as np
import pytest
import torch
from tests.estimators.frames_for_tests import small_flow

from tessella import MixtureFlow
from tessella.models import AutoregressiveTable, VectorModel

ROWS = np.random.default_rng(0).normal(size=(60, 2))


def small_mixture(**options) -> MixtureFlow:
    return MixtureFlow(components=2, blocks=1, width=8, max_steps=3, device="cpu", progress=False, **options)


CASES = {"tabular": (small_flow, AutoregressiveTable), "mixture": (small_mixture, VectorModel)}


@pytest.mark.parametrize(("make", "model"), CASES.values(), ids=CASES)
def test_threads_train_and_are_given_back(make, model, monkeypatch, tmp_path):
    seen, loss, before = set(), model.loss, torch.get_num_threads()
    monkeypatch.setattr(model, "loss", lambda self, *batch: seen.add(torch.get_num_threads()) or loss(self, *batch))
    flow = make(threads=2).fit(ROWS)
    assert seen == {2} == {flow.threads_}
    flow.score_samples(ROWS), flow.sample(2)
    assert torch.get_num_threads() == before
    flow.save(tmp_path)
    assert type(flow).load(tmp_path).threads_ == 2


@pytest.mark.parametrize(("make", "model"), CASES.values(), ids=CASES)
def test_one_usable_cpu_means_one_thread_everywhere(make, model, monkeypatch):
    """In a container with the time of one CPU, on a machine that has many."""
    monkeypatch.setattr("tessella.training.threads.cpu_quota", lambda: 1.0)
    flow, seen = make(), set()
    for name in ("_plan", "_check_parameters"):
        plain = getattr(type(flow), name)
        noted = lambda *given, _plain=plain: seen.add(torch.get_num_threads()) or _plain(*given)  # noqa: E731  # one line for each of several methods
        monkeypatch.setattr(type(flow), name, noted)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert flow.fit(ROWS).threads_ == 1
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert seen == {1}


@pytest.mark.parametrize("make", [small_flow, small_mixture])
@pytest.mark.parametrize("threads", [0, 2.0, "2"])
def test_bad_threads_are_named(make, threads):
    with pytest.raises(ValueError, match=f"threads: got {threads!r}; expected a positive integer"):
        make(threads=threads).fit(ROWS)
