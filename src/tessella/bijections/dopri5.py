"""Dormand and Prince's method of order 5: steps as long as their error allows, and the gradients of what they compute.

A solution is a point that moves, dx/dt = v(x, t), and what it gathers on its way, dl/dt = d(x, t). Sizes of steps
follow Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I (II.4), with the constants of torchdiffeq,
so that a tolerance means the same here and there.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tessella import checks

MOST_EVALUATIONS = 2_000  # of the field, in one solution: more is a field that has become too steep

# Stage i is at x + h sum_j STAGES[i][j] v_j and t + NODES[i] h. The last is the solution itself, so its rates are the
# first ones of the next step.
NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
# The difference to a solution of order 4, Shampine's: two thirds of the one to Dormand and Prince's.
ERROR = (71 / 86400, 0.0, -142 / 50085, 71 / 2880, -5751 / 169600, 44 / 1575, -1 / 60)

SAFETY, SHRINK, GROW = 0.9, 0.2, 10.0  # the next step is of 0.9 / error^(1/5) times the size, within these limits
STRETCH = 1.01  # the last step may be so much longer than planned, which spares a tiny one


class SolverError(ArithmeticError):
    """The differential equation was not solved; the message says what to do."""


class State(NamedTuple):
    """A point on its way, and its rates."""

    x: Tensor
    """(*batch, n, D)"""
    ladj: Tensor
    """(*batch)"""
    v: Tensor
    """dx/dt"""
    divergence: Tensor
    """d ladj/dt"""

    def kept(self) -> "State":
        """A copy: what is replayed writes to where it wrote before."""
        return State(*(part.clone() for part in self))


class Taken(NamedTuple):
    """A step that was accepted."""

    t: float
    h: float
    before: State
    after: State


class Step(nn.Module):
    """(state, t, h, given) -> the state at t + h, and its error in units of what is tolerated, at most 1 if accepted.

    Six evaluations, all shapes known beforehand and nothing looked at: it can be recorded as one CUDA graph. The error
    is the larger of the root mean squares of both parts, over the whole batch; it has no gradient.

    Args:
        rates: (x, t, *given) -> v, d.
        tolerance: absolute and relative.
    """

    def __init__(self, rates: nn.Module, tolerance: float):
        super().__init__()
        self.rates, self.tolerance = rates, tolerance

    def forward(
        self, x: Tensor, ladj: Tensor, v: Tensor, divergence: Tensor, t: Tensor, h: Tensor, *given: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One step."""
        slopes, divergences, y = [v], [divergence], x
        for node, weights in zip(NODES, STAGES, strict=True):
            y = torch.addcmul(x, h, _weighted(weights, slopes))
            v, divergence = self.rates(y, t + node * h, *given)
            slopes.append(v)
            divergences.append(divergence)
        after = torch.addcmul(ladj, h, _weighted(STAGES[-1], divergences[:-1]))
        with torch.no_grad():
            errors = h * _weighted(ERROR, slopes), h * _weighted(ERROR, divergences)
            larger = torch.maximum(x.abs(), y.abs()), torch.maximum(ladj.abs(), after.abs())
            error = _size(errors, larger, self.tolerance)
        return y, after, v, divergence, error


