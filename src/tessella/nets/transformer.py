"""The transformer: tokens of a table, a set or a text."""

import torch
from torch import Tensor, nn

from tessella.nets.attention import Activation, Attention, AttentionBlock, Stack
from tessella.nets.linear import Linear
from tessella.nets.mlp import zero


class Transformer(nn.Module):
    """x_i, context_i -> W norm(h_i),  h = blocks(E [x, context] + place), with W = 0 at the start.

    With learned positions a token's place means something: columns of a table, characters of a text. Without, and not
    causal, outputs are permuted as inputs are: sets. Tokens that do not exist are masked: they have no say, whatever
    stands there, and get zeros.

    Args:
        inputs, outputs: sizes of a token.
        width: size of the residual stream; heads of 32 dimensions where it divides.
        layers: number of attention + MLP blocks.
        positions: most tokens, of which each place has a learned embedding; None for no positions.
        context: size of a context token that is appended to each input token; 0 for none.
        causal: token i depends on those up to itself.
        attention, activation, dropout, expansion: see `AttentionBlock`.
        fast: on a GPU, multiply in bfloat16 and train with fused kernels. The result stays a function of the input
            alone, so a coupling that uses it stays an exact bijection.

    >>> net = Transformer(inputs=2, outputs=3, width=8, positions=None)
    >>> sets = torch.randn(4, 5, 2)
    >>> net(sets, mask=torch.arange(5) < torch.tensor([[5], [3], [1], [0]])).shape
    torch.Size([4, 5, 3])
    """

    place: nn.Parameter | None

    def __init__(
        self,
        inputs: int,
        outputs: int,
        width: int,
        layers: int = 2,
        *,
        positions: int | None,
        context: int = 0,
        causal: bool = False,
        attention: Attention = "dot",
        activation: Activation = "silu",
        dropout: float = 0.0,
        expansion: int = 2,
        fast: bool = False,
    ):
        super().__init__()
        self.sizes = inputs, context
        self.embed = Linear(inputs + context, width)
        place = None if positions is None else nn.Parameter(0.02 * torch.randn(positions, width))
        self.register_parameter("place", place)
        blocks = (AttentionBlock(width, expansion, dropout, attention, activation) for _ in range(layers))
        self.blocks = Stack(blocks, causal, fast)
        self.norm = nn.LayerNorm(width)
        self.head = zero(Linear(width, outputs))

    def forward(
        self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None, first: int | None = None
    ) -> Tensor:
        """(*batch, n, inputs) -> (*batch, n, outputs), or (*batch, m, outputs) of the first m tokens.

        Args:
            x: tokens.
            context: (*batch, n, context).
            mask: which tokens exist, (*batch, n); all of them if None.
            first: m, of how many tokens outputs are wanted, where all exist; of all if None.
        """
        self._check(x, context, mask)
        if first is not None and mask is not None:
            raise ValueError(f"first, mask: got {first} and a mask; expected one of them")
        tokens = x if context is None else torch.cat([x, context], -1)
        with self.blocks.precision(x):
            h = self.embed(_existing(tokens, mask)).to(x.dtype)  # sums of the residual stream keep their digits
            h = h if self.place is None else h + self.place[: x.shape[-2]]
            out = self.head(self.norm(self.blocks(h, mask)[..., :first, :]))
        return _existing(out.to(x.dtype), mask)

    def _check(self, x: Tensor, context: Tensor | None, mask: Tensor | None) -> None:
        sizes = x.shape[-1], 0 if context is None else context.shape[-1]
        if sizes != self.sizes:
            raise ValueError(f"x, context: got tokens of sizes {sizes}; expected {self.sizes}")
        if self.place is not None and x.shape[-2] > len(self.place):
            raise ValueError(f"x: got {x.shape[-2]} tokens; expected at most {len(self.place)}, the learned positions")
        if mask is not None and (mask.dtype != torch.bool or mask.shape != x.shape[:-1]):
            raise ValueError(
                f"mask: got {mask.dtype} of shape {tuple(mask.shape)}; expected torch.bool of shape "
                f"{tuple(x.shape[:-1])}, whether each token exists"
            )


def _existing(tokens: Tensor, mask: Tensor | None) -> Tensor:
    """Zeros, also for NaN and infinity, where no token is."""
    return tokens if mask is None else tokens.masked_fill(~mask[..., None], 0)
