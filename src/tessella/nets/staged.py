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

    mask: Tensor

    def __init__(self, stage: Tensor, width: int, layers: int, dropout: float = 0.0, fast: bool = False):
        super().__init__()
        self.fast = fast
        self.place = nn.Parameter(0.02 * torch.randn(2 * len(stage), width))
        self.blocks = nn.ModuleList(AttentionBlock(width, 4, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        earlier, itself = stage < stage[:, None], torch.eye(len(stage), dtype=torch.bool)
        values = torch.cat([stage <= stage[:, None], torch.zeros_like(itself)], 1)
        questions = torch.cat([earlier, itself], 1)
        self.register_buffer("mask", torch.cat([values, questions]), persistent=False)  # (2 N, 2 N)

    def forward(self, values: Tensor) -> Tensor:
        """Values of later stages may be anything; the first stage is answered from nothing."""
        fast = self.fast and values.is_cuda
        fused = fast and self.training and torch.is_grad_enabled()
        with torch.autocast(values.device.type, torch.bfloat16, enabled=fast, cache_enabled=False):
            tokens = torch.cat([values, torch.zeros_like(values)], -2) + self.place
            answers = through(self.blocks, tokens, self.mask, fused)[..., values.shape[-2] :, :]
            return self.norm(answers).to(values.dtype)
