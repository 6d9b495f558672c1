"""How much a value surprises beyond expectation, where some values of a column have masses and others a density."""

import torch
from torch import Tensor

LEAST = 1e-30  # of probabilities that are divided by


def excess(log_prob: Tensor, table: Tensor, part: Tensor, inside: Tensor, dense: Tensor) -> Tensor:
    """-log p(v) - E[-log p], masses and the density each with an expectation of its own: (B), in nats.

    A column is c, the part of the line where it has a density, or one of its masses: categories, atoms, missing. So

        -log P(c or mass) - H(c or mass)  -  [v in c] (log p(v | c) + E[-log p(. | c)])

    which is the same in all units, and a missing value is neither ordinary nor odd for want of a density. Expectations
    take what is inside a part for uniform, so that on average over rows of the model it is 0, or less by what is known
    inside the parts.

    Args:
        log_prob: log p of the values, (B).
        table: log P of every part, (B, K).
        part: of the values, (B).
        inside: E[log p(. | part)] of every part if that is uniform, 0 for masses of one value, (K).
        dense: whether a part has a density, (K).

    >>> table = torch.tensor([[0.5, 0.25, 0.25]]).log()  # missing, or between 0 and 1000, or from there to 2000
    >>> inside, dense = -torch.tensor([1.0, 1000.0, 1000.0]).log(), torch.tensor([False, True, True])
    >>> excess(table[:, 0], table, torch.tensor([0]), inside, dense)
    tensor([0.])
    >>> excess(table[:, 1] + inside[1], table, torch.tensor([1]), inside, dense)
    tensor([0.])
    """
    share = torch.special.entr(table.exp()) - table.exp() * inside
    mass = torch.where(dense, table, -torch.inf).logsumexp(-1)  # log P(c)
    expected = torch.where(dense, 0, share).sum(-1) + torch.special.entr(mass.exp())
    within = torch.where(dense, share, 0).sum(-1) / mass.exp().clamp_min(LEAST) + mass
    found: Tensor = -log_prob - expected - torch.where(dense[part], within, 0)
    return found
