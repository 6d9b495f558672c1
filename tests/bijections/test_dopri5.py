"""Steps of Dormand and Prince's method: their order, closed forms, torchdiffeq's solutions, and their gradients."""

import pytest
import torch
from torch import nn

from tessella.bijections import ContinuousFlow, ItemNetwork, SolverError, dopri5
from tessella.nets import Transformer

DOUBLE = torch.float64


class Linear(nn.Module):
    """dx/dt = A x (+ t), the same for every item."""

    def __init__(self, forced: float = 0.0):
        super().__init__()
        self.matrix = nn.Parameter(torch.tensor([[0.3, -2.0], [1.5, 0.2]], dtype=DOUBLE))
        self.forced = forced

    def forward(self, x, context):
        return x @ self.matrix.T + self.forced * context[..., -1:]


class Bent(nn.Module):
    """A smooth field that turns with the time."""

    def __init__(self):
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(3.0, dtype=DOUBLE))
        self.unused = nn.Parameter(torch.ones(2, dtype=DOUBLE))

    def forward(self, x, context):
        return torch.sin(self.rate * x.flip(-1) + context[..., -1:]) * context[..., :1] - 0.5 * x


def attention() -> nn.Module:
    torch.manual_seed(0)
    net = Transformer(2, 2, 8, 1, positions=None, context=1, attention="l2", activation="gelu")
    nn.init.normal_(net.head.weight, 0, 0.5)
    return ItemNetwork(net).double()


FIELDS = {"linear": Linear, "forced": lambda: Linear(1.0), "bent": Bent, "attention": attention}
SPANS = {"forwards": (0.0, 1.0), "backwards": (1.0, 0.0)}


