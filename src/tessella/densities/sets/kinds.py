"""Kinds of sets: how likely each item is in each of them."""

from math import log

import torch
from torch import Tensor, nn

from tessella import checks

SPREAD = 1.0  # of the kinds' logits around the items' frequencies, before training
RATE = 10.0  # what is learned is a tenth of what is meant: steps of Adam are ten times those of networks around it


class KindsOfSets(nn.Module):
    """log w_m(k) = log f_k + b_k + a_m . d_k - normaliser: M kinds of sets, whose items differ in a few dimensions.

    f are the items' frequencies. What is learned beyond them is of low rank, so that rare items share what is known of
    others, and has a prior: a and d are normal around 0.

    Args:
        items: K.
        components: M.
        rank: of a_m and d_k.
        prior: the penalty is prior (|a|^2 + |d|^2) / n for n training sets; 0 for none.
    """

    log_share: Tensor
    sets: Tensor

    def __init__(self, items: int, components: int, rank: int, prior: float):
        super().__init__()
        for name, value in (("components", components), ("rank", rank)):
            if value < 1:
                raise ValueError(f"{name}: got {value}; expected at least 1")
        if not prior >= 0:
            raise ValueError(f"prior: got {prior}; expected 0 or more")
        self.prior = prior
        self.register_buffer("log_share", torch.full((items,), -log(items)))
        self.register_buffer("sets", torch.ones(()))
        self.log_component = nn.Parameter(torch.zeros(components))
        self.component = nn.Parameter(torch.randn(components, rank) / RATE)
        self.item = nn.Parameter(SPREAD / rank**0.5 * torch.randn(rank, items) / RATE)
        self.bias = nn.Parameter(torch.zeros(items))

    @property
    def log_weight(self) -> Tensor:
        """log w, (M, K), each row normalised."""
        return (self.log_share + RATE * self.bias + RATE**2 * self.component @ self.item).log_softmax(1)

    @property
    def log_kind(self) -> Tensor:
        """log of how frequent each kind is, (M)."""
        return (RATE * self.log_component).log_softmax(0)

    def penalty(self) -> Tensor:
        """-log prior of what is learned beyond frequencies, in nats per training set."""
        return self.prior * RATE**2 * (self.component.square().sum() + self.item.square().sum()) / self.sets

    @torch.no_grad()
    def start(self, log_share: Tensor, sets: int) -> None:
        """Begin with items of these frequencies (K), in so many training sets."""
        if log_share.shape != self.log_share.shape:
            raise ValueError(f"log_share: got shape {tuple(log_share.shape)}; expected {tuple(self.log_share.shape)}")
        checks.finite("log_share", log_share)
        self.log_share.copy_(log_share)
        self.sets.fill_(sets)

    def draw(self, sets: int) -> Tensor:
        """Kinds of so many sets, (sets,)."""
        return torch.multinomial(self.log_kind.exp(), sets, replacement=True)
