"""Which examples of a stream make which batch: a pure function of (seed, step), of which a window is in memory."""

from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from tessella.contracts import Batch, Stream
from tessella.training.randomness import derived_seed


class WindowBatches:
    """Batch t = order_e[i b : (i + 1) b], t = e m + i: examples in the order of epoch e, of which each batch is a part.

    The groups are dealt to the processes once. In every epoch a process shuffles its groups, cuts them into windows of
    about `stream.window` examples, and shuffles the examples of each window; a batch may begin in one window and end in
    the next. So step t says everything: a run that is resumed reads one window and goes on, bit by bit. While batches
    are taken from a window, a thread reads the next.

    Those left over after the last full batch of an epoch are dropped; m is as many as the process with the fewest
    examples has.

    Args:
        stream: of the training examples.
        batch_size: over all processes; b = batch_size / processes.
        seed: of the orders.
        rank: which process this is.
        processes: how many there are.
        device: where batches are wanted; windows are there, too.
    """

    def __init__(
        self,
        stream: Stream,
        batch_size: int,
        seed: int,
        rank: int = 0,
        processes: int = 1,
        device: torch.device | str = "cpu",
    ):
        dealt = deal(stream.sizes, processes, seed)
        fewest = min(sum(stream.sizes[group] for group in groups) for groups in dealt)
        self.stream, self.seed, self.device, self.groups = stream, seed, device, dealt[rank]
        self.share = min(batch_size // processes, fewest)
        if self.share == 0:
            raise ValueError(
                f"train: got {len(stream):,} rows in {len(stream.sizes)} row groups; expected at least one group with "
                f"rows for each of {processes} processes: write smaller row groups"
            )
        self.size, self.per_epoch = self.share * processes, fewest // self.share
        self._here: tuple[tuple[int, int], Batch] | None = None
        self._next: tuple[tuple[int, int], Future[Batch]] | None = None
        self._reader = ThreadPoolExecutor(1, "windows")
        self._cuts: dict[int, tuple[list[list[int]], list[int]]] = {}

    def __call__(self, step: int) -> Batch:
        """This process's slice of the batch of update `step`, (b, ...) each."""
        epoch, index = divmod(step, self.per_epoch)
        _, starts = self._cut(epoch)
        first, end, parts = index * self.share, (index + 1) * self.share, list[Batch]()
        while first < end:
            window = bisect_right(starts, first) - 1
            start, stop = starts[window], min(end, starts[window + 1])
            parts.append(tuple(tensor[first - start : stop - start] for tensor in self._at(epoch, window)))
            first = stop
        return parts[0] if len(parts) == 1 else tuple(map(torch.cat, zip(*parts, strict=True)))

    def _cut(self, epoch: int) -> tuple[list[list[int]], list[int]]:
        """The windows of an epoch, and where in its order each begins."""
        if epoch in self._cuts:
            return self._cuts[epoch]
        order = _permutation(derived_seed(self.seed, "groups", epoch), len(self.groups)).tolist()
        found = windows([self.groups[place] for place in order], self.stream.sizes, self.stream.window)
        rows = (sum(self.stream.sizes[group] for group in window) for window in found)
        self._cuts = {old: cut for old, cut in self._cuts.items() if old == epoch - 1}
        return self._cuts.setdefault(epoch, (found, list(accumulate(rows, initial=0))))

    def _at(self, epoch: int, window: int) -> Batch:
        """A window, on the device; from its second use on the one after it is being read."""
        here = epoch, window
        if self._here is not None and self._here[0] == here:
            if self._next is None:
                after = (epoch, window + 1) if window + 1 < len(self._cut(epoch)[0]) else (epoch + 1, 0)
                self._next = after, self._reader.submit(self._read, *after)
            return self._here[1]
        self._here = None  # before the next one takes room
        found = self._next[1].result() if self._next and self._next[0] == here else self._read(*here)
        self._next = None
        self._here = here, tuple(tensor.to(self.device) for tensor in found)
        return self._here[1]

    def _read(self, epoch: int, window: int) -> Batch:
        """The groups of a window, their examples shuffled: each goes to its place as it comes."""
        groups = self._cut(epoch)[0][window]
        sizes = [self.stream.sizes[group] for group in groups]
        place = _permutation(derived_seed(self.seed, f"window {window}", epoch), sum(sizes))
        found: Batch = ()
        for group, (first, end) in zip(groups, pairwise(accumulate(sizes, initial=0)), strict=True):
            rows = self.stream.read(group)
            found = found or tuple(part.new_empty(sum(sizes), *part.shape[1:]) for part in rows)
            for whole, part in zip(found, rows, strict=True):
                if len(part) != end - first:
                    raise ValueError(
                        f"row group {group}: got {len(part):,} rows for training; expected {end - first:,}, as before: "
                        "the files have changed"
                    )
                whole[place[first:end]] = part
        return found


def deal(sizes: Sequence[int], processes: int, seed: int) -> list[list[int]]:
    """The groups of each process: in a random order, each to the process that has the fewest rows so far.

    >>> deal([10, 10, 10, 30], processes=2, seed=0)
    [[3], [0, 1, 2]]
    """
    dealt, rows = [list[int]() for _ in range(processes)], [0] * processes
    order = _permutation(derived_seed(seed, "deal"), len(sizes))
    for group in sorted(order.tolist(), key=lambda group: -sizes[group]):
        if sizes[group]:
            one = rows.index(min(rows))
            dealt[one].append(group)
            rows[one] += sizes[group]
    return [sorted(groups) for groups in dealt]


def windows(groups: Sequence[int], sizes: Sequence[int], most: int) -> list[list[int]]:
    """Neighbouring groups together, so that windows have about as many rows as each other, `most` or a little more.

    >>> windows([0, 1, 2, 3], sizes=[5, 5, 5, 5], most=10)
    [[0, 1], [2, 3]]
    """
    total = sum(sizes[group] for group in groups)
    size = total / max(1, -(-total // most))
    found: dict[int, list[int]] = {}
    before = 0
    for group in groups:
        found.setdefault(int((before + sizes[group] / 2) // size), []).append(group)
        before += sizes[group]
    return list(found.values())


def _permutation(seed: int, number: int) -> Tensor:
    return torch.randperm(number, generator=torch.Generator().manual_seed(seed))
