"""What packages ask of each other's objects: batches of data, and models that train, score and sample.

A batch is a tuple of tensors with the same first dimension B, and every method takes it as `*batch`:

| data | batch |
|---|---|
| table | `(codes,)` or `(codes, numbers)` |
| sets | `(items, mask)` |
| text | `(characters,)` |

A model names the tensors that it takes, `loss(self, codes)` or `nll(self, items, mask)`. The protocols write
`*batch: Any`, which is how a type checker is told that any such signature will do.
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor

__all__ = ["Batch", "Bound", "Examples", "Indexing", "Likelihood", "Regions", "Source", "Stream", "Trainable"]

Batch = tuple[Tensor, ...]  # of static shapes, (B, ...) each


@runtime_checkable
class Source(Protocol):
    """Examples 0 to n - 1, of which any few make a batch: rows of a table, padded sets, windows of a text."""

    def __len__(self) -> int:
        """n."""
        ...

    def batch(self, indices: Tensor) -> Batch:
        """The examples at these places, in this order; the shapes depend on the number of indices alone."""
        ...

    def to(self, device: torch.device | str) -> Self:
        """The same examples, whose batches are on that device; indices may be on any."""
        ...

    @property
    def shapes(self) -> list[list[int]]:
        """Of each tensor of the batch of all examples, (n, ...): what a run folder says about its data."""
        ...


@runtime_checkable
class Stream(Protocol):
    """Examples in groups that are read one after another, more of them than memory holds: row groups of Parquet files.

    What is in memory at once is a window: some groups, whose examples are shuffled together.
    """

    def __len__(self) -> int:
        """Examples of all groups."""
        ...

    @property
    def sizes(self) -> Sequence[int]:
        """Examples of each group."""
        ...

    @property
    def window(self) -> int:
        """Examples of a window, about: of as many groups as that takes, but of one at least."""
        ...

    def read(self, group: int) -> Batch:
        """The examples of a group on the CPU, in the same order each time; called from other threads, too."""
        ...

    @property
    def shapes(self) -> list[list[int]]:
        """As those of a `Source`."""
        ...

    @property
    def digest(self) -> str:
        """What tells it from other data, without reading them: a run that continues must have the same."""
        ...


Examples = Source | Stream  # what training takes


@runtime_checkable
class Trainable(Protocol):
    """An `nn.Module` with these three methods, which take the batches of a `Source`.

    Noise comes from torch's global generators, which `fit` seeds, saves and restores; other generators (Python's,
    numpy's) are not saved, and a run that draws from them does not resume exactly.

    On a GPU the whole update is captured as one CUDA graph where that is possible. A model with a part for which it
    never is, such as a solver that looks at its error, may say so in two class attributes of the part,
    `capturable = False` and `not_capturable_because = "the solver looks at its error"`; its updates then run eagerly.
    """

    def loss(self, *batch: Any) -> Tensor:
        """Scalar, differentiable, the mean over the rows. With static shapes and no host sync it can be captured."""
        ...

    def nll(self, *batch: Any) -> Tensor:
        """Negative log-likelihood, or a bound on it, of every row: (B,). Called without gradients."""
        ...

    def initialize(self, *batch: Any) -> None:
        """Data-dependent initialisation, called once before the first step; a model without one does nothing here."""
        ...


class Likelihood(Protocol):
    """log P(row), exact or a lower bound, and rows ~ P: models, baselines and the models of estimators alike."""

    @property
    def exact(self) -> bool:
        """Whether `log_prob` is the value itself; else it is a lower bound."""
        ...

    def log_prob(self, *batch: Any, **options: Any) -> Tensor:
        """`log_prob(*batch, samples=None)`: nats per row, (B,).

        A bound takes so many importance samples, or as many as it likes best; an exact value needs none.
        """
        ...

    def sample(self, rows: int) -> Batch:
        """So many new rows."""
        ...


@runtime_checkable
class Bound(Likelihood, Protocol):
    """log P(row) >= E log 1/S sum_s w_s: a lower bound that shows its importance weights."""

    def chunked_log_weights(self, *batch: Any, **options: Any) -> list[Tensor]:
        """`chunked_log_weights(*batch, samples=S)`: log w for a few rows at a time, tensors (S, b)."""
        ...


@runtime_checkable
class Indexing(Protocol):
    """A module with saved tables that other tensors are indexed by: what was loaded may point anywhere."""

    def check_tables(self) -> None:
        """A ValueError, if what they say is impossible."""
        ...


class Regions(Protocol):
    """What a density of points may know about the regions of the categories that they stand for: `Cells`."""

    counts: tuple[int, ...]
    dim: int

    def quantize(self, x: Tensor) -> Tensor:
        """The code of the region that holds each point: (*batch, N, D) -> (*batch, N)."""
        ...

    def centre(self, codes: Tensor) -> Tensor:
        """A point well inside each region: (*batch, N) -> (*batch, N, D)."""
        ...
