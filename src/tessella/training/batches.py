"""Which rows make which batch: a pure function of (seed, step)."""

import torch
from torch import Tensor

from tessella.training.randomness import derived_seed


class Batches:
    """Batch t = rows[pi_e(i B + r b + j)], 0 <= j < b, with t = e (rows // B) + i and b = B / processes.

    pi_e is a permutation of all rows drawn for epoch e from its own generator. Rows left over after the last full batch
    of an epoch are dropped; since pi_e changes, every row is as likely as every other. A table smaller than the batch
    size is one batch (short of rows % processes of its rows, when it cannot be shared evenly).

    Args:
        rows: the training table, on the device where batches are wanted, (rows, ...).
        batch_size: B, over all processes.
        seed: of the permutations.
        rank: r, which slice of the global batch this process takes.
        processes: number of slices.

    >>> batches = Batches(torch.arange(5), batch_size=2, seed=0)
    >>> len(set(batches(0).tolist() + batches(1).tolist()))
    4
    """

    def __init__(self, rows: Tensor, batch_size: int, seed: int, rank: int = 0, processes: int = 1):
        self.rows, self.seed, self.rank = rows, seed, rank
        self.share = min(batch_size, len(rows)) // processes
        if self.share == 0:
            raise ValueError(f"train: got {len(rows)} rows; expected at least one for each of {processes} processes")
        self.size = self.share * processes
        self.per_epoch = len(rows) // self.size
        self._epoch, self._order = -1, torch.empty(0)

    def __call__(self, step: int) -> Tensor:
        """This process's rows of update `step`, (b, ...)."""
        epoch, index = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", epoch))
            self._epoch, self._order = epoch, torch.randperm(len(self.rows), generator=generator).to(self.rows.device)
        start = index * self.size + self.rank * self.share
        return self.rows.index_select(0, self._order[start : start + self.share])
