"""Transformer over variables that become known in stages."""

import torch
from torch import Tensor, nn

from tessella.nets.transformer import AttentionBlock, through


class StagedTransformer(nn.Module):
    """Values (*batch, N, width) -> answers (*batch, N, width); that for variable j sees values of earlier stages only.

    Two tokens for each variable: its value, which attends to values of its own and earlier stages, and a question about
    it, which attends to itself and to values of earlier stages. All answers come out of one pass.

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

    def answer(self, values: Tensor, stage: int) -> Tensor:
        """Answers for the n variables of one stage, (*batch, n, width); values of that and later stages are not read.

        The same as in `forward`, from fewer tokens.
        """
        known, asked = (self.stage < stage).nonzero()[:, 0], (self.stage == stage).nonzero()[:, 0]
        tokens = torch.cat([known, len(self.stage) + asked])
        questions = values.new_zeros(*values.shape[:-2], len(asked), values.shape[-1])
        return self._answers(values[..., known, :], questions, self.place[tokens], self.mask[tokens[:, None], tokens])

    def _answers(self, values: Tensor, questions: Tensor, place: Tensor, mask: Tensor) -> Tensor:
        fast = self.fast and values.is_cuda
        fused = fast and self.training and torch.is_grad_enabled()
        with torch.autocast(values.device.type, torch.bfloat16, enabled=fast, cache_enabled=False):
            tokens = through(self.blocks, torch.cat([values, questions], -2) + place, mask, fused)
            return self.norm(tokens[..., values.shape[-2] :, :]).to(values.dtype)
