"""Laws of models of texts: probabilities that sum to one, tight bounds, causality, and draws that follow them."""

from itertools import islice, product

import pytest
import torch

from tessella.dequantizers import BinaryConfig, CharacterDequantizer, CharacterNoise, OrdinalConfig, VoronoiConfig
from tessella.evaluation import evaluate, sandwich_audit, sum_to_one_audit
from tessella.models import (
    CausalText,
    DisjointText,
    DisjointTextConfig,
    SemiDiscrete,
    SoftmaxTextConfig,
    TextConfig,
    TextFlowConfig,
    TextShape,
    characters,
)
from tessella.models.texts import Walk
from tessella.nets import AttentionConfig, LSTMConfig

ATTENTION, LSTM = AttentionConfig(8, 2, head=4), LSTMConfig(8, 6, 2)
NOISE = CharacterNoise(1, 4, 8, 1)
VORONOI = VoronoiConfig(3, shared=True, spread=0.3)
EXACT = {
    "softmax": SoftmaxTextConfig(ATTENTION),
    "softmax, lstm": SoftmaxTextConfig(LSTM),
    "disjoint": DisjointTextConfig(ATTENTION, VORONOI),
    "disjoint, binary": DisjointTextConfig(LSTM, BinaryConfig()),
}
FLOWS = {
    "voronoi": TextFlowConfig(ATTENTION, VORONOI, NOISE, 2, 8),
    "voronoi, lstm": TextFlowConfig(LSTM, VORONOI, NOISE, 2, 8),
    "binary": TextFlowConfig(ATTENTION, BinaryConfig(), NOISE, 2, 8),
    "ordinal": TextFlowConfig(ATTENTION, OrdinalConfig(), NOISE, 2, 8),
}
SHAPE = TextShape(characters=4, length=3)
ROWS = torch.tensor(list(product(range(4), repeat=3)))


