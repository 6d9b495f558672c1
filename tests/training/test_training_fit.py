"""What `fit` promises, on a model whose optimum is known."""

import json
import os
import signal
from dataclasses import replace
from itertools import count, pairwise
from math import log
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests.training.small_models import NOISY, Gaussian, Noisy, fit_noisy, gaussian_rows, gaussian_source, noisy_source
from torch import Tensor

from tessella.data import Rows
from tessella.training import NonFiniteError, RunFolder, TrainingConfig, evaluate, fit, load_best
from tessella.training.schedule import learning_rate

QUICK = TrainingConfig(
    steps=40,
    batch_size=32,
    learning_rate=0.1,
    warmup_steps=0,
    validate_every=10,
    checkpoint_every=10,
    log_every=10,
    accelerator="cpu",
    progress=False,
)


def test_reaches_the_maximum_likelihood(tmp_path: Path):
    rows, model = gaussian_rows(), Gaussian()
    result = fit(model, Rows(rows), Rows(rows), replace(QUICK, steps=400, batch_size=64, ema_decay=0.9), tmp_path)
    torch.testing.assert_close(model.mean.detach(), rows.mean(0), atol=1e-3, rtol=0)
    optimum = float(rows.std(0, correction=0).log().sum()) + 2 * 0.5
    assert result.best_validation == pytest.approx(optimum, abs=1e-5)
    assert result.stopped == "steps"
    assert int(model.initialized) == 1


def test_saved_model_reproduces_the_reported_value_exactly(tmp_path: Path):
    model, fresh = Noisy(), Noisy()
    result = fit(model, noisy_source(50), noisy_source(30), NOISY, tmp_path)
    load_best(fresh, tmp_path)
    state = torch.get_rng_state()
    assert evaluate(fresh, noisy_source(30), NOISY) == result.best_validation
    assert evaluate(model, noisy_source(30), NOISY) == result.best_validation
    assert torch.equal(torch.get_rng_state(), state)


def test_metrics_are_what_was_measured(tmp_path: Path):
    result = fit(Gaussian(), gaussian_source(), gaussian_source(), QUICK, tmp_path)
    lines = RunFolder(tmp_path).read_metrics()
    assert [line["step"] for line in lines] == [0, 10, 20, 30, 40]
    assert min(line["validation"] for line in lines) == result.best_validation
    losses = [line["loss"] for line in lines[1:]]
    assert losses == sorted(losses, reverse=True)
    assert all(earlier["seconds"] <= later["seconds"] for earlier, later in pairwise(lines))


def test_the_callers_generator_is_left_alone(tmp_path: Path):
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    fit(Gaussian(), gaussian_source(), gaussian_source(), QUICK, tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_stops_when_validation_stops_improving(tmp_path: Path):
    class Worsens(Gaussian):
        def nll(self, batch: Tensor) -> Tensor:
            return super().nll(batch) if self.training else -super().nll(batch)

    result = fit(Worsens(), gaussian_source(), gaussian_source(), replace(QUICK, patience=2), tmp_path)
    assert (result.stopped, result.steps, result.best_step) == ("patience", 20, 0)
    again = fit(Worsens(), gaussian_source(), gaussian_source(), replace(QUICK, patience=2), tmp_path)
    assert again == result


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"patience": 2}, "stopped: no progress on the validation rows for 2 validations"),
        ({"time_budget": 1e-9}, "stopped: the time budget is spent"),
        ({}, ""),
    ],
    ids=["patience", "time_budget", "steps"],
)
@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_says_why_it_stops_early(tmp_path: Path, capsys, monkeypatch, change: dict, said: str, terminal: bool):
    class Worsens(Gaussian):
        def nll(self, batch: Tensor) -> Tensor:
            return super().nll(batch) if self.training else -super().nll(batch)

    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    config = replace(QUICK, progress=True, **change)
    result = fit(Worsens(), gaussian_source(), gaussian_source(), config, tmp_path)
    *_, bar, last = ["", *capsys.readouterr().err.splitlines()]
    assert f"{result.steps}/40" in (bar if said else last)
    assert said in last
    assert ("stopped" in last) == bool(said)


def test_stops_at_the_time_budget_and_continues_with_a_larger_one(tmp_path: Path):
    config = replace(NOISY, steps=10**6, time_budget=0.3)
    result = fit_noisy(tmp_path, config)
    assert result.stopped == "time_budget"
    assert 0.3 <= result.seconds < 5
    assert 0 < result.steps < 10**6
    assert RunFolder(tmp_path).read_metrics()[-1].keys() >= {"validation"}
    same = fit_noisy(tmp_path, config)
    assert (same.steps, same.best_validation) == (result.steps, result.best_validation)
    more = fit_noisy(tmp_path, replace(config, time_budget=result.seconds + 0.2))
    assert more.steps > result.steps


