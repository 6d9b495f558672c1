"""Continuous normalizing flows: the map is where a differential equation leads."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from tessella import checks
from tessella.bijections import dopri5
from tessella.bijections.base import Bijection
from tessella.bijections.dopri5 import Solver, SolverError, Step
from tessella.bijections.recording import Recordings

Trace = Literal["exact", "hutchinson"]
Gradients = Literal["steps", "adjoint"]
TOLERANCE = 1e-5  # absolute and relative, the paper's


class ContinuousFlow(Bijection):
    """dx/dt = v(x, t),  f(x) = x(1),  ladj = int_0^1 tr dv/dx dt, by Dormand and Prince's method of order 5.

    The trace is exact whenever the module is not in training, and in training unless Hutchinson's estimate is asked
    for: e' dv/dx e with one normal e for each solution. That has the right mean, and so have gradients of its average;
    but exp of it has not, so a density made of it is none (docs/results.md shows what comes of that).

    Args:
        field: (x, context) -> v, (*batch, n, D), the last number of the context being the time.
        trace: in training.
        tolerance: absolute and relative, of the solver.
        gradients: of the solver's steps (`dopri5.Solver`), exactly those of the value; or by solving the adjoint
            equation backwards with torchdiffeq, as the paper does, up to the tolerance. Memory does not grow with the
            number of evaluations in either.

    Attributes:
        evaluations: of the field, in the last call.
        estimated: Hutchinson's estimate in evaluation, too: for the experiment that shows what it does there.
    """

    event_dim = 2
    capturable = False
    not_capturable_because = "the solver looks at its error"

    def __init__(
        self, field: nn.Module, trace: Trace = "exact", tolerance: float = TOLERANCE, gradients: Gradients = "steps"
    ):
        super().__init__()
        if trace not in ("exact", "hutchinson"):
            raise ValueError(f"trace: got {trace!r}; expected 'exact' or 'hutchinson'")
        if gradients not in ("steps", "adjoint"):
            raise ValueError(f"gradients: got {gradients!r}; expected 'steps' or 'adjoint'")
        if not tolerance > 0:
            raise ValueError(f"tolerance: got {tolerance}; expected a positive number")
        self.field, self.trace, self.tolerance, self.gradients = field, trace, tolerance, gradients
        self.evaluations = 0
        self.estimated = False
        self._recordings = Recordings()

    def forward_and_ladj(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._solve(x, context, (0.0, 1.0))

    def inverse_and_ladj(self, y: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self._solve(y, context, (1.0, 0.0))

    def _solve(self, x: Tensor, context: Tensor | None, span: tuple[float, float]) -> tuple[Tensor, Tensor]:
        given = [x.new_ones(*x.shape[:-1], 1) if context is None else context]  # all items exist
        if self.estimated or (self.training and self.trace == "hutchinson"):
            given.append(torch.randn_like(x))
        solver = self._solver(x, given, span)
        try:
            y, ladj = solver.solve(x, given)
        except SolverError as error:
            raise SolverError(_advice(solver.evaluations, self.tolerance, error)) from error
        self.evaluations = solver.evaluations
        if not (torch.compiler.is_compiling() or bool((y.sum() + ladj.sum()).isfinite())):
            raise SolverError(_advice(solver.evaluations, self.tolerance, "the solution is not finite"))
        return y, ladj

    def _solver(self, x: Tensor, given: Sequence[Tensor], span: tuple[float, float]) -> "Solver | _AdjointSolver":
        time, ladj = x.new_zeros(()), x.new_zeros(x.shape[:-2])
        rates = self._program(self._rates, [x, time, *given], 1)
        if torch.is_grad_enabled() and self.gradients == "adjoint":
            return _AdjointSolver(rates, self.tolerance, span)
        step = self._program(self._step, [x, ladj, x, ladj, time, time, *given], 4)
        return Solver(rates, step, self.tolerance, span)

    def _program(self, make: Callable[[bool], nn.Module], arguments: Sequence[Tensor], moving: int) -> nn.Module:
        """As it is written; for batches on a GPU that come in training, recorded once and replayed."""
        if arguments[0].is_cuda and self.training and torch.is_grad_enabled() and not checks.followed():
            return self._recordings.of(make, arguments, moving, self.tolerance)
        return make(False)

    def _rates(self, compiled: bool) -> "_Rates":
        return _Rates(self.field, compiled)

    def _step(self, compiled: bool) -> Step:
        return Step(self._rates(compiled), self.tolerance)

    def extra_repr(self) -> str:
        return f"trace={self.trace}, tolerance={self.tolerance}, gradients={self.gradients}"


class _Rates(nn.Module):
    """(x, t, context, noise) -> v and tr dv/dx, or its estimate by the noise, where there is one."""

    def __init__(self, field: nn.Module, compiled: bool = False):
        super().__init__()
        self.field = field
        if compiled:
            self.forward = torch.compile(self.forward, dynamic=False)  # type: ignore[method-assign]

    def forward(self, x: Tensor, t: Tensor, context: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """One evaluation."""
        told = torch.cat([context, t.to(x.dtype).expand(*x.shape[:-1], 1)], -1)
        if noise is None:
            return exact_divergence(self.field, x, told)
        return hutchinson_divergence(self.field, x, told, noise)


class _AdjointSolver(nn.Module):
    """As `dopri5.Solver`, by torchdiffeq, gradients by the adjoint equation; as a module, what is solved."""

    def __init__(self, rates: nn.Module, tolerance: float, span: tuple[float, float]):
        super().__init__()
        self.rates, self.tolerance, self.span = rates, tolerance, span
        self.given: Sequence[Tensor] = ()
        self.evaluations = 0

    def solve(self, x: Tensor, given: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """x and ladj at the end of the span."""
        from torchdiffeq import odeint_adjoint  # late: other models do without

        self.given = given
        start, times = (x, x.new_zeros(x.shape[:-2])), x.new_tensor(self.span)
        try:
            points, ladj = odeint_adjoint(self, start, times, method="dopri5", atol=self.tolerance, rtol=self.tolerance)
        except AssertionError as error:
            raise SolverError(str(error)) from error
        return points[-1], ladj[-1]

    def forward(self, t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """One evaluation."""
        self.evaluations += 1
        if self.evaluations > dopri5.MOST_EVALUATIONS:
            raise SolverError(f"more than {dopri5.MOST_EVALUATIONS} evaluations of the field")
        v, divergence = self.rates(state[0], t, *self.given)
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


def _advice(evaluations: int, tolerance: float, error: object) -> str:
    return (
        f"the differential equation was not solved after {evaluations} evaluations of the field ({error}); the field "
        f"has become too steep: take a smaller learning rate, clip gradients more, or raise tolerance (now {tolerance})"
    )
