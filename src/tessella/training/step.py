"""One update of the weights, written so that it can run thousands of times, or be captured, without the host."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

NO_STEP = torch.iinfo(torch.int64).max


class TrainingStep:
    """Backward, clip, optimizer, average: g <- g min(1, c / |g|), theta <- opt(theta, g), a <- d a + (1 - d) theta.

    Static shapes, no host sync, and everything that it leaves behind is in tensors that stay in place: a CUDA graph of
    one call replays all calls. Numbers that change from step to step are tensors too; `prepare` fills them in.

    A non-finite loss or gradient norm is not prevented from reaching the weights in memory: the step remembers when it
    happened first and what it looked like, and whoever writes weights to disk must look at `first_bad` before.

    Args:
        loss: *batch -> scalar.
        parameters: the trained parameters by name.
        averages: one tensor for each parameter, updated in place.
        optimizer: over these parameters, in one group whose learning rate is a tensor.
        clip_norm: c, or 0 for no clipping.
    """

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Mapping[str, nn.Parameter],
        averages: Sequence[Tensor],
        optimizer: torch.optim.Optimizer,
        clip_norm: float,
    ):
        self.loss, self.optimizer, self.clip_norm = loss, optimizer, clip_norm
        self.names, self.averages = list(parameters), list(averages)
        self.parameters: list[Tensor] = list(parameters.values())
        first = self.parameters[0]
        self.learning_rate: Tensor = optimizer.param_groups[0]["lr"]
        self.decay = torch.zeros((), dtype=first.dtype, device=first.device)
        self._zero = torch.zeros_like(self.decay)
        self.count = torch.zeros((), dtype=torch.int64, device=first.device)
        self.meter = torch.zeros(2, dtype=torch.float64, device=first.device)  # sum of losses, their number
        self.first_bad = torch.full((), NO_STEP, device=first.device)
        self.evidence = torch.zeros(1 + len(self.parameters), dtype=torch.float64, device=first.device)

    def prepare(self, step: int, learning_rate: float, decay: float) -> None:
        """Set the numbers of update `step`, counted from 0."""
        self.count.fill_(step)
        self.learning_rate.fill_(learning_rate)
        self.decay.fill_(decay)

    def __call__(self, *batch: Tensor) -> None:
        """Update weights, moments, averages and records by one batch."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(*batch)
        if loss.dim() != 0:
            raise ValueError(f"model.loss: got shape {tuple(loss.shape)}; expected a scalar, the mean over the rows")
        loss.backward()
        with torch.no_grad():
            norms = self._clip()
            self._record(loss.detach(), norms)
            self.optimizer.step()
            self._average()

    def _clip(self) -> Tensor:
        """Scale the gradients; their norms before that, (parameters,), 0 for a parameter that the loss does not use."""
        grads = [p.grad for p in self.parameters if p.grad is not None]
        found = iter(torch._foreach_norm(grads))
        norms = torch.stack([self._zero if p.grad is None else next(found) for p in self.parameters])
        if self.clip_norm:
            torch._foreach_mul_(grads, (self.clip_norm / (norms.norm() + 1e-6)).clamp(max=1.0))
        return norms.double()

    def _record(self, loss: Tensor, norms: Tensor) -> None:
        self.meter.add_(torch.stack([loss.double(), torch.ones_like(norms[0])]))
        evidence = torch.cat([loss.double()[None], norms])
        fresh = ~evidence.isfinite().all() & (self.first_bad == NO_STEP)
        self.first_bad.copy_(torch.where(fresh, self.count, self.first_bad))
        self.evidence.copy_(torch.where(fresh, evidence, self.evidence))

    def _average(self) -> None:
        torch._foreach_mul_(self.averages, self.decay)
        torch._foreach_add_(self.averages, list(torch._foreach_mul(self.parameters, 1 - self.decay)))
