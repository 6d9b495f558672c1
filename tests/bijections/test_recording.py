"""What is replayed overwrites what it gave before: solutions and gradients must not notice."""

import copy

import pytest
import torch
from torch import nn

from tessella.bijections import ContinuousFlow
from tessella.nets import Transformer


def recorded_without_a_gpu(module: nn.Module, example: tuple, allow_unused_input: bool) -> nn.Module:
    """As `torch.cuda.make_graphed_callables`: one place for every output and gradient, NaN when stale."""
    plain, parameters = module.forward, tuple(module.parameters())
    needs = [one.requires_grad for one in (*example, *parameters)]
    places: list[torch.Tensor] = []
    graph: list[list[torch.Tensor]] = [[], []]

    def put(values):
        places.extend(value.detach().clone() for value in values)
        return tuple(places[-len(values) :])

    class Replay(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            for place in places:
                place.fill_(float("nan"))
            places.clear()
            with torch.enable_grad():
                here = [one.detach().clone().requires_grad_(need) for one, need in zip(arguments, needs, strict=False)]
                graph[:] = here[: len(example)], plain(*here[: len(example)])
            return put(graph[1])

        @staticmethod
        def backward(ctx, *onto):
            wanted = [one for one, need in zip((*graph[0], *parameters), needs, strict=True) if need]
            outs, tos = zip(*[way for way in zip(graph[1], onto, strict=True) if way[0].requires_grad], strict=True)
            found = iter(torch.autograd.grad(outs, wanted, tos, allow_unused=allow_unused_input))
            gradients = [next(found) if need else None for need in needs]
            kept = iter(put([one for one in gradients if one is not None]))
            return tuple(None if one is None else next(kept) for one in gradients)

    module.forward = lambda *arguments: Replay.apply(*arguments, *parameters)
    return module


@pytest.mark.parametrize("gradients", ["steps", "adjoint"])
@pytest.mark.parametrize("trace", ["exact", "hutchinson"])
def test_what_is_replayed_has_the_values_and_gradients_of_what_is_written(trace, gradients, monkeypatch):
    pytest.importorskip("torchdiffeq")
    torch.manual_seed(0)
    net = Transformer(2, 2, 8, 1, positions=None, context=2).double()
    nn.init.normal_(net.head.weight, 0, 0.3)
    flow = ContinuousFlow(net, trace, 1e-4, gradients).train()
    made = []

    def recorded(self, make, arguments, moving):
        made.append(make)
        return self._recordings.of(lambda compiled: make(False), arguments, moving, self.tolerance)

    found = []
    for replayed in (False, True, True):
        if replayed:
            monkeypatch.setattr(torch.cuda, "make_graphed_callables", recorded_without_a_gpu)
            monkeypatch.setattr(ContinuousFlow, "_program", recorded)
        torch.manual_seed(1)
        x = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
        y, ladj = flow.forward_and_ladj(x)
        wanted = [x, *flow.parameters()]
        found.append([y, ladj, *torch.autograd.grad(y.square().sum() + ladj.sum(), wanted, allow_unused=True)])
    assert made
    for plain, first, second in zip(*found, strict=True):
        if plain is not None:
            torch.testing.assert_close(first, plain, rtol=1e-10, atol=1e-10)
            torch.testing.assert_close(second, first, rtol=1e-10, atol=1e-10)
    assert not copy.deepcopy(flow)._recordings._recorded


def test_what_cannot_be_recorded_is_evaluated_as_it_is_written(monkeypatch):
    def refuses(*_, **__):
        raise RuntimeError("no such stream\nand more")

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", refuses)
    flow, x = ContinuousFlow(nn.Identity()), torch.ones(2, 3, 2)
    with pytest.warns(UserWarning, match=r"not (compiled|recorded), .* \(RuntimeError: no such stream\)") as warned:
        program = flow._recordings.of(lambda compiled: flow._rates(False), [x, x.new_zeros(()), x[..., :1]], 1)
    assert len(warned) == 2
    assert program.forward.__func__ is type(program).forward
