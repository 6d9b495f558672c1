"""What evaluation and audits make of a likelihood: its weights, and batches of its kind."""

import torch
from torch import Tensor

from tessella.contracts import Batch, Bound, Likelihood


def log_weights(model: Likelihood, batch: Batch, samples: int) -> list[Tensor]:
    """The logarithms of weights whose mean is an unbiased estimate of P(row), double precision, tensors (S, b).

    An exact model has one weight for a row: P itself.
    """
    if model.exact:
        return [model.log_prob(*batch).double()[None]]
    if not isinstance(model, Bound):
        raise TypeError(f"model: got a {type(model).__name__} that is not exact; expected one with importance weights")
    return [weights.double() for weights in model.chunked_log_weights(*batch, samples=samples)]


@torch.no_grad()
def as_batch_of(model: Likelihood, batch: Batch) -> Batch:
    """The batch in the types and on the device of those that the model draws."""
    return tuple(part.to(like) for part, like in zip(batch, model.sample(1), strict=True))
