"""Laws of the transformer and its parts, over a table of constructors."""

from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.func import jacrev, vmap
from torch.nn import functional

from tessella.nets import AttentionBlock, Stack, Transformer
from tessella.nets.attention import Kept, l2_attention

INPUTS, OUTPUTS, CONTEXT, MOST = 3, 2, 4, 7
OPTIONS: dict[str, dict[str, Any]] = {
    "-".join([attention, *("causal",) * causal, *("places",) * places, *("context",) * context]): {
        "attention": attention,
        "causal": causal,
        "positions": MOST if places else None,
        "context": CONTEXT if context else 0,
    }
    for attention, causal, places, context in product(("dot", "l2"), (False, True), (False, True), (False, True))
}
EXISTS = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)


def scattered(module: Any) -> Any:
    """Every parameter away from its start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def made(name: str) -> Transformer:
    return scattered(Transformer(INPUTS, OUTPUTS, width=64, **OPTIONS[name]))


def drawn(net: Transformer, *batch: int) -> tuple[Tensor, Tensor | None]:
    return torch.randn(*batch, INPUTS), torch.randn(*batch, CONTEXT) if net.sizes[1] else None


def on(tokens: Tensor | None, change: Any) -> Any:
    return None if tokens is None else change(tokens)


@pytest.fixture(params=OPTIONS, ids=str)
def net(request) -> Transformer:
    return made(request.param)


@pytest.mark.parametrize("name", OPTIONS)
def test_starts_at_zero(name):
    net = Transformer(INPUTS, OUTPUTS, width=8, **OPTIONS[name])
    assert (net(*drawn(net, 4, 5)) == 0).all()


def test_permuted_tokens_give_permuted_outputs_where_no_order_is_known(net):
    x, context = drawn(net, 4, 5)
    order = torch.tensor([3, 0, 4, 1, 2])
    for mask in (None, EXISTS):
        y = net(x, context, mask)[:, order]
        permuted = net(x[:, order], on(context, lambda c: c[:, order]), on(mask, lambda m: m[:, order]))
        assert torch.allclose(permuted, y) == (net.place is None and not net.blocks.causal)


@pytest.mark.parametrize("exists", [None, *EXISTS], ids=["all", "each", "first", "some", "none"])
def test_tokens_see_those_that_exist_and_a_causal_net_those_before(net, exists):
    x, context = drawn(net, 5)
    seen = torch.ones(5, 5, dtype=torch.bool)
    seen = seen.tril() if net.blocks.causal else seen
    seen = seen if exists is None else seen & exists & exists[:, None]
    slopes = jacrev(lambda x, c: net(x, c, exists), (0, 1) if context is not None else (0,))(x, context)
    for slope in slopes:  # (n, outputs, n, inputs)
        assert torch.equal((slope != 0).any(-1).any(1), seen)


def test_what_stands_at_padded_places_is_never_looked_at(net):
    x, context = drawn(net, 4, 5)
    y = net(x, context, EXISTS)
    assert (y[~EXISTS] == 0).all()
    assert (y[EXISTS] != 0).all()
    for other in (torch.tensor(1e6), torch.tensor(torch.inf), torch.tensor(torch.nan)):
        padded = [on(t, lambda t, other=other: t.where(EXISTS[..., None], other)) for t in (x, context)]
        assert torch.equal(net(*padded, EXISTS), y)


def test_padding_changes_nothing(net):
    x, context = drawn(net, 4, 5)
    longer = [on(t, lambda t: torch.cat([t, torch.randn_like(t[:, :2])], 1)) for t in (x, context)]
    for mask in (torch.ones_like(EXISTS), EXISTS):
        y = net(*longer, functional.pad(mask, (0, 2)))
        torch.testing.assert_close(y[:, :5], net(x, context, mask))
    torch.testing.assert_close(net(x, context, torch.ones_like(EXISTS)), net(x, context))


@pytest.mark.parametrize("attention", ["dot", "l2"])
def test_one_token_after_another_gives_what_a_causal_pass_gives(attention):
    stack = scattered(Stack((AttentionBlock(64, attention=attention) for _ in range(2)), causal=True))
    h, kept = torch.randn(4, 5, 64), Kept(stack, 5, 2)
    parent = torch.tensor([0, 0, 1, 0])
    h[:, :2] = h[parent, :2]  # two rows, until they branch
    for i, expected in enumerate(stack(h).detach().unbind(1)):
        own = torch.tensor([0, 2]) if i < 2 else torch.arange(4)
        if i == 2:
            kept = kept.branch(parent)
        one = stack.after(h[own, i], kept, asked=i != 3)
        if i != 3:  # nobody asked
            torch.testing.assert_close(one, expected[own])


LOGITS = {"dot": lambda q, k: q @ k.mT, "l2": lambda q, k: -torch.cdist(q, k).square()}


@pytest.mark.parametrize("activation", ["silu", "gelu"])
@pytest.mark.parametrize("attention", LOGITS)
def test_a_block_is_its_formula(attention, activation):
    block = scattered(AttentionBlock(64, 3, attention=attention, activation=activation))
    h = torch.randn(4, 5, 64)
    parts = block.query_key_value(block.before_attention(h)).split(64, -1)  # q, k, v; or k, v
    per_head = [part.view(4, 5, 2, 32).transpose(1, 2) for part in parts]
    q, k, v = per_head if attention == "dot" else (per_head[0], *per_head)
    attended = (LOGITS[attention](q, k) / 32**0.5).softmax(-1) @ v
    middle = h + block.mix(attended.transpose(1, 2).reshape(4, 5, 64))
    hidden = getattr(functional, activation)(block.mlp[0](block.before_mlp(middle)))
    assert hidden.shape[-1] == 3 * 64
    torch.testing.assert_close(block(h), middle + block.mlp[2](hidden))


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_l2_attention_is_a_softmax_of_distances(causal):
    q, k, v = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 6)
    seen = torch.ones(5, 5, dtype=torch.bool)
    seen = seen.tril() if causal else seen
    logits = (LOGITS["l2"](q, k) / 2).masked_fill(~seen, -torch.inf)
    torch.testing.assert_close(l2_attention(q, k, v, is_causal=causal), logits.softmax(-1) @ v)
    torch.testing.assert_close(l2_attention(q, k, v, attn_mask=seen), logits.softmax(-1) @ v)


def plain_attention(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, is_causal: bool) -> Tensor:
    """NaN where a token attends to nothing; torch hides it on some devices."""
    return (q @ k.mT).masked_fill(~attn_mask, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_no_softmax_is_over_nothing(causal):
    net = scattered(Transformer(3, 2, 8, positions=None, causal=causal))
    for block in net.blocks:
        block.attend = plain_attention
    x = torch.randn(4, 5, 3, requires_grad=True)
    y = net(x, mask=EXISTS)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert y.isfinite().all()
    assert slope.isfinite().all()


def test_gradients_are_finite_and_reach_every_parameter(net):
    x, context = drawn(net, 4, 5)
    net(x.requires_grad_(), context, EXISTS).square().sum().backward()
    for name, gradient in {"x": x.grad, **{name: p.grad for name, p in net.named_parameters()}}.items():
        assert gradient.isfinite().all(), name
        assert (gradient != 0).any(), name


def test_compiles_to_one_graph(net):
    torch.compiler.reset()
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    x, context = drawn(net, 4, 5)
    for mask in (None, EXISTS):
        torch.testing.assert_close(compiled(x, context, mask), net(x, context, mask))


def test_vmap_is_a_loop_over_rows(net):
    x, context = drawn(net, 4, 5)
    for mask in (None, EXISTS):
        rows = tuple(on(t, lambda t: 0) for t in (x, context, mask))
        torch.testing.assert_close(vmap(net, rows)(x, context, mask), net(x, context, mask))


SETS = [name for name, options in OPTIONS.items() if options["positions"] is None]


@given(
    name=st.sampled_from(SETS),
    exists=st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=4)
    ),
)
def test_a_masked_row_is_the_row_without_its_padding(name, exists):
    net, mask = made(name), torch.tensor(exists)
    x, context = drawn(net, *mask.shape)
    y = net(x.requires_grad_(), context, mask)
    (slope,) = torch.autograd.grad(y.square().sum(), x)
    assert slope.isfinite().all()
    for i, row in enumerate(mask):
        alone = net(x[i, row], on(context, lambda c, i=i, row=row: c[i, row]))
        torch.testing.assert_close(y[i], torch.zeros(len(row), OUTPUTS).masked_scatter(row[:, None], alone))


def test_dropout_disturbs_training_and_nothing_else():
    net = scattered(Transformer(3, 2, 8, positions=None, dropout=0.5))
    x = torch.randn(4, 5, 3)
    assert not torch.equal(net.train()(x), net(x))
    assert torch.equal(net.eval()(x), net(x))


def test_saved_weights_have_the_names_they_always_had():
    """Of what saved models are made of; weights of 0.1.0 load."""
    names = {name.replace("blocks.0.", "") for name in Transformer(3, 2, 8, 1, positions=5).state_dict()}
    layers = ("embed", "head", "norm", "before_attention", "before_mlp", "query_key_value", "mix", "mlp.0", "mlp.2")
    assert names == {"place", *(f"{layer}.{part}" for layer in layers for part in ("weight", "bias"))}


def forward(*batch: int, context: Any = None, mask: Any = None) -> Tensor:
    return Transformer(3, 2, 8, positions=5, context=4)(torch.randn(*batch, 3), context, mask)


ERRORS = {
    "attention": (
        lambda: Transformer(3, 2, 8, positions=None, attention="cosine"),
        "attention: got 'cosine'; expected one of dot, l2",
    ),
    "activation": (
        lambda: Transformer(3, 2, 8, positions=None, activation="relu"),
        "activation: got 'relu'; expected one of silu, gelu",
    ),
    "dropout": (
        lambda: Transformer(3, 2, 8, positions=None, dropout=1.0),
        "dropout: got 1.0; expected 0 <= dropout < 1",
    ),
    "context": (lambda: forward(2, 5), r"x, context: got tokens of sizes \(3, 0\); expected \(3, 4\)"),
    "tokens": (
        lambda: forward(2, 6, context=torch.randn(2, 6, 4)),
        "x: got 6 tokens; expected at most 5, the learned positions",
    ),
    "mask-shape": (
        lambda: forward(2, 5, context=torch.randn(2, 5, 4), mask=torch.ones(5, 5, dtype=torch.bool)),
        r"mask: got torch.bool of shape \(5, 5\); expected torch.bool of shape \(2, 5\)",
    ),
    "mask-dtype": (
        lambda: forward(2, 5, context=torch.randn(2, 5, 4), mask=torch.ones(2, 5)),
        r"mask: got torch.float64 of shape \(2, 5\); expected torch.bool",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_name_what_came_and_what_was_expected(name):
    call, message = ERRORS[name]
    with pytest.raises(ValueError, match=message):
        call()
