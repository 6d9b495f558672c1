"""The whole training step as one CUDA graph, where that works; eagerly where it does not."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from tessella.contracts import Batch
from tessella.training.randomness import noise_to_restore
from tessella.training.step import TrainingStep

WARMUP = 3


class CapturedStep:
    """Runs a `TrainingStep` eagerly a few times, then records it and replays the recording: one launch per step.

    The recipe is PyTorch's for whole-network capture. The warm-up steps are real steps, on the side stream on which the
    capture follows: they let libraries and the optimizer allocate what they keep. The capture itself executes nothing,
    so no step is lost or done twice, and the default generator's noise continues as it would have eagerly.

    A capture that fails, for whatever reason, is no error either: it has executed nothing, its traces are removed, and
    this step and all that follow run eagerly.

    Args:
        step: to be captured.
        device: of its tensors.

    Attributes:
        eager_because: why steps run eagerly; empty as long as they are captured, or will be.
    """

    def __init__(self, step: TrainingStep, device: torch.device):
        self.step, self.device, self.eager_because = step, device, ""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Batch = ()
        self._warm = 0
        with suppress(Exception), self._noted():
            self._stream = torch.cuda.Stream()

    def __call__(self, *batch: Tensor) -> None:
        """One update, with the numbers that `step.prepare` filled in."""
        if not self.eager_because:
            self._receive(batch)
        if not self.eager_because and self._warm == WARMUP and self._graph is None:
            self._capture()
        if self.eager_because:
            self.step(*batch)
        elif self._graph is not None:
            self._graph.replay()
        else:
            self._warm += 1
            self._on_side_stream()

    def _receive(self, batch: Batch) -> None:
        """Copy the batch to where the graph will look for it; a graph has no place for one of another shape."""
        self._batch = self._batch or tuple(torch.empty_like(tensor) for tensor in batch)
        came, expected = ([(tuple(tensor.shape), tensor.dtype) for tensor in one] for one in (batch, self._batch))
        if came != expected:
            self._give_up(f"a batch of {came} came after batches of {expected}")
            return
        for place, tensor in zip(self._batch, batch, strict=True):
            place.copy_(tensor)

    def _on_side_stream(self) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self.step(*self._batch)
        torch.cuda.current_stream().wait_stream(self._stream)

    def _capture(self) -> None:
        # The gradients must be allocated during the capture, from the graph's own pool.
        self.step.optimizer.zero_grad(set_to_none=True)
        with suppress(Exception), self._noted(), _without_a_trace(self.device) as pool:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool, stream=self._stream), self._noted():
                self.step(*self._batch)
            self._graph = graph

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """An error inside is the reason to go on eagerly, unless one came before: what ends a broken capture fails."""
        try:
            yield
        except Exception as error:
            self._give_up(f"{type(error).__name__}: {error}".partition("\n")[0])
            raise

    def _give_up(self, reason: str) -> None:
        self.eager_because = self.eager_because or reason
        self._graph, self._batch = None, ()
        self.step.optimizer.zero_grad(set_to_none=True)  # they may be in the memory of the graph


@contextmanager
def _without_a_trace(device: torch.device) -> Iterator[Any]:
    """A memory pool to capture with; after an error inside, stream, generators and allocator are as before.

    Torch leaves all three in the middle of the capture when that cannot be ended: another stream is current, the
    generator refuses to draw, and the allocator frees nothing.
    """
    stream, restore_noise, pool = torch.cuda.current_stream(), noise_to_restore(device), torch.cuda.graph_pool_handle()
    try:
        yield pool
    except Exception:
        torch.cuda.set_stream(stream)
        restore_noise()
        with suppress(Exception):  # newer versions of torch have ended it themselves, and say so
            torch._C._cuda_endAllocateToPool(device.index or 0, pool)
            torch._C._cuda_releasePool(device.index or 0, pool)
        raise


def not_capturable_because(model: nn.Module) -> str:
    """What a model, or the first of its parts that has something to say, says against capture; see `Trainable`.

    >>> class Solver(nn.Module):
    ...     capturable = False
    >>> not_capturable_because(nn.Sequential(nn.Linear(2, 2), Solver())), not_capturable_because(nn.Linear(2, 2))
    ('Solver is not capturable', '')
    """
    for part in model.modules():
        if not getattr(part, "capturable", True):
            return str(getattr(part, "not_capturable_because", f"{type(part).__name__} is not capturable"))
    return ""