class Solver:
    """x(t) from one time to another, and ladj, from 0; one solution each.

    Gradients are those of the steps that were taken, at their sizes: exactly those of the computed value. Only where
    the steps began is kept; going back, each is computed again, so memory is that of one step and of these points.

    Args:
        rates: (x, t, *given) -> v, d; the same field as in the step.
        step: `Step`, or what behaves like it.
        tolerance: absolute and relative, of the step.
        span: from when to when; backwards, too.

    Attributes:
        evaluations: of the field, so far; going back is not counted.
    """

    def __init__(self, rates: nn.Module, step: nn.Module, tolerance: float, span: tuple[float, float]):
        self.rates, self.step, self.tolerance, self.span = rates, step, tolerance, span
        self.evaluations = 0

    def solve(self, x: Tensor, given: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """x and ladj at the end of the span."""
        if torch.is_grad_enabled() and not checks.followed():
            parameters = [parameter for parameter in self.step.parameters() if parameter.requires_grad]
            found: tuple[Tensor, Tensor] = _Solution.apply(self, len(given), x, *given, *parameters)
            return found
        last = deque(self.walk(x, given), maxlen=1).pop().after
        return last.x, last.ladj

    def walk(self, x: Tensor, given: Sequence[Tensor]) -> Iterator[Taken]:
        """The steps from x on; one number is looked at for each that is tried, and one before the first."""
        t, end = self.span
        forwards = 1.0 if end > t else -1.0
        self._count(1)
        rates = self.rates(x, x.new_full((), t), *given)
        state = State(x, x.new_zeros(x.shape[:-2]), *rates).kept()
        size = self._first_size(state, t, forwards, given)
        while t != end:
            ends = STRETCH * size >= abs(end - t)
            h = end - t if ends else forwards * size
            if t + h == t:
                raise SolverError(f"steps become too small, {abs(h):.1e} at time {t:.6f}")
            self._count(len(STAGES))
            *after, error = self.step(*state, x.new_full((), t), x.new_full((), h), *given)
            ratio = float(error)
            if ratio <= 1:
                taken = Taken(t, h, state, State(*after).kept())
                t, state = end if ends else t + h, taken.after
                yield taken
            size = abs(h) * _factor(ratio)

    @torch.no_grad()
    def _first_size(self, state: State, t: float, forwards: float, given: Sequence[Tensor]) -> float:
        """Hairer's guess, by the second derivative that one short step of Euler's method shows."""
        x, ladj, v, divergence = state
        sizes = x.abs(), ladj.abs()
        d0, d1 = _size((x, ladj), sizes, self.tolerance), _size((v, divergence), sizes, self.tolerance)
        h = torch.where((d0 < 1e-5) | (d1 < 1e-5), 1e-6, 0.01 * d0 / d1)
        self._count(1)
        later = self.rates(x + forwards * h * v, t + forwards * h, *given)
        d2 = _size((later[0] - v, later[1] - divergence), sizes, self.tolerance) / h
        steep = torch.maximum(d1, d2)
        other = torch.where(steep <= 1e-15, (1e-3 * h).clamp(min=1e-6), (0.01 / steep) ** (1 / 5))
        size = float(torch.minimum(100 * h, other))
        if not math.isfinite(size):
            raise SolverError(f"the field is not finite at time {t:.6f}")
        return size

    def _count(self, evaluations: int) -> None:
        self.evaluations += evaluations
        if self.evaluations > MOST_EVALUATIONS:
            raise SolverError(f"more than {MOST_EVALUATIONS} evaluations of the field")


class _Solution(torch.autograd.Function):
    """x, given, parameters -> x and ladj at the end; going back, the steps in reverse order."""

    @staticmethod
    def forward(ctx: Any, solver: Solver, number: int, x: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        steps = list(solver.walk(x, others[:number]))
        ctx.solver, ctx.number, ctx.steps = solver, number, [(step.t, step.h, step.before) for step in steps]
        ctx.save_for_backward(*others)
        return steps[-1].after.x, steps[-1].after.ladj

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *onto: Tensor) -> tuple[Tensor | None, ...]:
        rates, step, needed = ctx.solver.rates, ctx.solver.step, ctx.needs_input_grad[3:]
        given, parameters = ctx.saved_tensors[: ctx.number], ctx.saved_tensors[ctx.number :]
        given = tuple(one.detach().requires_grad_(need) for one, need in zip(given, needed, strict=False))
        wanted = [one for one, need in zip((*given, *parameters), needed, strict=True) if need]
        sums = [torch.zeros_like(one) for one in wanted]
        (start, _, first), time = ctx.steps[0], onto[0].new_full
        back = [*onto, torch.zeros_like(first.v), torch.zeros_like(first.divergence)]
        for t, h, before in reversed(ctx.steps):
            back = _pulled_back(step, before, (time((), t), time((), h), *given), back, wanted, sums)
        (more,) = _pulled_back(rates, (first.x,), (time((), start), *given), back[2:], wanted, sums)
        found = iter(sums)
        return None, None, back[0] + more, *(next(found) if need else None for need in needed)


def _pulled_back(
    function: Callable[..., tuple[Tensor, ...]],
    at: Sequence[Tensor],
    rest: Sequence[Tensor],
    onto: Sequence[Tensor],
    wanted: Sequence[Tensor],
    sums: Sequence[Tensor],
) -> list[Tensor]:
    """Gradients of <onto, function(at, rest)> with respect to `at`; those of what is wanted are added to the sums.

    Outputs beyond those that `onto` names have no gradients.
    """
    with torch.enable_grad():
        here = [one.detach().requires_grad_() for one in at]
        ways = [(out, to) for out, to in zip(function(*here, *rest), onto, strict=False) if out.requires_grad]
    if not ways:
        return [torch.zeros_like(one) for one in here]
    outs, tos = zip(*ways, strict=True)
    own = torch.autograd.grad(outs, [*here, *wanted], tos, allow_unused=True)
    more = [(total, one) for total, one in zip(sums, own[len(here) :], strict=True) if one is not None]
    if more:
        torch._foreach_add_(*map(list, zip(*more, strict=True)))  # at once: the next replay overwrites them
    return [torch.zeros_like(x) if one is None else one.clone() for x, one in zip(here, own, strict=False)]


def _weighted(weights: Sequence[float], parts: Sequence[Tensor]) -> Tensor:
    """sum_j weights_j parts_j, an operation for each."""
    total = weights[0] * parts[0]
    for weight, part in zip(weights[1:], parts[1:], strict=True):
        total = torch.add(total, part, alpha=weight) if weight else total
    return total


def _size(parts: Sequence[Tensor], sizes: Sequence[Tensor], tolerance: float) -> Tensor:
    """The larger root mean square of both parts, in units of what is tolerated at their sizes."""
    x, ladj = (part / (tolerance + tolerance * size) for part, size in zip(parts, sizes, strict=True))
    return torch.maximum(x.square().mean().sqrt(), ladj.square().mean().sqrt())


def _factor(error: float) -> float:
    """How much longer the next step should be; after one that was accepted, it is no shorter."""
    if not math.isfinite(error):
        return SHRINK
    if error == 0:
        return GROW
    return min(GROW, max(SAFETY * math.pow(error, -1 / 5), 1.0 if error < 1 else SHRINK))
