"""A step that cannot be captured runs eagerly, and nobody can tell from the numbers.

There is no GPU here: streams and graphs are stand-ins, under which a capture fails in each of the ways it can.
"""

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.training.small_models import NOISY, Noisy, noisy_rows, noisy_source
from torch import Tensor, nn

from tessella.training import RunFolder, fit
from tessella.training.capture import WARMUP, CapturedStep, not_capturable_because
from tessella.training.learner import Learner
from tessella.training.step import TrainingStep

CPU = torch.device("cpu")


def fails(*_: object, **__: object):
    raise RuntimeError("not permitted\nwhen stream is capturing")


class Stream:
    def wait_stream(self, other: object) -> None:
        pass


class Cuda:
    """Where torch.cuda would stand: which stream is current, and whether a capture goes on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.current, self.capturing = Stream(), False
        self.main = self.current
        for name, stand_in in {
            "Stream": Stream,
            "CUDAGraph": SimpleNamespace,
            "current_stream": lambda: self.current,
            "set_stream": lambda stream: setattr(self, "current", stream),
            "stream": lambda stream: nullcontext(),
            "graph": self.graph,
            "graph_pool_handle": lambda: (0, 1),
        }.items():
            monkeypatch.setattr(torch.cuda, name, stand_in)

    @contextmanager
    def graph(self, graph: object, pool: object, stream: Stream):
        """As torch's: an error in the end of a capture leaves its stream current."""
        self.current, self.capturing = stream, True
        try:
            yield
        finally:
            self.capturing = False
            raise RuntimeError("operation failed due to a previous error during capture")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    return Cuda(monkeypatch)


def make_step(model: nn.Module) -> TrainingStep:
    parameters = dict(model.named_parameters())
    averages = [parameter.detach().clone() for parameter in parameters.values()]
    return TrainingStep(
        model.loss, parameters, averages, torch.optim.Adam(parameters.values(), torch.tensor(0.01)), 1.0
    )


def everything(step: TrainingStep) -> list[Tensor]:
    moments = [value for state in step.optimizer.state.values() for value in state.values()]
    return [*step.parameters, *step.averages, *moments, step.meter, torch.get_rng_state()]


def updates(step: TrainingStep, advance, number: int) -> list[Tensor]:
    torch.manual_seed(3)
    rows = noisy_rows(8 * number).split(8)
    for t in range(number):
        step.prepare(t, 0.01, 0.5)
        advance(rows[t])
    return everything(step)


def noisy() -> Noisy:
    torch.manual_seed(5)
    return Noisy()


class LooksAtItsLoss(Noisy):
    """Noise is drawn before the capture breaks: it must not be lost."""

    cuda: Cuda

    def loss(self, batch: Tensor) -> Tensor:
        loss = super().loss(batch)
        if self.cuda.capturing:
            fails()
        return loss


WAYS = ["Stream", "CUDAGraph", "graph", "loss"]


@pytest.mark.parametrize("way", WAYS)
def test_updates_after_a_failed_capture_are_the_eager_ones(way: str, cuda: Cuda, monkeypatch: pytest.MonkeyPatch):
    eager = make_step(noisy())
    expected = updates(eager, eager, WARMUP + 4)
    model = noisy()
    if way == "loss":
        model.__class__, model.cuda = LooksAtItsLoss, cuda
    else:
        monkeypatch.setattr(torch.cuda, way, fails)
    step = make_step(model)
    captured = CapturedStep(step, CPU)
    actual = updates(step, captured, WARMUP + 4)
    assert all(torch.equal(one, other) for one, other in zip(actual, expected, strict=True))
    assert captured.eager_because == "RuntimeError: not permitted"
    assert cuda.current is cuda.main


def test_an_error_of_the_model_stays_an_error(cuda: Cuda):
    step = make_step(noisy())
    step.loss = fails
    with pytest.raises(RuntimeError, match="not permitted"):
        CapturedStep(step, CPU)(noisy_rows(8))


def test_a_batch_of_another_shape_ends_the_capture(cuda: Cuda):
    eager, step = make_step(noisy()), make_step(noisy())
    captured = CapturedStep(step, CPU)
    for advance, one in ((eager, eager), (captured, step)):
        torch.manual_seed(3)
        for t, rows in enumerate((8, 1, 8)):
            one.prepare(t, 0.01, 0.5)
            advance(noisy_rows(rows))
    assert all(torch.equal(one, other) for one, other in zip(everything(step), everything(eager), strict=True))
    assert captured.eager_because.startswith("a batch of [((1, 3), torch.float32)] came after batches of [((8, 3)")


def test_parts_that_cannot_be_captured_say_so():
    class Solver(nn.Module):
        capturable = False
        not_capturable_because = "the solver looks at its error"

    assert not_capturable_because(nn.Sequential(nn.Linear(1, 1), Solver())) == "the solver looks at its error"
    assert not_capturable_because(noisy()) == ""


def test_the_reason_is_said_once_and_stays_in_the_folder(tmp_path: Path, monkeypatch, capsys):
    """A learner that says why from its fourth update on, as one on a GPU does whose capture failed."""

    class Eager(Learner):
        eager_because = property(lambda self: "no" * (int(self.step.count) >= WARMUP))

    monkeypatch.setattr("tessella.training.run.Learner", Eager)
    config = replace(NOISY, steps=12, progress=True)
    fit(Noisy(), noisy_source(50), noisy_source(30), config, tmp_path)
    assert capsys.readouterr().err.count("updates run eagerly, not as a CUDA graph: no") == 1
    state = RunFolder(tmp_path).state()
    assert state is not None
    assert state.eager_because == "no"


def test_where_nothing_is_captured_there_is_no_reason(tmp_path: Path):
    class Refuses(Noisy):
        capturable = False

    fit(Refuses(), noisy_source(50), noisy_source(30), replace(NOISY, steps=3), tmp_path)
    state = RunFolder(tmp_path).state()
    assert state is not None
    assert state.eager_because == ""
