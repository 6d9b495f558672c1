"""Muon: matrices of networks move by orthogonal steps, everything else by Adam."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

SMALLEST = 16  # dimension of a matrix for which directions matter
SIZE = 0.2  # of a step in an entry, root mean square, in units of the learning rate: about that of Adam's
MOMENTUM = 0.95
ITERATIONS = 5
QUINTIC = (3.4445, -4.7750, 2.0315)  # pushes singular values from (0, 1] into about [0.7, 1.2] in five steps


class Muon(torch.optim.Optimizer):
    """W <- W - lr/5 sqrt(max(n, m)) U V^T for matrices (n, m), where U S V^T is their momentum; AdamW for the rest.

    Of all steps of one spectral norm this one lowers the loss most, to first order: every direction that the gradient
    knows of is taken by the same amount, where a plain gradient, and Adam's as well, mostly follows a few large ones.
    The factor gives an entry's step the size that Adam's has, so both kinds of parameters share a learning rate.
    U V^T is found by the odd polynomial X <- a X + b (X X^T) X + c (X X^T)^2 X, which acts on singular values alone
    (Jordan et al., 2024; in bfloat16 on a GPU). Matrices of one shape go through it together.

    Args:
        matrices: parameters of two dimensions, the weights of linear layers.
        others: all other parameters.
        lr: learning rate, a tensor.
        weight_decay: decoupled, of all parameters.
        fused, capturable: of AdamW.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        others: Sequence[nn.Parameter],
        lr: Tensor,
        weight_decay: float = 0.0,
        fused: bool = False,
        capturable: bool = False,
    ):
        super().__init__([*matrices, *others], {"lr": lr, "weight_decay": weight_decay})
        self._adam: torch.optim.Optimizer | None = None
        if others:
            self._adam = torch.optim.AdamW(others, lr=lr, weight_decay=weight_decay, fused=fused, capturable=capturable)
            self._adam.state = self.state
        shapes: dict[tuple[int, ...], list[nn.Parameter]] = {}
        for matrix in matrices:
            shapes.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
        self._alike = list(shapes.values())

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # no closure: the step may be captured
        """One update from the gradients."""
        if self._adam is not None:
            self._adam.step()
        lr, decay = (self.param_groups[0][name] for name in ("lr", "weight_decay"))
        for alike in self._alike:
            moved: list[Tensor] = [p for p in alike if p.grad is not None]
            if not moved:
                continue
            moves = orthogonal(self._momenta(moved)) * (SIZE * max(moved[0].shape) ** 0.5 * lr)
            if decay:
                torch._foreach_mul_(moved, 1 - lr * decay)
            for matrix, move in zip(moved, moves, strict=True):
                matrix.sub_(_flat(move, matrix))

    def _momenta(self, matrices: list[Tensor]) -> Tensor:
        """Gradients, averaged over steps, with the newest counted once more (Nesterov); wide, (P, n, m), n <= m."""
        gradients = [p.grad for p in matrices if p.grad is not None]
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        momenta = [self.state[matrix]["momentum"] for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, momenta, MOMENTUM)
        return torch.stack([_flat(one, one) for one in ahead])


def orthogonal(matrices: Tensor) -> Tensor:
    """U V^T of every U S V^T, nearly, for n <= m: (P, n, m) -> the same; singular values about 1 unless S is tiny."""
    a, b, c = QUINTIC
    x = matrices / (matrices.norm(dim=(1, 2), keepdim=True) + torch.finfo(matrices.dtype).tiny)
    x = x.bfloat16() if x.is_cuda else x
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    found: Tensor = x.to(matrices.dtype)
    return found


def divided(model: nn.Module, parameters: Iterable[nn.Parameter]) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Weights of linear layers with many inputs and outputs, and all others of these parameters."""
    layers = (module for module in model.modules() if isinstance(module, nn.Linear))
    hidden = {id(layer.weight) for layer in layers if min(layer.weight.shape) >= SMALLEST}
    found: tuple[list[nn.Parameter], list[nn.Parameter]] = ([], [])
    for parameter in parameters:
        found[id(parameter) not in hidden].append(parameter)
    return found


def _flat(matrix: Tensor, like: Tensor) -> Tensor:
    """Tall matrices lie on their side, and stand up again: its own inverse."""
    return matrix.mT if like.shape[0] > like.shape[1] else matrix
