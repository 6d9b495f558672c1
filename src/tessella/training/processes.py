"""The processes of a run, through Lightning Fabric: the only file that knows it."""

from typing import Literal

import torch
from torch import Tensor

from tessella.training.config import TrainingConfig


class Processes:
    """This process among its equals. Methods marked "collective" must be called by all of them together.

    With `devices` > 1, Fabric starts the calling script once more for each further device: gloo joins them on the CPU,
    NCCL on GPUs.
    """

    def __init__(self, config: TrainingConfig):
        from lightning_fabric import Fabric  # late: it costs as much time to import as torch

        strategy = "auto" if config.devices == 1 else "ddp"
        self._fabric = Fabric(accelerator=config.accelerator, devices=config.devices, strategy=strategy)
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

    def wait(self) -> None:
        """Until all processes are here. Collective."""
        self._fabric.barrier()


def accelerator_of(config: TrainingConfig) -> Literal["cpu", "cuda"]:
    """Where "auto" leads on this machine."""
    available = torch.cuda.is_available()
    if config.accelerator == "cuda" and not available:
        raise ValueError("accelerator: got 'cuda', but torch sees no GPU here; expected 'cpu' or 'auto'")
    return "cuda" if available and config.accelerator != "cpu" else "cpu"
