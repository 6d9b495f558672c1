"""Discrete flow: an invertible map of the rows themselves, in arithmetic modulo the number of categories."""

from collections.abc import Sequence
from math import gcd

import torch
from torch import Tensor, nn

from tessella.baselines.base import Baseline, check_at_least_one, check_positive
from tessella.nets import MLP


class DiscreteFlow(Baseline):
    """log P(c) = sum_j log P_j(f(c)_j),  f = f_L o ... o f_1 a permutation of the rows, which has no Jacobian.

    Each layer moves one half of the variables by an affine map modulo K_j that a network computes from the other half
    (see `_Layer`). P_j are categoricals with learned logits. Gradients pass through the discrete choices as if they
    were softmaxes (straight-through), so they are biased; the likelihood itself is exact. The inverse chooses again
    from the same inputs: it returns the same row unless two logits agree to within rounding. `Trainable`.

    Args:
        counts: number of categories of each variable.
        layers: L; two in a row move complementary halves.
        width: size of the two hidden layers of each network.
        temperature: of the softmaxes that stand in for the choices in the backward pass, in standard deviations of
            their logits.

    References:
        D. Tran, K. Vafa, K. K. Agrawal, L. Dinh, B. Poole, "Discrete flows: invertible generative models of discrete
        data", 2019.
    """

    layers: Sequence["_Layer"]

    def __init__(self, counts: Sequence[int], layers: int, width: int, temperature: float = 2.0):
        check_at_least_one(width=width, layers=layers)
        check_positive("temperature", temperature)
        super().__init__(counts, numbers_per_row=width + 16 * len(counts) * max(counts, default=1))
        halves = (_moving_half(len(self.counts), layer) for layer in range(layers))
        parts = [_Layer(self.counts, half, width, temperature) for half in halves]
        self.layers = nn.ModuleList(parts)  # type: ignore[assignment]  # a ModuleList forgets their type
        self.logits = nn.Parameter(torch.zeros(self.present.shape))  # of P_j, (N, K)

    def loss(self, batch: Tensor) -> Tensor:
        """Mean of -log P over a batch, the training objective."""
        return self.nll(batch).mean()

    @torch.no_grad()
    def initialize(self, batch: Tensor) -> None:
        """P_j = the marginals of f(batch): an untrained flow starts as the independent model of the batch."""
        self.logits[self.present] = self.log_frequencies(self.transform(batch)).to(self.logits)

    def transform(self, codes: Tensor) -> Tensor:
        """f(codes), (B, N)."""
        self._check("codes", codes)
        return self._push(codes)[0]

    def invert(self, codes: Tensor) -> Tensor:
        """The rows that f maps to `codes`, (B, N)."""
        self._check("codes", codes)
        for layer in reversed(self.layers):
            codes = layer.inverse(codes)
        return codes

    def _push(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """f(codes), and the same as one-hot vectors (b, N, K) that carry the gradient."""
        one_hot = self.layers[0].one_hot(codes)
        for layer in self.layers:
            codes, one_hot = layer(codes, one_hot)
        return codes, one_hot

    def _log_prob(self, codes: Tensor) -> Tensor:
        log_table = self.logits.masked_fill(~self.present, -torch.inf).log_softmax(-1)
        return (self._push(codes)[1] * log_table.masked_fill(~self.present, 0)).sum((-2, -1))

    def _sample(self, rows: int) -> Tensor:
        tables = [self.logits[j, :count].softmax(-1) for j, count in enumerate(self.counts)]
        return self.invert(torch.stack([torch.multinomial(table, rows, replacement=True) for table in tables], -1))


class _Layer(nn.Module):
    """y_j = (a_j c_j + b_j) mod K_j where j moves, y_j = c_j where it stays; a, b from a network of those that stay.

    b_j is any residue and a_j any unit, gcd(a_j, K_j) = 1, so that the map can be undone: K_j = 2 has shifts alone.
    Both are the arguments of the maximum of logits, and their softmaxes in the backward pass. Logits are standardised:
    left free, they grow until the softmaxes saturate at the identity, which is the best map for those who have not yet
    looked at the other half, and the flow never leaves the independent model.

    With one-hot vectors, y[k] = sum_(a, b) A[a] B[b] c[a^-1 (k - b)]. Its derivatives at one-hot A, B and c are
    permutations of the incoming gradient, so nothing of size K^2 is ever made.
    """

    count: Tensor
    residues: Tensor
    present: Tensor
    unit: Tensor
    inverse_of: Tensor
    moves: Tensor

    def __init__(self, counts: tuple[int, ...], moves: Tensor, width: int, temperature: float):
        super().__init__()
        n, most = len(counts), max(counts)
        self.temperature = temperature
        count, residues = torch.tensor(counts)[:, None], torch.arange(most)
        inverses = torch.tensor([_inverses(k) + [0] * (most - k) for k in counts])
        buffers = {
            "count": count,  # (N, 1)
            "residues": residues,  # (K)
            "present": residues < count,
            "unit": (torch.gcd(residues, count) == 1) & (residues < count),
            "inverse_of": inverses,
            "moves": moves[:, None],
        }
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer, persistent=False)
        self.net = MLP(n * most, 2 * n * most, width)
        with torch.no_grad():
            identity = torch.stack([residues == 1 % count, (residues == 0).expand(n, most)])  # a = 1, b = 0
            self.net.head.bias.copy_(identity.flatten())

    def forward(self, codes: Tensor, one_hot: Tensor) -> tuple[Tensor, Tensor]:
        """y, twice: as codes (b, N), and as one-hot vectors (b, N, K) that carry the gradient."""
        a, b, soft_a, soft_b = self._choose(one_hot)
        k, count = self.residues, self.count
        c = codes[..., None]
        # Multiply: the gradient of c[k] is that of y[a k], the gradient of A[a] that of y[a c].
        moved = one_hot.gather(-1, self._undo(a) * k % count)
        moved = moved.scatter_add(-1, k * c % count, soft_a - soft_a.detach())
        # Add: likewise y[c + b] for both.
        c = a * c % count
        moved = moved.gather(-1, (k - b) % count) + (soft_b - soft_b.detach()).gather(-1, (k - c) % count)
        y = torch.where(self.moves, (c + b) % count, codes[..., None]).squeeze(-1)
        return y, torch.where(self.moves, torch.where(self.present, moved, 0), one_hot)

    def inverse(self, y: Tensor) -> Tensor:
        """c_j = a_j^-1 (y_j - b_j) mod K_j, (b, N)."""
        a, b, _, _ = self._choose(self.one_hot(y))
        back = self._undo(a) * (y[..., None] - b) % self.count
        return torch.where(self.moves, back, y[..., None]).squeeze(-1)

    def one_hot(self, codes: Tensor) -> Tensor:
        """(b, N) -> (b, N, K), of the network's type."""
        return (codes[..., None] == self.residues).to(self.net.head.weight.dtype)

    def _choose(self, one_hot: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """a, b as codes (b, N, 1), then as softmaxes (b, N, K)."""
        seen = torch.where(self.moves, 0, one_hot).flatten(-2)
        logits_a, logits_b = self.net(seen).unflatten(-1, (2, *self.present.shape)).unbind(-3)
        logits_a, logits_b = _standardised(logits_a, self.unit), _standardised(logits_b, self.present)
        soft_a, soft_b = ((logits / self.temperature).softmax(-1) for logits in (logits_a, logits_b))
        return logits_a.argmax(-1, keepdim=True), logits_b.argmax(-1, keepdim=True), soft_a, soft_b

    def _undo(self, a: Tensor) -> Tensor:
        """a^-1 mod K_j, (b, N, 1)."""
        return self.inverse_of.expand(len(a), -1, -1).gather(-1, a)


def _standardised(logits: Tensor, exists: Tensor) -> Tensor:
    """(l - mean) / sqrt(variance + 0.01) over the categories that exist, -inf at the others."""
    n = exists.sum(-1, keepdim=True)
    centred = torch.where(exists, logits - torch.where(exists, logits, 0).sum(-1, keepdim=True) / n, 0)
    variance = centred.square().sum(-1, keepdim=True) / n
    return (centred * (variance + 0.01).rsqrt()).masked_fill(~exists, -torch.inf)


def _moving_half(variables: int, layer: int) -> Tensor:
    """Layers 2p and 2p + 1 split the variables by bit p of their number: any two are apart in some split. (N)."""
    bits = max(1, (variables - 1).bit_length())
    return (torch.arange(variables) >> (layer // 2 % bits)) % 2 == layer % 2


def _inverses(count: int) -> list[int]:
    """a^-1 modulo `count` for each residue a, 0 for those that have none."""
    return [pow(a, -1, count) if gcd(a, count) == 1 else 0 for a in range(count)]
