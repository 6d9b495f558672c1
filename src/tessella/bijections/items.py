"""Maps of sets: the same for every item, whatever the order, looking at all of them."""

import torch
from torch import Tensor, nn

from tessella.bijections.base import Bijection


class Items(Bijection):
    """y_j = f(x_j; all items), ladj = sum_j ladj_j, over the items that exist; others stay where they are.

    Points are (n, D), a set of n items. Permuted as its items are, if f is: a map of points (D,) that is the same for
    all, or a coupling of their coordinates whose network is attention without positions.

    The context of a set is (*batch, n, 1 + C): 1 where an item exists, 0 where not, then what is known of it. None: all
    exist, and nothing is known.

    Args:
        inner: of event_dim 1, given (*batch, n, D): points that are each other's batch.

    >>> from tessella.bijections import LinearLU
    >>> exists = torch.tensor([[[1.0], [0.0]]])
    >>> Items(LinearLU(3)).forward_and_ladj(torch.ones(1, 2, 3), exists)[1]
    tensor([0.], grad_fn=<SumBackward1>)
    """

    event_dim = 2

    def __init__(self, inner: Bijection):
        super().__init__()
        if inner.event_dim != 1:
            raise ValueError(f"inner: got event_dim {inner.event_dim}; expected 1, a map of each item's point")
        self.inner = inner

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return _existing(x, *self.inner.forward_and_ladj(x, context), context)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return _existing(y, *self.inner.inverse_and_ladj(y, context), context)


class ItemNetwork(nn.Module):
    """net(x, known, mask): a transformer without positions, told what the context of a set says.

    Args:
        net: (x, context, mask) -> (*batch, n, outputs), permuted as its inputs are.
    """

    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """(*batch, n, inputs) -> (*batch, n, outputs)."""
        known = mask = None
        if context is not None:
            known, mask = context[..., 1:] if context.shape[-1] > 1 else None, context[..., 0] > 0
        out: Tensor = self.net(x, known, mask)
        return out


def _existing(x: Tensor, y: Tensor, ladj: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
    if context is None:
        return y, ladj.sum(-1)
    exists = context[..., 0] > 0
    return torch.where(exists[..., None], y, x), torch.where(exists, ladj, 0).sum(-1)
