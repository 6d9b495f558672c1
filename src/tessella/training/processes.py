"""The processes of a run, through Lightning Fabric: the only file that knows it."""

import os
from typing import Any, Literal

import torch
from torch import Tensor

from tessella.training.config import TrainingConfig


class Processes:
    """This process among its equals. Methods marked "collective" must be called by all of them together.

    With `devices` > 1, Fabric starts the calling script once more for each further device, unless `torchrun` has
    started them all, on one machine or on several: gloo joins them on the CPU, NCCL on GPUs.
    """

    def __init__(self, config: TrainingConfig):
        from lightning_fabric import Fabric  # late: it costs as much time to import as torch

        accelerator = accelerator_of(config)
        self._fabric = Fabric(accelerator=accelerator, **_places(config.devices, accelerator))
        self._fabric.launch()
        self.rank, self.number, self.device = self._fabric.global_rank, self._fabric.world_size, self._fabric.device

    def reduce(self, tensor: Tensor, operation: Literal["sum", "min", "max"]) -> Tensor:
        """The sum, minimum or maximum over all processes of a tensor of one shape. Collective."""
        reduced = self._fabric.all_reduce(tensor.clone(), reduce_op=operation)
        assert isinstance(reduced, Tensor)
        return reduced

    def gather(self, tensor: Tensor) -> Tensor:
        """Every process's tensor, (processes, ...), on the device. Collective."""
        rows = torch.zeros(self.number, *tensor.shape, dtype=tensor.dtype, device=self.device)
        rows[self.rank] = tensor
        return self.reduce(rows, "sum")

    def agreed(self, text: str) -> str:
        """What the first process says. Collective."""
        return str(self._fabric.broadcast(text))

    def wait(self) -> None:
        """Until all processes are here. Collective."""
        self._fabric.barrier()


def launched() -> int:
    """Processes that `torchrun` started; 1 without it."""
    return int(os.environ["WORLD_SIZE"]) if "TORCHELASTIC_RUN_ID" in os.environ else 1


def own_rank() -> int:
    """This process's among those that `torchrun` or Fabric started; the first, or the only one, is 0."""
    return int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0")))


def _places(number: int, accelerator: str) -> dict[str, Any]:
    """On which devices of how many machines so many processes are: those that `torchrun` says, or one machine's."""
    if number == 1:  # alone, also where others are at work: on the device that is this process's own
        own = [int(os.environ.get("LOCAL_RANK", "0"))] if accelerator == "cuda" else 1
        return {"devices": own, "strategy": "auto"}
    if launched() not in (1, number):
        raise ValueError(f"devices: got {number}; expected {launched()}, the processes that torchrun started")
    here = int(os.environ.get("LOCAL_WORLD_SIZE", number))
    return {"devices": here, "num_nodes": number // here, "strategy": "ddp"}


def accelerator_of(config: TrainingConfig) -> Literal["cpu", "cuda"]:
    """Where "auto" leads on this machine."""
    available = torch.cuda.is_available()
    if config.accelerator == "cuda" and not available:
        raise ValueError("accelerator: got 'cuda', but torch sees no GPU here; expected 'cpu' or 'auto'")
    return "cuda" if available and config.accelerator != "cpu" else "cpu"
