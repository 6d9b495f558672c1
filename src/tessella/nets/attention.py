"""Attention between tokens, the block around it, and stacks of blocks."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessella.nets.linear import Linear, linear

Attention = Literal["dot", "l2"]
Activation = Literal["silu", "gelu"]


def l2_attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
    """y_i = sum_j softmax_j(-|q_i - k_j|^2 / sqrt(d)) v_j.

    The softmax over j ignores |q_i|^2. What is left, (2 q_i . k_j - |k_j|^2) / sqrt(d), is the dot product of
    [2 q_i, -1] and [k_j, |k_j|^2], so all kernels for dot products serve.

    Args:
        q, k, v: (*batch, n, d), (*batch, m, d) and (*batch, m, size).
        attn_mask, is_causal: as in torch's `scaled_dot_product_attention`.

    References:
        H. Kim, G. Papamakarios, A. Mnih, "The Lipschitz constant of self-attention", 2021.

    >>> x = torch.tensor([[0.0], [1.0], [9.0]])
    >>> l2_attention(x, x, x)  # who is far away looks at himself, and nobody looks at him
    tensor([[0.2689],
            [0.7311],
            [9.0000]])
    """
    queries = torch.cat([2 * q, -torch.ones_like(q[..., :1])], -1)
    keys = torch.cat([k, k.square().sum(-1, keepdim=True)], -1)
    return functional.scaled_dot_product_attention(
        queries, keys, v, attn_mask=attn_mask, is_causal=is_causal, scale=q.shape[-1] ** -0.5
    )


@torch.library.custom_op("tessella::turns", mutates_args=())
def turns(places: Tensor, half: int) -> Tensor:
    """cos and sin of the angles place / 10000^(i / half), i < half: (n,) -> (2, n, half).

    An operator of its own, which a compiler leaves alone: written out, it would be computed again for every head of
    every row.
    """
    speed = LONGEST_TURN ** (-torch.arange(half, device=places.device, dtype=places.dtype) / half)
    angle = places[:, None] * speed
    return torch.stack([angle.cos(), angle.sin()])


@turns.register_fake
def _(places: Tensor, half: int) -> Tensor:
    return places.new_empty(2, len(places), half)


def rotated(x: Tensor, turn: Tensor) -> Tensor:
    """Pairs (x_i, x_(i + d/2)) turned by the angles of their places: products then depend on distances alone.

    Args:
        x: queries or keys, (*batch, n, d), d even.
        turn: of their n places, `turns(places, d / 2)`.

    References:
        J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021.

    >>> q, k = torch.randn(2, 1, 8).expand(2, 9, 8)
    >>> turn = turns(torch.arange(9.0), 4)
    >>> products = rotated(q, turn) @ rotated(k, turn).T
    >>> torch.allclose(products[3, 1], products[8, 6], atol=1e-5)
    True
    """
    cos, sin = turn
    first, second = x.to(turn.dtype).chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1).to(x.dtype)


LONGEST_TURN = 10_000.0
ATTENTIONS: dict[str, Callable[..., Tensor]] = {"dot": functional.scaled_dot_product_attention, "l2": l2_attention}
ACTIVATIONS: dict[str, type[nn.Module]] = {"silu": nn.SiLU, "gelu": nn.GELU}


class AttentionBlock(nn.Module):
    """h + attention(norm h), then h + mlp(norm h).

    Args:
        width: size of the residual stream.
        expansion: width of the MLP's hidden layer, in units of `width`.
        dropout: share of what each half adds that is left out in training.
        attention: logits q_i . k_j / sqrt(d), "dot", or -|q_i - k_j|^2 / sqrt(d) with q = k, "l2". Kim et al. bound the
            Lipschitz constant of the second where values are also multiplied by W_K W_K' / sqrt(d). Here they are not,
            and no bound is claimed.
        activation: of the MLP.
        head: dimensions of a head where they divide the width, which else has one head.
    """

    def __init__(
        self,
        width: int,
        expansion: int = 2,
        dropout: float = 0.0,
        attention: Attention = "dot",
        activation: Activation = "silu",
        head: int = 32,
    ):
        super().__init__()
        if attention not in ATTENTIONS:
            raise ValueError(f"attention: got {attention!r}; expected one of {', '.join(ATTENTIONS)}")
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation: got {activation!r}; expected one of {', '.join(ACTIVATIONS)}")
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout: got {dropout}; expected 0 <= dropout < 1")
        self.heads = width // head if width % head == 0 else 1
        self.size = width // self.heads
        self.attend, self.l2 = ATTENTIONS[attention], attention == "l2"
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = Linear(width, (2 if self.l2 else 3) * width)  # l2: the query is the key
        self.mix = Linear(width, width)
        hidden = expansion * width
        self.mlp = nn.Sequential(Linear(width, hidden), ACTIVATIONS[activation](), Linear(hidden, width))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, h: Tensor, mask: Tensor | None = None, causal: bool = False, turn: Tensor | None = None
    ) -> Tensor:
        """(*batch, n, width) -> the same.

        Args:
            h: tokens.
            mask: whether token i (row) attends to j, (*batch, 1, n, n) or (n, n); all to all if None.
            causal: each token attends to those up to itself; instead of a mask.
            turn: by which queries and keys are `rotated`, so that tokens know their distances.
        """
        q, k, v = self._heads(h, turn)
        attended = self.attend(q, k, v, attn_mask=mask, is_causal=causal)
        return self._added(h, attended.transpose(-3, -2).flatten(-2))

    def after(self, h: Tensor, kept: Tensor, products: Tensor, turn: Tensor | None = None) -> Tensor:
        """One more token of each row, which attends to those before and to itself, (B, width) -> the same.

        A single query leaves nothing to multiply matrices with: rows come last, and sums over products of short
        vectors run over many rows at once.

        Args:
            h: the tokens.
            kept: keys and values of m tokens, (m, 2, heads, size, B); those of the last, this one, are put in.
            products: room for as many numbers as there are keys.
            turn: of its place.
        """
        q = self.keep(h, kept[-1], turn)
        k, v = kept.unbind(1)  # (m, heads, size, B)
        logits = torch.mul(k, 2 * q - k if self.l2 else q, out=products).sum(2)
        weights = logits.mul_(q.shape[1] ** -0.5).softmax(0)
        attended = torch.mul(v, weights[:, :, None], out=products).sum(0)
        return self._added(h, attended.flatten(0, 1).T)

    def keep(self, h: Tensor, kept: Tensor, turn: Tensor | None = None) -> Tensor:
        """Put keys and values of tokens (B, width) into (2, heads, size, B); queries, (heads, size, B)."""
        layer = self.query_key_value
        parts = linear(layer.weight, self.before_attention(h)).add_(layer.bias[:, None])
        parts = parts.view(-1, *kept.shape[1:3], len(h))
        if turn is not None:
            turned = rotated(parts[:-1].mT.flatten(1, 2)[:, :, None], turn)[:, :, 0]  # all but the values
            parts = torch.cat([turned.unflatten(1, (-1, len(h))).mT, parts[-1:]])
        kept.copy_(parts[-2:])
        return parts[0]

    def _heads(self, h: Tensor, turn: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (*batch, heads, n, size) each."""
        parts = self.query_key_value(self.before_attention(h)).unflatten(-1, (-1, self.heads, self.size)).unbind(-3)
        *query, key, value = (part.transpose(-3, -2) for part in parts)
        if turn is not None:
            *query, key = (rotated(part, turn) for part in (*query, key))
        return (query[0] if query else key), key, value

    def _added(self, h: Tensor, attended: Tensor) -> Tensor:
        h = h + self.dropout(self.mix(attended))
        out: Tensor = h + self.dropout(self.mlp(self.before_mlp(h)))
        return out