def built(config: TextConfig, shape: TextShape = SHAPE):
    """A model that has seen a text and moved from where it began."""
    codes = torch.randint(shape.characters, (500,), dtype=torch.uint8)
    model = config.start(shape, codes)
    model.initialize(codes[: 10 * shape.length].view(10, shape.length))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "cells" not in name:  # noise is narrow: what hardly moves a network takes points far from components
                parameter.add_((0.02 if isinstance(model, SemiDiscrete) else 0.1) * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
def test_probabilities_of_all_texts_sum_to_one(config):
    model = built(config)
    assert sum_to_one_audit(model, (4, 4, 4)).passed
    assert model.log_prob(ROWS).exp().sum().item() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("config", [config for name, config in EXACT.items() if "disjoint" in name])
def test_the_bound_of_disjoint_mixtures_is_tight(config):
    """Weights are computed from the points alone, each draw another one: they are P(c), all of them."""
    model = built(config)
    assert isinstance(model, DisjointText)
    x, _ = model.dequantizer.dequantize(ROWS)
    assert x.std() > 0.1
    weights = model.log_weights(ROWS, samples=7)
    torch.testing.assert_close(weights, model.log_prob(ROWS).expand(7, -1), atol=1e-9, rtol=0)


def test_cells_do_nothing_for_the_likelihood_of_disjoint_mixtures():
    plain, disjoint = built(EXACT["softmax"]), built(EXACT["disjoint"])
    missing, _ = plain.load_state_dict(disjoint.state_dict(), strict=False)
    assert not missing
    torch.testing.assert_close(plain.log_prob(ROWS), disjoint.log_prob(ROWS))


@pytest.mark.parametrize("config", FLOWS.values(), ids=FLOWS)
def test_flows_are_lower_bounds_that_find_the_mass(config):
    model = built(config)
    assert isinstance(model, SemiDiscrete)
    audit = sum_to_one_audit(model, (4, 4, 4), samples=400)
    assert audit.value["total"] < 1 + 4 * audit.value["error"]
    assert audit.value["total"] > 0.9
    result = evaluate(model, (ROWS,), samples=20)
    assert result.iw_nll <= result.elbo_nll
    assert "lower bound is above" not in sandwich_audit(model, rows=64, samples=20).message


@pytest.mark.parametrize("config", FLOWS.values(), ids=FLOWS)
def test_points_lie_in_the_cells_of_their_characters(config):
    model, codes = built(config), torch.randint(4, (50, 3))
    x, log_q = model.dequantizer.dequantize(codes)
    assert torch.equal(model.dequantizer.quantize(x)[0], codes)
    torch.testing.assert_close(model.dequantizer.log_prob(x, codes), log_q)
    other = (codes + 1) % 4
    assert (model.dequantizer.log_prob(x, other) == -torch.inf).all()


@pytest.mark.parametrize("config", EXACT.values(), ids=EXACT)
def test_a_character_depends_on_those_before_it_alone(config):
    model, codes = built(config, TextShape(4, 9)), torch.randint(4, (5, 9))
    later = codes.clone()
    later[:, 6:] = (later[:, 6:] + 1) % 4
    before, after = model.log_conditionals(codes), model.log_conditionals(later)
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert (before[:, 7:] != after[:, 7:]).any()


@pytest.mark.parametrize("config", [FLOWS["voronoi"], FLOWS["voronoi, lstm"]])
def test_a_point_depends_on_those_before_it_alone(config):
    model = built(config, TextShape(4, 9))
    x = model.density.sample((5,)).requires_grad_()
    before = torch.cat([model.density.first.expand(5, 1, -1), model.density.embedded(x[:, :-1])], 1)
    own = model.density.conditional.log_prob(x, model.density.net(before))
    (gradient,) = torch.autograd.grad(own[:, 5].sum(), x)
    assert (gradient[:, 6:] == 0).all()
    assert (gradient[:, :6] != 0).any(-1).all()


@pytest.mark.parametrize("config", [*EXACT.values(), FLOWS["voronoi"], FLOWS["voronoi, lstm"]])
def test_kept_states_are_those_of_one_pass(config):
    """Also where a walk begins again with the last half of a window: 11 values, at most 8 in the network."""
    model = built(config, TextShape(4, 8))
    sequence = model.density if isinstance(model, SemiDiscrete) else model
    values = model.density.sample((3,)) if isinstance(model, SemiDiscrete) else torch.randint(4, (3, 8))
    values = torch.cat([values, values.flip(1)], 1)[:, :11]
    walk, states = Walk(sequence, 3), []
    for value in values.unbind(1):
        states.append(walk.state())
        walk._tell(value)

    def one_pass(some):
        before = torch.cat([sequence.first.expand(3, 1, -1), sequence.embedded(some)], 1)
        return sequence.net(before)

    torch.testing.assert_close(torch.stack(states[:8], 1), one_pass(values[:, :7]))
    first = 0 if sequence.net.forgets else 4  # what was told last when the eighth was there
    torch.testing.assert_close(states[10], one_pass(values[:, first:10])[:, -1])


def test_drawn_characters_have_the_probabilities_that_are_scored():
    model = built(EXACT["softmax"])
    (drawn,) = model.sample(20_000)
    share = torch.bincount((drawn * torch.tensor([16, 4, 1])).sum(1), minlength=64) / 20_000
    torch.testing.assert_close(share, model.log_prob(ROWS).exp(), atol=0.012, rtol=0)


@pytest.mark.parametrize("config", [EXACT["softmax"], FLOWS["voronoi"]])
def test_texts_are_drawn_for_ever_and_begin_with_the_prompt(config):
    model = built(config, TextShape(4, 8))
    drawn = torch.stack(list(islice(characters(model, torch.tensor([1, 2, 3]), rows=3), 20)), 1)
    assert drawn.shape == (3, 20)
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) < 4
    with pytest.raises(ValueError, match=r"temperature: got 0\.0; expected a positive number"):
        next(characters(model, torch.zeros(0), temperature=0.0))


def test_a_prompt_counts():
    model = built(EXACT["softmax"], TextShape(4, 8))
    with torch.no_grad():
        model.embed[2] += 50  # whoever reads a 2 is certain about the next
        model.head.weight.mul_(50)
    prompt = torch.tensor([0, 2])
    logits = model.head(model.net(torch.cat([model.first[None], model.embed[prompt]])[None]))[0, -1]
    sharp = next(characters(model, prompt, rows=50, temperature=0.01))
    assert (sharp == logits.argmax()).all()


def test_characters_outside_of_the_alphabet_are_refused():
    with pytest.raises(
        ValueError, match=r"characters: value 4 at \[0, 1\] is out of range; expected 0 <= characters < 4"
    ):
        built(EXACT["softmax"]).log_prob(torch.tensor([[0, 4, 1]], dtype=torch.uint8))


def test_characters_between_the_same_others_start_as_neighbours():
    """Two kinds of characters, which take turns: each is nearer to its own kind."""
    even, odd = torch.randint(3, (2, 3000))
    text = torch.stack([even, odd + 3], 1).flatten()
    dequantizer = CharacterDequantizer(VoronoiConfig(2, shared=True, placement="profiles").build((6,)), None)
    dequantizer.arrange(text)
    anchors = dequantizer.cells.map.tessellation.anchors.detach()
    distance = torch.cdist(anchors, anchors)
    assert distance[:3, :3].max() < distance[:3, 3:].min()


def test_exact_models_have_one_value_however_rows_are_split():
    model = built(EXACT["softmax"])
    assert isinstance(model, CausalText)
    torch.testing.assert_close(torch.cat([model.log_prob(row[None]) for row in ROWS[:5]]), model.log_prob(ROWS)[:5])
