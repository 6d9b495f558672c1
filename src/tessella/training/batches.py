"""Which examples make which batch: a pure function of (seed, step)."""

import torch
from torch import Tensor

from tessella.contracts import Batch, Examples, Source, Stream
from tessella.training.randomness import derived_seed
from tessella.training.windows import WindowBatches


class Batches:
    """Batch t = source[pi_e(i B + r b + j)], 0 <= j < b, with t = e (n // B) + i, n = len(source), b = B / processes.

    pi_e is a permutation of all examples drawn for epoch e from its own generator. Those left over after the last full
    batch of an epoch are dropped; since pi_e changes, each is as likely as every other. A source smaller than the batch
    size is one batch (short of n % processes of its examples, when it cannot be shared evenly).

    Args:
        source: of the training examples, on the device where batches are wanted.
        batch_size: B, over all processes.
        seed: of the permutations.
        rank: r, which slice of the global batch this process takes.
        processes: number of slices.
        device: that of the source, where indices wait for their turn.

    >>> from tessella.data import Rows
    >>> batches = Batches(Rows(torch.arange(5)), batch_size=2, seed=0)
    >>> len({*batches(0)[0].tolist(), *batches(1)[0].tolist()})
    4
    """

    def __init__(
        self,
        source: Source,
        batch_size: int,
        seed: int,
        rank: int = 0,
        processes: int = 1,
        device: torch.device | str = "cpu",
    ):
        self.source, self.seed, self.rank, self.device = source, seed, rank, device
        self.share = min(batch_size, len(source)) // processes
        if self.share == 0:
            raise ValueError(f"train: got {len(source)} rows; expected at least one for each of {processes} processes")
        self.size = self.share * processes
        self.per_epoch = len(source) // self.size
        self._epoch, self._order = -1, torch.empty(0)

    def __call__(self, step: int) -> Batch:
        """This process's slice of the batch of update `step`, (b, ...) each."""
        epoch, index = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", epoch))
            self._epoch, self._order = epoch, torch.randperm(len(self.source), generator=generator).to(self.device)
        start = index * self.size + self.rank * self.share
        return self.source.batch(self._order[start : start + self.share])


def batches_of(
    examples: Examples, batch_size: int, seed: int, rank: int, processes: int, device: torch.device
) -> Batches | WindowBatches:
    """The batches of a source that is on the device, or of a stream."""
    if isinstance(examples, Stream):
        return WindowBatches(examples, batch_size, seed, rank, processes, device)
    return Batches(examples, batch_size, seed, rank, processes, device)


def placed(examples: Examples, device: torch.device) -> Examples:
    """The same examples: a source on the device as a whole, a stream where it is."""
    return examples if isinstance(examples, Stream) else examples.to(device)


def check_examples(name: str, examples: object) -> None:
    """`examples` are a source or a stream, and there is one."""
    if not isinstance(examples, Stream):
        check_source(name, examples)
    elif len(examples) == 0:
        raise ValueError(f"{name}: got an empty {type(examples).__name__}; expected at least one row")


def check_source(name: str, source: object) -> None:
    """`source` is one, and has an example; tensors must say what their rows are."""
    if isinstance(source, Tensor):
        raise TypeError(
            f"{name}: got a tensor of shape {tuple(source.shape)}; expected a source of batches: "
            "Rows(tensor), from tessella.data"
        )
    if not isinstance(source, Source):
        raise TypeError(f"{name}: got {type(source).__name__}; expected a source, with len, batch, to and shapes")
    if len(source) == 0:
        raise ValueError(f"{name}: got an empty {type(source).__name__}; expected at least one row")