class Kept:
    """Keys and values of tokens that pass a stack one after another, and room to multiply them.

    Memory that is used again is faster than new memory, which the system must clear first.

    Args:
        stack: of the blocks.
        tokens: at most so many.
        rows: B.
    """

    def __init__(self, stack: "Stack", tokens: int, rows: int):
        self.stack, self.most, self.rows, self.tokens = stack, tokens, rows, 0
        sizes = [(block.heads, block.size, rows) for block in stack]
        like = next(stack.parameters())
        self.blocks = [like.new_empty(tokens, 2, *size) for size in sizes]
        self.products = like.new_empty(tokens, *sizes[0])

    def branch(self, parent: Tensor, room: "Kept | None" = None) -> "Kept":
        """The same for n rows, of which row i goes on as row parent_i did: (n).

        Args:
            parent: which rows.
            room: where to put it, if it has so many rows; what is kept there is lost.
        """
        grown = Kept(self.stack, self.most, len(parent)) if room is None or room.rows != len(parent) else room
        grown.tokens = self.tokens
        for old, new in zip(self.blocks, grown.blocks, strict=True):
            before, after = (block[: self.tokens].flatten(0, -2) for block in (old, new))  # views
            torch.index_select(before, 1, parent, out=after)  # much faster in tables than in more dimensions
        return grown


