"""What evaluation and audits ask of a model: a likelihood, exact or a bound, and rows drawn from it."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


class Likelihood(Protocol):
    """log P(row), exact or a lower bound, and rows ~ P: models, baselines and the models of estimators alike."""

    @property
    def exact(self) -> bool:
        """Whether `log_prob` is the value itself; else it is a lower bound."""
        ...

    def log_prob(self, rows: Tensor, /, samples: int | None = None) -> Tensor:
        """Nats per row, (B, N) -> (B); a bound takes so many importance samples, an exact value needs none."""
        ...

    def sample(self, rows: int) -> Tensor:
        """New rows, (rows, N)."""
        ...


@runtime_checkable
class Bound(Likelihood, Protocol):
    """log P(row) >= E log 1/S sum_s w_s: a lower bound that shows its importance weights."""

    def chunked_log_weights(self, rows: Tensor, /, samples: int) -> list[Tensor]:
        """log w for a few rows at a time: tensors (S, b)."""
        ...


def log_weights(model: Likelihood, rows: Tensor, samples: int) -> list[Tensor]:
    """The logarithms of weights whose mean is an unbiased estimate of P(row), double precision, tensors (S, b).

    An exact model has one weight for a row: P itself.
    """
    if model.exact:
        return [model.log_prob(rows).double()[None]]
    if not isinstance(model, Bound):
        raise TypeError(f"model: got a {type(model).__name__} that is not exact; expected one with importance weights")
    return [weights.double() for weights in model.chunked_log_weights(rows, samples)]


@torch.no_grad()
def as_rows_of(model: Likelihood, rows: Tensor) -> Tensor:
    """The rows in the type and on the device of those that the model draws."""
    return rows.to(model.sample(1))
