"""Characters given those before them, exactly: a softmax over characters, or over the cells that they lie in."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella import checks
from tessella.contracts import Batch
from tessella.dequantizers import CharacterDequantizer
from tessella.models.texts.walking import Walk
from tessella.nets import CausalNet
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero
from tessella.progress import counted

CHARACTERS_AT_ONCE = {"cpu": 2**13}
CHARACTERS_AT_ONCE_ELSEWHERE = 2**17
EMBEDDED = 0.02  # size of embeddings at the start


class CausalText(nn.Module):
    """log P(c) = sum_t log softmax(W h_t + b)[c_t],  h_t = net(c_1, ..., c_(t-1)): no cells, exact. `Trainable`.

    Args:
        characters: K.
        length: of the windows that it learns, and most characters that it looks back.
        net: of the states.

    >>> from tessella.nets import AttentionConfig
    >>> model = CausalText(27, 16, AttentionConfig(width=8, layers=1).build())
    >>> round(model.log_prob(torch.zeros(1, 16, dtype=torch.uint8)).item() / 16, 4)  # -log 27: W = b = 0
    -3.2958
    """

    exact = True
    count: Tensor

    def __init__(self, characters: int, length: int, net: CausalNet):
        super().__init__()
        self.length, self.net = length, net
        self.embed = nn.Parameter(EMBEDDED * torch.randn(characters, net.width))
        self.first = nn.Parameter(EMBEDDED * torch.randn(net.width))  # the token before the first character
        self.head = zero(Linear(net.width, characters))
        self.register_buffer("count", torch.tensor(characters), persistent=False)

    def log_conditionals(self, characters: Tensor) -> Tensor:
        """log P(c_t | c_1, ..., c_(t-1)), codes (B, n) -> (B, n)."""
        codes = characters.long()
        checks.indices("characters", codes, tuple(codes.shape), self.count)
        before = torch.cat([self.first.expand(len(codes), 1, -1), self.embedded(codes[:, :-1])], 1)
        logits: Tensor = self.head(self.net(before))
        nll = functional.cross_entropy(logits.flatten(0, 1), codes.flatten(), reduction="none")
        return -nll.view_as(codes)

    def log_prob(self, characters: Tensor, samples: int | None = None) -> Tensor:
        """log P of each window in nats, exact, (B, n) -> (B). It needs no `samples`; bounds do."""
        parts = counted(characters.split(self._rows_at_once))
        return torch.cat([self.log_conditionals(part).double().sum(-1) for part in parts])

    def nll(self, characters: Tensor) -> Tensor:
        """-log P of each window."""
        return -self.log_prob(characters)

    def loss(self, characters: Tensor) -> Tensor:
        """Mean of -log P over a batch, the training objective."""
        return -self.log_conditionals(characters).sum(-1).mean()

    @torch.no_grad()
    def initialize(self, characters: Tensor) -> None:
        """Start as characters drawn one by one with the frequencies of the batch."""
        number = torch.bincount(characters.flatten().long(), minlength=int(self.count)).to(self.head.bias) + 0.5
        self.head.bias.copy_((number / number.sum()).log())

    @torch.no_grad()
    def sample(self, rows: int) -> Batch:
        """New windows: (codes,), int64 (rows, length)."""
        drawn = []
        for part in counted(torch.arange(rows).split(self._rows_at_once)):
            walk = Walk(self, len(part))
            drawn.append(torch.stack([walk.draw() for _ in range(self.length)], 1))
        return (torch.cat(drawn),)

    def embedded(self, values: Tensor) -> Tensor:
        """Codes (B, n) as tokens, (B, n, width)."""
        return functional.embedding(values, self.embed)

    def draw(self, state: Tensor, temperature: float = 1.0) -> Tensor:
        """The next character of each row, given its state (B, width): (B)."""
        return torch.multinomial((self.head(state) / temperature).softmax(-1), 1)[:, 0]

    @property
    def _rows_at_once(self) -> int:
        most = CHARACTERS_AT_ONCE.get(self.first.device.type, CHARACTERS_AT_ONCE_ELSEWHERE)
        return max(1, most // self.length)


class DisjointText(CausalText):
    """p(x) = prod_t pi_k(x_<t) q(x_t | k), k the cell of x_t: disjoint mixtures, whose weights are P of characters.

    Each conditional has one component for each cell. Its density inside the cell is the dequantizer's, so it is in p as
    in q, and the importance weight p(x) / q(x | c) = prod_t pi_(c_t)(c_<t) for every draw: the bound is the likelihood,
    and nothing has to be drawn to know it. For the likelihood the cells do nothing; they say where the points lie.

    Args:
        characters, length, net: as in `CausalText`.
        dequantizer: q, which knows the cell of a point alone.
    """

    def __init__(self, characters: int, length: int, net: CausalNet, dequantizer: CharacterDequantizer):
        super().__init__(characters, length, net)
        self.dequantizer = dequantizer.requires_grad_(False)

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) of points (B, n, D), from the points alone: (B)."""
        (codes,) = self.dequantizer.quantize(x)
        return self.log_conditionals(codes).sum(-1) + self.dequantizer.log_prob(x, codes)

    @torch.no_grad()
    def log_weights(self, characters: Tensor, samples: int) -> Tensor:
        """log p(x) / q(x | c) of `samples` draws x ~ q for each window, (S, B): log P(c), each of them."""
        repeated = characters.long().repeat(samples, 1)
        x, log_q = self.dequantizer.dequantize(repeated)
        return (self.log_density(x) - log_q).view(samples, len(characters))
