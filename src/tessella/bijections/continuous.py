"""Continuous normalizing flows: the map is where a differential equation leads."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from tessella.bijections.base import Bijection

Trace = Literal["exact", "hutchinson"]
TOLERANCE = 1e-5  # absolute and relative, the paper's
MOST_EVALUATIONS = 2_000  # of the field, in one solution: more is a field that has become too steep


class SolverError(ArithmeticError):
    """The differential equation was not solved; the message says what to do."""


class ContinuousFlow(Bijection):
    """dx/dt = v(x, t),  f(x) = x(1),  ladj = int_0^1 tr dv/dx dt, by Dormand and Prince's method of order 5.

    The trace is exact whenever the module is not in training, and in training unless Hutchinson's estimate is asked
    for: e' dv/dx e with one normal e for each solution. That has the right mean, and so have gradients of its average;
    but exp of it has not, so a density made of it is none (docs/results.md shows what comes of that).

    Args:
        field: (x, context) -> v, (*batch, n, D), the last number of the context being the time.
        trace: in training.
        tolerance: absolute and relative, of the solver.
        adjoint: gradients by solving backwards, whose memory does not grow with the number of evaluations; or through
            the solver's steps, exactly those of the value.

    Attributes:
        evaluations: of the field, in the last call.
        estimated: Hutchinson's estimate in evaluation, too: for the experiment that shows what it does there.
    """

    event_dim = 2
    capturable = False
    not_capturable_because = "the solver looks at its error"

    def __init__(self, field: nn.Module, trace: Trace = "exact", tolerance: float = TOLERANCE, adjoint: bool = True):
        super().__init__()
        if trace not in ("exact", "hutchinson"):
            raise ValueError(f"trace: got {trace!r}; expected 'exact' or 'hutchinson'")
        if not tolerance > 0:
            raise ValueError(f"tolerance: got {tolerance}; expected a positive number")
        self.field, self.trace, self.tolerance, self.adjoint = field, trace, tolerance, adjoint
        self.evaluations = 0
        self.estimated = False
        self._replays = _Replays()

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._solve(x, context, backwards=False)

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._solve(y, context, backwards=True)

    def _solve(self, x: Tensor, context: Tensor | None, backwards: bool) -> tuple[Tensor, Tensor]:
        from torchdiffeq import odeint, odeint_adjoint  # late: other models do without

        estimated = self.estimated or (self.training and self.trace == "hutchinson")
        noise = torch.randn_like(x) if estimated else None
        motion = _Motion(self._rates(x, context, noise), context, noise)
        times = torch.tensor([1.0, 0.0] if backwards else [0.0, 1.0], device=x.device, dtype=x.dtype)
        start = (x, torch.zeros(x.shape[:-2], dtype=x.dtype, device=x.device))
        options: dict[str, Any] = {"method": "dopri5", "atol": self.tolerance, "rtol": self.tolerance}
        learning = torch.is_grad_enabled() and self.adjoint
        solve = odeint_adjoint if learning else odeint
        try:
            points, ladj = solve(motion, start, times, **options)
        except (AssertionError, SolverError) as error:
            raise SolverError(_advice(motion.evaluations, self.tolerance, error)) from error
        self.evaluations = motion.evaluations
        if not (torch.compiler.is_compiling() or bool((points[-1].sum() + ladj[-1].sum()).isfinite())):
            raise SolverError(_advice(motion.evaluations, self.tolerance, "the solution is not finite"))
        return points[-1], ladj[-1]

    def extra_repr(self) -> str:
        return f"trace={self.trace}, tolerance={self.tolerance}"

    def _rates(self, x: Tensor, context: Tensor | None, noise: Tensor | None) -> "_Rates":
        """The field and its divergence; of batches on a GPU that come in training, recorded once and replayed."""
        if not (x.is_cuda and self.training and torch.is_grad_enabled() and self.adjoint):
            return _Rates(self.field)
        arguments = [x, _with_time(x, context, x.new_zeros(())), *([] if noise is None else [noise])]
        key = tuple((argument.shape, argument.dtype, argument.device) for argument in arguments)
        if key not in self._replays:
            self._replays[key] = _recorded(_Rates(self.field), arguments)
        return self._replays[key]


class _Replays(dict[Any, "_Rates"]):
    """What was recorded, by the shapes of its arguments; a copy of a flow records its own."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Replays":
        return _Replays()


