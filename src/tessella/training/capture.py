"""The whole training step as one CUDA graph."""

import torch
from torch import Tensor

from tessella.training.step import TrainingStep

WARMUP = 3


class CapturedStep:
    """Runs a `TrainingStep` eagerly a few times, then records it and replays the recording: one launch per step.

    The recipe is PyTorch's for whole-network capture. The warm-up steps are real steps, on the side stream on which the
    capture follows: they let libraries and the optimizer allocate what they keep. The capture itself executes nothing,
    so no step is lost or done twice, and the default generator's noise continues as it would have eagerly.

    Args:
        step: to be captured; its batches must all have the same shape.
    """

    def __init__(self, step: TrainingStep):
        self.step = step
        self._stream = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Tensor | None = None
        self._warm = 0

    def __call__(self, batch: Tensor) -> None:
        """One update, with the numbers that `step.prepare` filled in."""
        if self._batch is None:
            self._batch = torch.empty_like(batch)
        self._batch.copy_(batch)
        if self._warm < WARMUP:
            self._warm += 1
            self._on_side_stream(self._batch)
            return
        if self._graph is None:
            self._graph = self._capture(self._batch)
        self._graph.replay()

    def _on_side_stream(self, batch: Tensor) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self.step(batch)
        torch.cuda.current_stream().wait_stream(self._stream)

    def _capture(self, batch: Tensor) -> torch.cuda.CUDAGraph:
        # The gradients must be allocated during the capture, from the graph's own pool.
        self.step.optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=self._stream):
                self.step(batch)
        except RuntimeError as error:
            raise RuntimeError(
                "compile: the training step could not be captured as a CUDA graph (the cause is above); the model's "
                "loss must have static shapes and read no value on the host. Make it so, or train with compile='off'"
            ) from error
        return graph
