"""Transformer over variables that become known in stages."""

import torch
from torch import Tensor, nn

from tessella.nets.transformer import AttentionBlock, through


class StagedTransformer(nn.Module):
    """Values (*batch, N, width) -> answers (*batch, N, width); that for variable j sees values of earlier stages only.

    Two tokens for each variable: its value, which attends to values of its own and earlier stages, and a question about
    it, which attends to itself and to values of earlier stages. All answers come out of one pass; `walk` gives them
    stage by stage.

    Args:
        stage: of each of the N variables.
        width: size of the residual stream; heads of 32 dimensions where it divides.
        layers: number of attention + MLP blocks.
        dropout: share of what each block adds that is left out in training.
        fast: see `TokenTransformer`.
    """

    stage: Tensor
    mask: Tensor

    def __init__(self, stage: Tensor, width: int, layers: int, dropout: float = 0.0, fast: bool = False):
        super().__init__()
        self.fast = fast
        self.place = nn.Parameter(0.02 * torch.randn(2 * len(stage), width))
        self.blocks = nn.ModuleList(AttentionBlock(width, 4, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("stage", stage, persistent=False)
        earlier, itself = stage < stage[:, None], torch.eye(len(stage), dtype=torch.bool)
        values = torch.cat([stage <= stage[:, None], torch.zeros_like(itself)], 1)
        questions = torch.cat([earlier, itself], 1)
        self.register_buffer("mask", torch.cat([values, questions]), persistent=False)  # (2 N, 2 N)

    def forward(self, values: Tensor) -> Tensor:
        """All answers, (*batch, N, width)."""
        return self._answers(values, torch.zeros_like(values), self.place, self.mask)

    def walk(self, rows: int) -> "Walk":
        """The same answers stage after stage, for values that become known one stage after another."""
        return Walk(self, rows)

    def _answers(self, values: Tensor, questions: Tensor, place: Tensor, mask: Tensor) -> Tensor:
        fused = self._is_fast and self.training and torch.is_grad_enabled()
        with self.precision():
            tokens = through(self.blocks, torch.cat([values, questions], -2) + place, mask, fused)
            return self.norm(tokens[..., values.shape[-2] :, :]).to(values.dtype)

    @property
    def _is_fast(self) -> bool:
        return self.fast and self.place.is_cuda

    def precision(self) -> torch.autocast:
        """bfloat16 where it is fast, else what it is."""
        return torch.autocast(self.place.device.type, torch.bfloat16, enabled=self._is_fast, cache_enabled=False)


class Walk:
    """Answers for one stage, then its values, then answers for the next: each token goes through the network once.

    Keys and values of all tokens that are known are kept.

    Args:
        net: whose stages are walked through.
        rows: B.
    """

    def __init__(self, net: StagedTransformer, rows: int):
        self.net, self.rows = net, rows
        self.blocks = [block for block in net.blocks if isinstance(block, AttentionBlock)]
        self.kept: list[tuple[Tensor, Tensor]] = []
        for block in self.blocks:
            nothing = net.place.new_zeros(rows, block.heads, 0, net.place.shape[-1] // block.heads)
            self.kept.append((nothing, nothing))

    def answer(self, stage: int) -> Tensor:
        """For the n variables of the first stage that is not known yet: (B, n, width)."""
        asked = (self.net.stage == stage).nonzero()[:, 0]
        h = self.net.place[len(self.net.stage) + asked].expand(self.rows, -1, -1)
        itself = torch.eye(len(asked), dtype=torch.bool, device=h.device)
        with self.net.precision():
            for block, (keys, values) in zip(self.blocks, self.kept, strict=True):
                earlier = itself.new_ones(len(asked), keys.shape[-2])
                h, _, _ = block.after(h, keys.to(h.dtype), values.to(h.dtype), torch.cat([earlier, itself], 1))
            return self.net.norm(h).to(self.net.place.dtype)

    def tell(self, stage: int, values: Tensor) -> None:
        """The values of that stage's variables, (B, n, width)."""
        h = values + self.net.place[(self.net.stage == stage).nonzero()[:, 0]]
        with self.net.precision():
            for i, block in enumerate(self.blocks):
                h, keys, values = block.after(h, *self.kept[i], None)
                self.kept[i] = keys, values
