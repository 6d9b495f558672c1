"""Networks over long sequences, in which a state depends on the tokens up to its own: attention, or an LSTM."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tessella.configs import Choice
from tessella.nets.attention import AttentionBlock, Kept, Stack
from tessella.nets.linear import Linear

EXPANSION = 4  # of the hidden layers


class Steps(ABC):
    """The states of a `CausalNet`, one token after another: what it knows of those before is kept."""

    @abstractmethod
    def step(self, tokens: Tensor) -> Tensor:
        """The next token of each row -> its state, (B, width) each."""


class CausalNet(nn.Module, ABC):
    """h_t = net(v_1, ..., v_t): tokens (B, n, width) -> states (B, n, width)."""

    width: int

    @abstractmethod
    def forward(self, tokens: Tensor) -> Tensor:
        """All states at once."""

    @abstractmethod
    def steps(self, rows: int, tokens: int) -> Steps:
        """The same one after another, for so many rows and at most so many tokens; no gradients."""

    @property
    @abstractmethod
    def forgets(self) -> bool:
        """Whether `steps` can go on for ever; if not, somebody must begin again with the last few tokens."""


class CausalAttention(CausalNet):
    """h = norm blocks(v), attention among the tokens up to one's own, which know their distances (`rotated`).

    Args:
        width: size of the residual stream.
        layers: number of attention + MLP blocks.
        head: dimensions of a head, where they divide the width.
        dropout: share of what each block adds that is left out in training.
        fast: see `Transformer`.

    >>> net = CausalAttention(width=16, layers=2).eval()
    >>> v = torch.randn(3, 5, 16)
    >>> steps = net.steps(rows=3, tokens=5)
    >>> torch.allclose(torch.stack([steps.step(v[:, t]) for t in range(5)], 1), net(v), atol=1e-5)
    True
    """

    forgets = False

    def __init__(self, width: int, layers: int, head: int = 64, dropout: float = 0.0, fast: bool = False):
        super().__init__()
        self.width = width
        blocks = (AttentionBlock(width, EXPANSION, dropout, activation="gelu", head=head) for _ in range(layers))
        self.blocks = Stack(blocks, causal=True, fast=fast, rotary=True)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        states: Tensor = self.norm(self.blocks(tokens))
        return states.to(tokens.dtype)

    def steps(self, rows: int, tokens: int) -> Steps:
        return _AttentionSteps(self, rows, tokens)


class _AttentionSteps(Steps):
    def __init__(self, net: CausalAttention, rows: int, tokens: int):
        self.net, self.kept = net, Kept(net.blocks, tokens, rows)

    def step(self, tokens: Tensor) -> Tensor:
        state: Tensor = self.net.norm(self.net.blocks.after(tokens, self.kept))
        return state.to(tokens.dtype)


class CausalLSTM(CausalNet):
    """h = norm lstm(v), layers of long short-term memory: each state takes the same time, however long the text.

    Args:
        width: of tokens and states.
        hidden: of the memory.
        layers: stacked.
        fast: on a GPU, multiply in bfloat16.

    References:
        S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997.
    """

    forgets = True

    def __init__(self, width: int, hidden: int, layers: int, fast: bool = False):
        super().__init__()
        self.width, self.fast = width, fast
        self.lstm = nn.LSTM(width, hidden, layers, batch_first=True)
        self.out = Linear(hidden, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.remember(tokens)[0]

    def remember(
        self, tokens: Tensor, memory: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """States, and the memory after the last token."""
        fast = self.fast and tokens.is_cuda
        with torch.autocast(tokens.device.type, torch.bfloat16, enabled=fast, cache_enabled=False):
            hidden, memory = self.lstm(tokens, memory)
            states: Tensor = self.norm(self.out(hidden))
        return states.to(tokens.dtype), memory

    def steps(self, rows: int, tokens: int) -> Steps:
        return _LSTMSteps(self)


class _LSTMSteps(Steps):
    def __init__(self, net: CausalLSTM):
        self.net = net
        self.memory: tuple[Tensor, Tensor] | None = None

    @torch.no_grad()
    def step(self, tokens: Tensor) -> Tensor:
        states, self.memory = self.net.remember(tokens[:, None], self.memory)
        return states[:, 0]


class CausalNetConfig(Choice, ABC):
    """What is chosen about a network over characters."""

    width: int

    @abstractmethod
    def build(self) -> CausalNet:
        """The network."""


@dataclass(frozen=True)
class AttentionConfig(CausalNetConfig, kind="transformer"):
    """`CausalAttention`."""

    width: int = 512
    """Of the residual stream."""
    layers: int = 8
    """Attention + MLP blocks."""
    head: int = 64
    """Dimensions of a head of attention."""
    dropout: float = 0.0
    """Share that is left out in training."""
    fast: bool = True
    """On a GPU, multiply in bfloat16 and train with fused kernels."""

    def build(self) -> CausalAttention:
        return CausalAttention(self.width, self.layers, self.head, self.dropout, self.fast)


@dataclass(frozen=True)
class LSTMConfig(CausalNetConfig, kind="lstm"):
    """`CausalLSTM`."""

    width: int = 512
    """Of tokens and states."""
    hidden: int = 1536
    """Of the memory."""
    layers: int = 1
    """Stacked."""
    fast: bool = True
    """On a GPU, multiply in bfloat16."""

    def build(self) -> CausalLSTM:
        return CausalLSTM(self.width, self.hidden, self.layers, self.fast)
