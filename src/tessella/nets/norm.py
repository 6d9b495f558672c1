"""Layer normalisation whose directional derivatives can be differentiated."""

import torch
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    """y = (x - mean x) / sqrt(var x + eps) * weight + bias, over the last dimension.

    Torch's own kernel has the right derivative along a direction (`torch.func.jvp`), but the gradient of that
    derivative is wrong: it takes mean and variance for constants. The divergence of a continuous flow needs it. So
    inside transforms of `torch.func` the same is computed by elementary operations.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(*batch, size) -> the same."""
        if torch.compiler.is_compiling() or not torch._C._functorch.is_functorch_wrapped_tensor(input):
            return super().forward(input)
        centred = input - input.mean(-1, keepdim=True)
        scaled = centred * (centred.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return scaled * self.weight + self.bias
