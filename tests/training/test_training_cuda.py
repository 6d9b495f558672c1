"""The step as a CUDA graph is the step."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.training.small_models import NOISY, Noisy, noisy_source
from torch import Tensor

from tessella.training import NonFiniteError, RunFolder, fit

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ON_GPU = replace(NOISY, steps=60, accelerator="cuda", log_every=1)


def train(folder: Path, **changes) -> list[dict]:
    torch.manual_seed(5)
    fit(Noisy(), noisy_source(50), noisy_source(30), replace(ON_GPU, **changes), folder)
    return [{k: v for k, v in line.items() if k != "seconds"} for line in RunFolder(folder).read_metrics()]


def test_captured_losses_equal_eager_losses(tmp_path: Path):
    eager, captured = train(tmp_path / "eager", compile="off"), train(tmp_path / "captured", compile="auto")
    assert len(eager) == 61
    for one, other in zip(eager, captured, strict=True):
        assert one.keys() == other.keys()
        assert all(other[name] == pytest.approx(one[name], rel=1e-5) for name in one)


def test_a_fused_loss_trains_with_new_noise_at_every_step(tmp_path: Path):
    """Compiled noise has other numbers than eager noise: the same batch has another loss in every update."""
    torch.manual_seed(5)
    config = replace(ON_GPU, compile="fuse", learning_rate=1e-12, batch_size=50)
    fit(Noisy(), noisy_source(50), noisy_source(30), config, tmp_path)
    losses = [line["loss"] for line in RunFolder(tmp_path).read_metrics() if line.get("loss") is not None]
    assert RunFolder(tmp_path).state().eager_because == ""
    assert len(set(losses)) == len(losses) > 50


def test_captured_run_resumes_where_it_stood(tmp_path: Path):
    whole = train(tmp_path / "whole")

    class Stops(Noisy):
        def nll(self, batch: Tensor) -> Tensor:
            if not self.training and RunFolder(tmp_path / "parts").state() is not None:
                raise KeyboardInterrupt
            return super().nll(batch)

    torch.manual_seed(5)
    with pytest.raises(KeyboardInterrupt):
        fit(Stops(), noisy_source(50), noisy_source(30), ON_GPU, tmp_path / "parts")
    assert RunFolder(tmp_path / "parts").state().step == 7
    parts = train(tmp_path / "parts")
    for one, other in zip(whole, parts, strict=True):
        assert all(other[name] == pytest.approx(one[name], rel=1e-5) for name in one)


@pytest.mark.parametrize("compile", ["auto", "off"])
def test_trouble_between_two_looks_is_dated_and_stays_off_the_disk(tmp_path: Path, compile: str):
    class Breaks(Noisy):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("age", torch.zeros((), dtype=torch.int64))

        def loss(self, batch: Tensor) -> Tensor:
            self.age += 1
            return super().loss(batch) * torch.where(self.age == 13, float("nan"), 1.0)

    config = replace(ON_GPU, log_every=10, checkpoint_every=10, validate_every=100, compile=compile)
    with pytest.raises(NonFiniteError) as caught:
        fit(Breaks(), noisy_source(50), noisy_source(30), config, tmp_path)
    assert (caught.value.step, caught.value.parts) == (13, ("loss",))
    assert RunFolder(tmp_path).state().step == 10
    assert all(tensor.isfinite().all() for tensor in load_file(caught.value.checkpoint).values())


class LooksAtItsLoss(Noisy):
    """A host sync in the middle of an update, after noise was drawn: no graph can hold it."""

    def loss(self, batch: Tensor) -> Tensor:
        loss = super().loss(batch)
        return loss if loss.item() < 1e9 else loss.detach()


class Refuses(LooksAtItsLoss):
    capturable = False
    not_capturable_because = "it looks at its loss"


class Breaks(Noisy):
    """Something that is no error of CUDA's, in the capture alone."""

    def loss(self, batch: Tensor) -> Tensor:
        noise = super().loss(batch)
        if torch.cuda.is_current_stream_capturing():
            raise ValueError("not now")
        return noise


@pytest.mark.parametrize(
    ("model", "reason"),
    [(LooksAtItsLoss, "Error: CUDA error: operation not permitted"), (Refuses, "looks at its"), (Breaks, "not now")],
)
def test_what_cannot_be_captured_trains_eagerly(tmp_path: Path, capsys, model: type[Noisy], reason: str):
    runs = {}
    for compile in ("off", "auto"):
        torch.manual_seed(5)
        config = replace(ON_GPU, compile=compile, progress=True)
        fit(model(), noisy_source(50), noisy_source(30), config, tmp_path / compile)
        runs[compile] = load_file(tmp_path / compile / "resume.safetensors")
    assert all(torch.equal(tensor, runs["auto"][name]) for name, tensor in runs["off"].items())
    assert RunFolder(tmp_path / "off").state().eager_because == ""
    assert reason in RunFolder(tmp_path / "auto").state().eager_because
    assert capsys.readouterr().err.count("updates run eagerly, not as a CUDA graph") == 1


def test_a_failed_capture_leaves_the_device_as_it_was(tmp_path: Path):
    stream = torch.cuda.current_stream()
    fit(LooksAtItsLoss(), noisy_source(50), noisy_source(30), ON_GPU, tmp_path)
    assert torch.cuda.current_stream() == stream
    torch.randn(3, device="cuda")
    torch.cuda.empty_cache()  # an error while the allocator believes that a capture goes on
    train(tmp_path / "captured")
    assert RunFolder(tmp_path / "captured").state().eager_because == ""