def test_the_learning_rate_comes_to_rest_within_a_time_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a clock that ticks whenever somebody looks at it; of the steps a ten-thousandth is made."""
    rates: list[float] = []

    def noted(step: int, config: TrainingConfig, spent: float) -> float:
        rates.append(learning_rate(step, config, spent))
        return rates[-1]

    monkeypatch.setattr("tessella.training.learner.learning_rate", noted)
    monkeypatch.setattr("tessella.training.run.time", SimpleNamespace(monotonic=count().__next__))
    result = fit_noisy(tmp_path, replace(NOISY, steps=10**6, warmup_steps=0, learning_rate=0.01, time_budget=200))
    assert result.stopped == "time_budget"
    assert rates[0] == pytest.approx(0.01, rel=0.01)
    assert all(later <= earlier for earlier, later in pairwise(rates))
    assert rates[-1] < 0.0003


def test_validation_rows_limits_what_is_read(tmp_path: Path):
    seen = []

    class Counts(Gaussian):
        def nll(self, batch: Tensor) -> Tensor:
            if not self.training:
                seen.append(batch)
            return super().nll(batch)

    config = replace(QUICK, validation_rows=10, batch_size=4, steps=1)
    fit(Counts(), gaussian_source(), gaussian_source(), config, tmp_path)
    before, after = torch.cat(seen[:3]), torch.cat(seen[3:])
    assert torch.equal(before, after)
    assert len({tuple(row.tolist()) for row in before}) == 10
    assert not torch.equal(before, gaussian_rows()[:10])


def test_another_config_is_refused_by_name(tmp_path: Path):
    fit(Gaussian(), gaussian_source(), gaussian_source(), QUICK, tmp_path, about={"model": {"width": 1}})
    other = replace(QUICK, batch_size=8, seed=7, checkpoint_every=3)
    with pytest.raises(ValueError, match="another config") as caught:
        fit(Gaussian(), gaussian_source(), gaussian_source(), other, tmp_path, about={"model": {"width": 2}})
    message = str(caught.value)
    assert "training.batch_size: 32 there, 8 asked for" in message
    assert "training.seed: 0 there, 7 asked for" in message
    assert "run.model.width: 1 there, 2 asked for" in message
    assert "checkpoint_every" not in message
    assert fit(Gaussian(), gaussian_source(), gaussian_source(), other, tmp_path, resume=False).steps == 40
    with pytest.raises(ValueError, match=r"data\.train: \[\[64, 2\]\] there, \[\[30, 2\]\] asked for"):
        fit(Gaussian(), gaussian_source(30), gaussian_source(), other, tmp_path)


def test_a_folder_of_an_earlier_version_is_continued(tmp_path: Path):
    """It said [rows, columns] where there is a list of shapes now, and "standing" where there is "state"."""
    fit(Gaussian(), gaussian_source(), gaussian_source(), QUICK, tmp_path)
    resume, config = tmp_path / "resume.safetensors", json.loads((tmp_path / "config.json").read_text())
    with safe_open(resume, framework="pt") as file:
        state = json.loads(file.metadata()["state"])
    del state["eager_because"]
    save_file(load_file(resume), resume, {"standing": json.dumps(state)})
    config["data"] = {"train": [64, 2], "validation": [64, 2]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert fit(Gaussian(), gaussian_source(), gaussian_source(), QUICK, tmp_path).steps == 40
    with pytest.raises(ValueError, match=r"data\.train: \[\[64, 2\]\] there, \[\[30, 2\]\] asked for"):
        fit(Gaussian(), gaussian_source(30), gaussian_source(), QUICK, tmp_path)


def test_interrupted_run_keeps_the_best_model_and_continues_exactly(tmp_path: Path):
    class Interrupted(Noisy):
        steps = 0

        def loss(self, batch: Tensor) -> Tensor:
            self.steps += 1
            if self.steps == 17:
                os.kill(os.getpid(), signal.SIGINT)
            return super().loss(batch)

    torch.manual_seed(5)
    config = replace(NOISY, steps=40)
    handler = signal.getsignal(signal.SIGINT)
    result = fit(Interrupted(), noisy_source(50), noisy_source(30), config, tmp_path, about={"model": "noisy"})
    assert (result.stopped, result.steps) == ("interrupted", 17)
    assert signal.getsignal(signal.SIGINT) is handler
    best = Noisy()
    load_best(best, tmp_path)
    assert evaluate(best, noisy_source(30), config) == result.best_validation
    assert fit_noisy(tmp_path, config).stopped == "steps"
    fit_noisy(tmp_path / "whole", config)
    resumed, whole = (load_file(path / "resume.safetensors") for path in (tmp_path, tmp_path / "whole"))
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)


class Breaks(Gaussian):
    """Gradient of one parameter, or the loss, becomes NaN at a given step."""

    def __init__(self, step: int, part: str):
        super().__init__()
        self.step, self.part, self.calls = step, part, 0

    def loss(self, batch: Tensor) -> Tensor:
        self.calls += 1
        if self.calls != self.step:
            return super().loss(batch)
        if self.part == "loss":
            return super().loss(batch) * log(3) * float("inf")
        return super().loss(batch) + (self.mean - self.mean.detach()).abs().sqrt().sum()


@pytest.mark.parametrize(("part", "parts"), [("loss", ("loss",)), ("mean", ("mean",))])
def test_non_finite_numbers_stop_the_run_and_stay_off_the_disk(tmp_path: Path, part: str, parts: tuple[str, ...]):
    rows = gaussian_source()
    with pytest.raises(NonFiniteError) as caught:
        fit(Breaks(25, part), rows, rows, QUICK, tmp_path)
    assert (caught.value.step, caught.value.parts) == (25, parts)
    assert caught.value.checkpoint == tmp_path / "resume.safetensors"
    assert "step 25" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert all(tensor.isfinite().all() for tensor in load_file(caught.value.checkpoint).values())
    best = Gaussian()
    load_best(best, tmp_path)
    assert evaluate(best, rows, QUICK) == RunFolder(tmp_path).read_metrics()[-1]["validation"]
    assert fit(Gaussian(), rows, rows, QUICK, tmp_path).steps == 40


def test_a_validation_that_is_not_finite_is_written_as_null_and_never_best(tmp_path: Path):
    class Overflows(Gaussian):
        def nll(self, batch: Tensor) -> Tensor:
            return super().nll(batch) + (0 if self.training or self.mean.sum() > 1 else float("inf"))

    result = fit(Overflows(), gaussian_source(), gaussian_source(), QUICK, tmp_path)
    lines = RunFolder(tmp_path).read_metrics()
    assert lines[0]["validation"] is None
    assert result.best_validation == min(line["validation"] for line in lines if line["validation"] is not None)


def test_a_table_smaller_than_the_batch_is_the_batch(tmp_path: Path):
    sizes = []

    class Sizes(Gaussian):
        def loss(self, batch: Tensor) -> Tensor:
            sizes.append(len(batch))
            return super().loss(batch)

    fit(Sizes(), gaussian_source(5), gaussian_source(), replace(QUICK, steps=3), tmp_path)
    assert sizes == [5, 5, 5]


def test_progress_bar_shows_what_people_watch(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    config = replace(QUICK, progress=True, time_budget=1000)
    result = fit(Gaussian(), gaussian_source(), gaussian_source(), config, tmp_path)
    shown = capsys.readouterr().err.split("\r")[-1]
    assert f"best {result.best_validation:.4f}" in shown
    assert all(word in shown for word in ("40/40", "loss", "steps/s", "0:00:00 left"))


@pytest.mark.parametrize(
    ("model", "train", "validation", "message"),
    [
        (
            torch.nn.Linear(2, 2),
            gaussian_source(),
            gaussian_source(),
            "model: got Linear; expected an nn.Module with loss",
        ),
        (Gaussian(), gaussian_rows(), gaussian_source(), r"train: got a tensor of shape \(64, 2\); .* Rows\(tensor\)"),
        (Gaussian(), gaussian_source(), gaussian_rows(), r"validation: got a tensor of shape .* Rows\(tensor\)"),
        (Gaussian(), [[1.0, 2.0]], gaussian_source(), "train: got list; expected a source, with len, batch, to and"),
        (Gaussian(), gaussian_source(), gaussian_source(4, 3), r"validation: got rows of shape \(3,\)"),
        (Gaussian().requires_grad_(False), gaussian_source(), gaussian_source(), "has no parameter that requires"),
    ],
    ids=["model", "train", "validation", "no source", "other rows", "frozen"],
)
def test_errors_teach(tmp_path: Path, model, train, validation, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(model, train, validation, QUICK, tmp_path)


def test_wrong_shapes_of_loss_and_nll_are_named(tmp_path: Path):
    class Vector(Gaussian):
        def loss(self, batch: Tensor) -> Tensor:
            return self.nll(batch)

    class Scalar(Gaussian):
        def nll(self, batch: Tensor) -> Tensor:
            return super().nll(batch).mean()

    with pytest.raises(ValueError, match=r"model\.loss: got shape \(32,\); expected a scalar"):
        fit(Vector(), gaussian_source(), gaussian_source(), QUICK, tmp_path / "loss")
    with pytest.raises(ValueError, match=r"model\.nll: got shape \(\); expected \(32,\)"):
        fit(Scalar(), gaussian_source(), gaussian_source(), QUICK, tmp_path / "nll")


def test_about_must_be_json(tmp_path: Path):
    with pytest.raises(TypeError, match=r"about: .*Tensor"):
        fit(Gaussian(), gaussian_source(), gaussian_source(), QUICK, tmp_path, about={"anchors": torch.zeros(2)})