class _Rates(nn.Module):
    """(x, context, noise) -> v and tr dv/dx, or its estimate by the noise, where there is one."""

    def __init__(self, field: nn.Module):
        super().__init__()
        self.field = field

    def forward(self, x: Tensor, context: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One evaluation."""
        if noise is None:
            return exact_divergence(self.field, x, context)
        return hutchinson_divergence(self.field, x, context, noise)


def _recorded(rates: _Rates, arguments: Sequence[Tensor]) -> _Rates:
    """The same, compiled, as CUDA graphs, forwards and backwards: an evaluation is hundreds of kernels, each short.

    What cannot be compiled is recorded as it is written, and what cannot be recorded is evaluated as it is written.
    """
    example = tuple(torch.zeros_like(one).requires_grad_(i < 2) for i, one in enumerate(arguments))
    for how in ("compiled", "recorded"):
        replay = _Rates(rates.field).train()
        if how == "compiled":
            replay.forward = torch.compile(replay.forward, dynamic=False)  # type: ignore[method-assign]
        try:
            torch.cuda.make_graphed_callables(replay, example, allow_unused_input=True)  # changes the module's forward
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
            warnings.warn(
                f"continuous flow: not {how}, evaluations take several times as long ({reason})", stacklevel=2
            )
        else:
            return replay
    return rates


class _Motion(nn.Module):
    """(t, (x, l)) -> (v, tr dv/dx), and how often it was asked."""

    def __init__(self, rates: _Rates, context: Tensor | None, noise: Tensor | None):
        super().__init__()
        self.rates, self.context, self.noise = rates, context, noise
        self.evaluations = 0

    def forward(self, t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """One evaluation."""
        self.evaluations += 1
        if self.evaluations > MOST_EVALUATIONS:
            raise SolverError(f"more than {MOST_EVALUATIONS} evaluations of the field")
        x = state[0]
        arguments = [x, _with_time(x, self.context, t), *([] if self.noise is None else [self.noise])]
        v, divergence = self.rates(*arguments)
        return v.clone(), divergence.clone()  # what is replayed writes to where it wrote before


def exact_divergence(field: nn.Module, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
    """v(x) and sum_i dv_i/dx_i, (*batch, n, D) -> the same and (*batch): a product with each direction, all at once."""
    size = x.shape[-2] * x.shape[-1]
    directions = torch.eye(size, dtype=x.dtype, device=x.device).view(size, *x.shape[-2:])
    with sdpa_kernel(SDPBackend.MATH):
        v, pull_back, *_ = vjp(lambda points: field(points, context), x)
        diagonal = vmap(lambda e: (pull_back(e.expand_as(x))[0] * e).sum((-2, -1)))(directions)
    return v, diagonal.sum(0)


def hutchinson_divergence(field: nn.Module, x: Tensor, context: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """v(x) and e' dv/dx e: the divergence in expectation over e."""
    with sdpa_kernel(SDPBackend.MATH):  # fused attention has no second derivatives
        v, pull_back, *_ = vjp(lambda points: field(points, context), x)
        (pulled,) = pull_back(noise)
    return v, (pulled * noise).sum((-2, -1))


def _with_time(x: Tensor, context: Tensor | None, t: Tensor) -> Tensor:
    """Context tokens with the time behind them; where there are none, all items exist."""
    time = t.to(x.dtype).expand(*x.shape[:-1], 1)
    return torch.cat([torch.ones_like(time) if context is None else context, time], -1)


def _advice(evaluations: int, tolerance: float, error: object) -> str:
    return (
        f"the differential equation was not solved after {evaluations} evaluations of the field ({error}); the field "
        f"has become too steep: take a smaller learning rate, clip gradients more, or raise tolerance (now {tolerance})"
    )