def points(seed: int = 1) -> torch.Tensor:
    return torch.randn(4, 3, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def solver_of(flow: ContinuousFlow, x: torch.Tensor, given: list[torch.Tensor], span=(0.0, 1.0)) -> dopri5.Solver:
    return flow._solver(x, given, span)


def test_steps_are_of_order_five_and_their_error_of_order_five_too():
    """Half of the step: a 64th of the error after it, a 32nd of its estimate."""
    flow, x = ContinuousFlow(Linear(), tolerance=1.0), points()
    ones, zero = torch.ones(4, 3, 1, dtype=DOUBLE), torch.zeros((), dtype=DOUBLE)
    errors, estimates = [], []
    with torch.no_grad():
        rates, step = flow._rates(False), flow._step(False)
        for h in (0.2, 0.1):
            h = torch.tensor(h, dtype=DOUBLE)
            y, *_, estimate = step(x, zero.expand(4), *rates(x, zero, ones), zero, h, ones)
            errors.append((y - x @ torch.linalg.matrix_exp(h * flow.field.matrix).T).norm())
            estimates.append(estimate)
    assert float(errors[0] / errors[1]) == pytest.approx(64, rel=0.15)
    assert float(estimates[0] / estimates[1]) == pytest.approx(32, rel=0.15)


@pytest.mark.parametrize("span", SPANS)
def test_a_linear_field_has_its_closed_form(span):
    flow, x = ContinuousFlow(Linear(), tolerance=1e-10), points()
    way, sign = (flow.forward_and_ladj, 1) if span == "forwards" else (flow.inverse_and_ladj, -1)
    y, ladj = way(x)
    matrix = flow.field.matrix.detach()
    torch.testing.assert_close(y, x @ torch.linalg.matrix_exp(sign * matrix).T, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(ladj, (sign * 3 * matrix.trace()).expand(4), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("name", FIELDS)
def test_the_same_solution_as_torchdiffeq_in_as_many_steps(name, span, tolerance):
    odeint = pytest.importorskip("torchdiffeq").odeint
    flow, x, given = ContinuousFlow(FIELDS[name](), tolerance=tolerance), points(), [torch.ones(4, 3, 1, dtype=DOUBLE)]
    accepted = []

    class Motion(nn.Module):
        def forward(self, t, state):
            return flow._rates(False)(state[0], t, *given)

        def callback_accept_step(self, t, y, dt):
            accepted.append(float(t))

    with torch.no_grad():
        solver = solver_of(flow, x, given, SPANS[span])
        steps = list(solver.walk(x, given))
        start, times = (x, torch.zeros(4, dtype=DOUBLE)), torch.tensor(SPANS[span], dtype=DOUBLE)
        there = odeint(Motion(), start, times, method="dopri5", atol=tolerance, rtol=tolerance)
    for ours, theirs in zip(steps[-1].after, there, strict=False):
        torch.testing.assert_close(ours, theirs[-1], rtol=20 * tolerance, atol=20 * tolerance)
    assert abs(len(steps) - len(accepted)) <= 1
    assert solver.evaluations >= 2 + 6 * len(steps)


@pytest.mark.parametrize("trace", ["exact", "hutchinson"])
@pytest.mark.parametrize("name", FIELDS)
def test_gradients_are_those_of_the_steps_that_were_taken(name, trace):
    """Exactly: autograd through the same steps, written one after another."""
    flow, x = ContinuousFlow(FIELDS[name](), trace, tolerance=1e-4), points().requires_grad_()
    context = torch.ones(4, 3, 1, dtype=DOUBLE, requires_grad=True)
    given = [context, *([points(2)] if trace == "hutchinson" else [])]
    wanted = [x, context, *flow.parameters()]
    solver = solver_of(flow, x, given)
    y, ladj = solver.solve(x, given)
    ours = torch.autograd.grad((y * points(3)).sum() + ladj.square().sum(), wanted, allow_unused=True)
    with torch.no_grad():
        times = [(step.t, step.h) for step in solver_of(flow, x, given).walk(x, given)]
    assert len(times) > 2
    rates, step = flow._rates(False), flow._step(False)
    state = [x, torch.zeros(4, dtype=DOUBLE), *rates(x, torch.zeros((), dtype=DOUBLE), *given)]
    for t, h in times:
        *state, _ = step(*state, torch.tensor(t, dtype=DOUBLE), torch.tensor(h, dtype=DOUBLE), *given)
    loss = (state[0] * points(3)).sum() + state[1].square().sum()
    theirs = torch.autograd.grad(loss, wanted, allow_unused=True)
    torch.testing.assert_close(y, state[0], rtol=1e-13, atol=1e-13)
    for ours_of, theirs_of in zip(ours, theirs, strict=True):
        expected = torch.zeros_like(ours_of) if theirs_of is None else theirs_of
        torch.testing.assert_close(ours_of, expected, rtol=1e-12, atol=1e-12)


def test_what_needs_no_gradient_gets_none():
    flow, x = ContinuousFlow(Bent(), tolerance=1e-4), points()
    flow.field.rate.requires_grad_(False)
    y, ladj = flow.forward_and_ladj(x)
    (y.sum() + ladj.sum()).backward()
    assert flow.field.rate.grad is None
    assert not flow.field.unused.grad.any()
    flow.requires_grad_(False)
    assert not flow.forward_and_ladj(x)[0].requires_grad


def test_transforms_of_functions_see_the_steps():
    flow, x = ContinuousFlow(Bent(), tolerance=1e-7), points()[0]
    here = x.clone().requires_grad_()
    value = flow.forward_and_ladj(here)[1]
    (expected,) = torch.autograd.grad(value, here)
    torch.testing.assert_close(torch.func.grad(lambda z: flow.forward_and_ladj(z)[1])(x), expected)
    turned = torch.func.jacrev(lambda z: flow.forward_and_ladj(z)[0])(x).reshape(6, 6)
    torch.testing.assert_close(torch.linalg.slogdet(turned).logabsdet, value.detach(), rtol=1e-3, atol=1e-3)


class Broken(nn.Module):
    def __init__(self, value: float, since: float):
        super().__init__()
        self.value, self.since = value, since

    def forward(self, x, context):
        return x * torch.where(context[..., -1:] < self.since, 1.0, self.value)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Broken(float("nan"), 0.0), "not finite at time 0"),
        (Broken(float("nan"), 0.5), "steps become too small, .* at time 0.5"),
        (Broken(1e6, 0.5), "more than 2000 evaluations"),
    ],
    ids=["at once", "later", "steep"],
)
@pytest.mark.parametrize("learning", [False, True], ids=["evaluation", "training"])
def test_what_is_not_solved_is_an_error(field, message, learning):
    with torch.set_grad_enabled(learning), pytest.raises(SolverError, match=message) as raised:
        ContinuousFlow(field).forward_and_ladj(points().requires_grad_(learning))
    assert "smaller learning rate" in str(raised.value)
