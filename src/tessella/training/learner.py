"""The numbers that training changes on one process: weights, their averages, moments, noise; and the step over them."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from tessella.contracts import Batch, Source, Trainable
from tessella.training.capture import CapturedStep, not_capturable_because
from tessella.training.config import TrainingConfig
from tessella.training.folder import under
from tessella.training.fusion import FusedLoss
from tessella.training.muon import Muon, divided
from tessella.training.processes import Processes
from tessella.training.randomness import noise_state, set_noise_state
from tessella.training.schedule import average_decay, learning_rate
from tessella.training.step import NO_STEP, TrainingStep
from tessella.training.validation import nll_sums

ADAMS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


class Learner:
    """A model, the average of its weights, and an optimizer, with one step that advances them all.

    With several processes every learner holds the same weights: gradients are averaged in the backward pass. Methods
    marked "collective" must be called by all processes together.

    Args:
        model: on the device, initialised; with several processes it receives the weights of the first.
        config: learning rate, averaging, clipping.
        processes: who else learns.
    """

    def __init__(self, model: Trainable, config: TrainingConfig, processes: Processes):
        assert isinstance(model, nn.Module)
        self.model, self.config, self.processes = model, config, processes
        alone = processes.device.type == "cuda" and processes.number == 1
        loss = FusedLoss(model) if alone and config.compile == "fuse" else _parallel_loss(model, processes)
        self.average = copy.deepcopy(model).requires_grad_(False).eval()
        self._parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self._parameters:
            raise ValueError(
                f"model: {type(model).__name__} has no parameter that requires a gradient; nothing to train"
            )
        averages = dict(self.average.named_parameters())
        self._optimizer = _optimizer(model, list(self._parameters.values()), config, processes.device)
        self.step = TrainingStep(
            loss, self._parameters, [averages[name] for name in self._parameters], self._optimizer, config.clip_norm
        )
        wanted = config.compile != "off" and alone
        self._refused = not_capturable_because(model) if wanted else ""
        self._captured = CapturedStep(self.step, processes.device) if wanted and not self._refused else None

    @property
    def eager_because(self) -> str:
        """Why updates are not replayed as a CUDA graph, where that was wanted; empty if they are, or it was not."""
        return self._refused if self._captured is None else self._captured.eager_because

    def update(self, step: int, batch: Batch, spent: float = 0.0) -> None:
        """Update `step`, counted from 0, from this process's slice of the batch; spent: share of the time budget."""
        self.step.prepare(step, learning_rate(step, self.config, spent), average_decay(step, self.config))
        (self._captured or self.step)(*batch)

    def mean_loss(self) -> float:
        """Mean of the losses since this was last asked, over all processes. Collective."""
        total, number = self.processes.reduce(self.step.meter, "sum").tolist()
        self.step.meter.zero_()
        return float(total / number)

    def validate(self, source: Source, rows: Tensor) -> float:
        """Mean nll of the averaged model over these rows of a source, both on the device. Collective."""
        for averaged, buffer in zip(self.average.buffers(), self.model.buffers(), strict=True):
            averaged.copy_(buffer)
        sums = nll_sums(self.average, source, rows, self.config, self.processes.rank, self.processes.number)
        return float(self.processes.reduce(sums, "sum").sum()) / len(rows)

    def first_trouble(self) -> tuple[int, tuple[str, ...]]:
        """The first update, counted from 1, that was not finite, and which part of it. Collective."""
        step = int(self.processes.reduce(self.step.first_bad, "min"))
        bad = [not finite for finite in self.step.evidence.isfinite().tolist()]
        loss_is_bad = self.processes.reduce(torch.tensor(int(bad[0]), device=self.processes.device), "max")
        names = tuple(name for name, here in zip(self.step.names, bad[1:], strict=True) if here)
        return step + 1, ("loss",) if loss_is_bad else names

    def in_trouble(self) -> Tensor:
        """Whether any update of this process was not finite: a flag on the device."""
        return self.step.first_bad != NO_STEP

    def state(self) -> dict[str, Tensor]:
        """Everything needed to continue exactly. Collective."""
        state = {f"model/{name}": tensor for name, tensor in self.model.state_dict().items()}
        state |= {f"average/{name}": tensor for name, tensor in self.average.state_dict().items()}
        for name, parameter in self._parameters.items():
            state |= {f"optimizer/{name}/{key}": value for key, value in self._optimizer.state[parameter].items()}
        own = {"meter": self.step.meter, **noise_state(self.processes.device)}
        state |= {f"process/{name}": self.processes.gather(tensor) for name, tensor in own.items()}
        return state

    def load(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        self.model.load_state_dict(under("model/", state))
        self.average.load_state_dict(under("average/", state))
        moments: dict[str, dict[str, Tensor]] = {}
        for path, tensor in under("optimizer/", state).items():
            name, _, key = path.rpartition("/")
            moments.setdefault(name, {})[key] = tensor.to(self.processes.device, copy=True)
        for name, moment in moments.items():
            self._optimizer.state[self._parameters[name]] = moment
        own = {name: tensor[self.processes.rank] for name, tensor in under("process/", state).items()}
        self.step.meter.copy_(own.pop("meter"))
        set_noise_state(own, self.processes.device)


class _Loss(nn.Module):
    """The loss as a forward pass, which is where `DistributedDataParallel` listens."""

    def __init__(self, model: Trainable):
        super().__init__()
        self.model = model

    def forward(self, *batch: Tensor) -> Tensor:
        return self.model.loss(*batch)


def _parallel_loss(model: Trainable, processes: Processes) -> Callable[..., Tensor]:
    if processes.number == 1:
        return model.loss
    on_gpu = processes.device.type == "cuda"
    return DistributedDataParallel(_Loss(model), device_ids=[processes.device] if on_gpu else None)


def _optimizer(
    model: nn.Module, parameters: list[nn.Parameter], config: TrainingConfig, device: torch.device
) -> torch.optim.Optimizer:
    on_gpu = device.type == "cuda"
    rate = torch.tensor(config.learning_rate, dtype=torch.float32, device=device)
    if config.optimizer == "muon":
        matrices, others = divided(model, parameters)
        return Muon(matrices, others, rate, config.weight_decay, fused=on_gpu, capturable=on_gpu)
    adam = ADAMS[config.optimizer]
    return adam(parameters, lr=rate, weight_decay=config.weight_decay, fused=on_gpu, capturable=on_gpu)