class Stack(nn.ModuleList):
    """h -> block_L( ... block_1(h)).

    Args:
        blocks: of one width, each an `AttentionBlock`.
        causal: each token attends to those up to itself.
        fast: on a GPU, multiply in bfloat16 and train with fused kernels.
        rotary: tokens know their distances (`rotated`).
    """

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[AttentionBlock]: ...

    def __init__(
        self, blocks: Iterable[AttentionBlock], causal: bool = False, fast: bool = False, rotary: bool = False
    ):
        super().__init__(blocks)
        self.causal, self.fast, self.rotary = causal, fast, rotary
        self.head = next((block.size for block in self), 0)
        if rotary and self.head % 2:
            raise ValueError(f"rotary: got heads of {self.head} dimensions; expected an even number")

    def forward(self, h: Tensor, mask: Tensor | None = None) -> Tensor:
        """(*batch, n, width) -> the same; mask (*batch, n): which tokens exist, all of them if None."""
        attends = None if mask is None else _attends(mask, self.causal)
        causal = self.causal and mask is None
        turn = self._turn(h, 0, h.shape[-2])
        training = self.training and torch.is_grad_enabled()
        fused = self._is_fast(h) and training and not torch.compiler.is_compiling()  # by somebody, with all around it
        with self.precision(h):
            for block in self:
                h = _fused()(block, h, attends, causal, turn) if fused else block(h, attends, causal, turn)
        return h

    @torch.no_grad()
    def after(self, h: Tensor, kept: Kept, asked: bool = True) -> Tensor:
        """One more token after those of the calls before, as a causal `forward` makes it of them all, (B, width).

        No gradients: what is kept is written in place.

        Args:
            h: the tokens, (B, width).
            kept: keys and values of the tokens before; those of this one are added.
            asked: whether anybody asks for what becomes of it. If not, the last block only keeps it.
        """
        turn = self._turn(h, kept.tokens, kept.tokens + 1)
        kept.tokens += 1
        upto = slice(0, kept.tokens)
        with self.precision(h):
            for i, (block, own) in enumerate(zip(self, kept.blocks, strict=True), 1):
                if asked or i < len(self):
                    h = block.after(h, own[upto], kept.products[upto], turn)
                else:
                    block.keep(h, own[kept.tokens - 1], turn)
        return h

    def precision(self, h: Tensor) -> torch.autocast:
        """In which blocks, and layers beside them, multiply: bfloat16 where fast, else that of the weights."""
        return torch.autocast(h.device.type, torch.bfloat16, enabled=self._is_fast(h), cache_enabled=False)

    def _turn(self, h: Tensor, first: int, last: int) -> Tensor | None:
        """Of places first, ..., last - 1, where tokens know them."""
        if not self.rotary:
            return None
        dtype = torch.promote_types(h.dtype, torch.float32)
        found: Tensor = turns(torch.arange(first, last, device=h.device, dtype=dtype), self.head // 2)
        return found

    def _is_fast(self, h: Tensor) -> bool:
        return self.fast and h.is_cuda


def _attends(mask: Tensor, causal: bool) -> Tensor:
    """Whether token i attends to j, (*batch, n) -> (*batch, 1, n, n): j exists, and j <= i where causal; or j = i.

    That a token always attends to itself keeps softmaxes from being over nothing. It tells nobody of padded tokens.
    """
    n = mask.shape[-1]
    allowed = mask[..., None, None, :]
    if causal:
        allowed = allowed & torch.ones(n, n, dtype=torch.bool, device=mask.device).tril()
    return allowed | torch.eye(n, dtype=torch.bool, device=mask.device)


@cache
def _fused() -> Callable[[nn.Module, Tensor, Tensor | None, bool, Tensor | None], Tensor]:
    """A block in compiled kernels, for calls that always have the same shape; one compilation serves all of a size.

    The compiler takes as long to import as torch itself, so it is not asked for before it is needed.
    """

    def apply(block: nn.Module, h: Tensor, mask: Tensor | None, causal: bool, turn: Tensor | None) -> Tensor:
        out: Tensor = block(h, mask, causal, turn)
        return out

    return torch.compile(apply, dynamic=False)
