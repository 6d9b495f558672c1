"""Transformer over variables: each variable is a token."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.nets.mlp import zero


class TokenTransformer(nn.Module):
    """Tokens (*batch, N, inputs) -> (*batch, N, outputs): attention across the N variables, zero at the start.

    Every variable has an embedding of its own, since a column's place in a table means something.

    Args:
        tokens: number of variables N.
        inputs, outputs: sizes per token.
        width: size of the residual stream; heads of 32 dimensions where it divides.
        layers: number of attention + MLP blocks.
        context: size of a context token that is appended to each input token; 0 for none.
        fast: on a GPU, multiply in bfloat16 and train with fused kernels. The result stays a function of the input
            alone, so a coupling that uses it stays an exact bijection.
    """

    def __init__(
        self, tokens: int, inputs: int, outputs: int, width: int, layers: int = 2, context: int = 0, fast: bool = False
    ):
        super().__init__()
        self.fast = fast
        self.embed = nn.Linear(inputs + context, width)
        self.place = nn.Parameter(0.02 * torch.randn(tokens, width))
        self.blocks = nn.ModuleList(AttentionBlock(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = zero(nn.Linear(width, outputs))

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        """(*batch, N, inputs), (*batch, N, context) -> (*batch, N, outputs)."""
        fast = self.fast and x.is_cuda
        fused = fast and self.training and torch.is_grad_enabled()
        with torch.autocast(x.device.type, torch.bfloat16, enabled=fast, cache_enabled=False):
            h = self.embed(x if context is None else torch.cat([x, context], -1)) + self.place
            return self.head(self.norm(through(self.blocks, h, None, fused))).to(x.dtype)


class AttentionBlock(nn.Module):
    """h + attention(norm h), then h + mlp(norm h).

    Args:
        width: size of the residual stream; heads of 32 dimensions where it divides.
        expansion: width of the MLP's hidden layer, in units of `width`.
        dropout: share of what each half adds that is left out in training.
    """

    def __init__(self, width: int, expansion: int = 2, dropout: float = 0.0):
        super().__init__()
        self.heads = width // 32 if width % 32 == 0 else 1
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, expansion * width), nn.SiLU(), nn.Linear(expansion * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """(*batch, n, width); mask (n, n): whether token i (row) attends to j; causal: each to those up to itself."""
        q, k, v = self._heads(h)
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self._added(h, attended)

    def after(self, h: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One more token, which attends to those before and to itself: its h, and keys and values of them all.

        Args:
            h: the token, (*batch, 1, width).
            keys, values: of the m tokens before, (*batch, heads, m, size); with m = 0 at the start.
        """
        q, k, v = self._heads(h)
        keys, values = torch.cat([keys.to(k.dtype), k], -2), torch.cat([values.to(v.dtype), v], -2)
        attended = functional.scaled_dot_product_attention(q, keys, values)
        return self._added(h, attended), keys, values

    def _heads(self, h: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (*batch, heads, n, size) each."""
        parts = self.query_key_value(self.before_attention(h)).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        return tuple(part.transpose(-3, -2) for part in parts)

    def _added(self, h: Tensor, attended: Tensor) -> Tensor:
        h = h + self.dropout(self.mix(attended.transpose(-3, -2).flatten(-2)))
        return h + self.dropout(self.mlp(self.before_mlp(h)))


def through(blocks: nn.ModuleList, h: Tensor, mask: Tensor | None, fused: bool) -> Tensor:
    """The tokens after all blocks; fused: in compiled kernels, for calls that always have the same shape."""
    for block in blocks:
        h = _fused(block, h, mask) if fused else block(h, mask)
    return h


@torch.compile(dynamic=False)
def _fused(block: nn.Module, h: Tensor, mask: Tensor | None) -> Tensor:
    """One compilation serves all blocks of a size."""
    return block(h, mask)
