"""A fitted mixed table is audited, and a corrupted copy of it does not pass."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
import torch
from tests.estimators.frames_for_tests import cell_flow, small_flow

from tessella.data import Encoding
from tessella.data.tables.columns import learn
from tessella.estimators import TabularFlow
from tessella.estimators.audits import audit, grid_of, measure
from tessella.estimators.baselines import fit_baselines
from tessella.evaluation import integral_audit
from tessella.models import SemiDiscrete

ROWS = 500


def table() -> pd.DataFrame:
    """The colour says the weight, which is missing in every eighth row and exactly 0 in every fifth."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], ROWS)
    weight = np.where(colour == "blue", 50, 10) + 3 * rng.standard_normal(ROWS)
    weight[rng.random(ROWS) < 0.2] = 0
    weight[rng.random(ROWS) < 0.125] = np.nan
    return pd.DataFrame({"colour": colour, "weight": weight})


@pytest.fixture(scope="module")
def flow() -> TabularFlow:
    return cell_flow(max_steps=100, samples=16).fit(table())


def with_model(flow: TabularFlow, model: SemiDiscrete) -> TabularFlow:
    other = copy(flow)
    other.model_ = model
    return other


class Inflated(SemiDiscrete):
    """0.3 nats too many for every row."""

    def elbo(self, *batch):
        return super().elbo(*batch) + 0.3


class Scrambled(SemiDiscrete):
    """Colours of other rows: right columns, wrong rows."""

    def sample(self, rows):
        codes, numbers = super().sample(rows)
        codes[:, 0] = codes[torch.randperm(rows), 0]
        return codes, numbers


def verdicts(flow: TabularFlow) -> dict[str, bool | None]:
    return {one.name: one.passed for one in audit(flow)}


def test_a_fitted_table_passes(flow):
    assert verdicts(flow) == {"integral": True, "sandwich": True, "agreement": True}


@pytest.mark.parametrize("density", ["autoregressive", "blocks"])
def test_an_exact_density_passes(density):
    flow = small_flow(density=density, max_steps=100).fit(table())
    found = {one.name: one for one in audit(flow)}
    assert {name: one.passed for name, one in found.items()} == dict.fromkeys(
        ("integral", "sandwich", "agreement"), True
    )
    assert flow.exact_
    assert found["sandwich"].value == {"width": 0.0}
    assert found["agreement"].value["log_mass"] == pytest.approx(0, abs=0.05)


def test_the_same_audit_says_the_same_and_leaves_the_noise_alone(flow):
    noise = torch.get_rng_state()
    first, again = (audit(flow, samples=4, rows=200) for _ in range(2))
    assert first == again
    assert torch.equal(noise, torch.get_rng_state())


def test_scores_that_are_too_high_fail(flow):
    found = verdicts(with_model(flow, Inflated(flow.model_.dequantizer, flow.model_.density)))
    assert found == {"integral": False, "sandwich": False, "agreement": False}


def test_rows_that_were_not_drawn_from_the_model_fail(flow):
    found = verdicts(with_model(flow, Scrambled(flow.model_.dequantizer, flow.model_.density)))
    assert found == {"integral": True, "sandwich": True, "agreement": False}


def test_a_table_of_categories_sums_to_one():
    flow = cell_flow(samples=64).fit(pd.DataFrame({"a": list("xyxy") * 30, "b": list("ppqr") * 30}))
    found = verdicts(flow)
    assert set(found) == {"sum to one", "sandwich", "agreement"}
    assert False not in found.values()


def test_values_are_those_of_score_samples(flow):
    result, scores = measure(flow, table()), flow.score_samples(table())
    assert result.iw_nll == pytest.approx(-scores.mean(), abs=1e-6)
    assert result.stderr == pytest.approx(scores.std(ddof=1) / ROWS**0.5, abs=1e-6)


COLUMNS = {
    "a number with missing values and zeros": [
        table()["colour"].tolist(),
        table()["weight"].replace(np.nan, None).tolist(),
    ],
    "a count": [list("ab") * 250, np.random.default_rng(1).poisson(40, ROWS).tolist()],
    "a number with long tails": [np.random.default_rng(2).standard_cauchy(ROWS).tolist()],
}


@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_grids_hold_all_rows(columns):
    """Exact models of such tables integrate to one over them."""
    encoding = Encoding(tuple(learn(f"column {i}", values, None, None) for i, values in enumerate(columns)))
    batch = encoding.encode(columns)
    train, validation = tuple(part[:400] for part in batch), tuple(part[400:] for part in batch)
    (model,) = fit_baselines(encoding, train, validation, names=("mixture of categoricals",))
    grid = grid_of(encoding, model.sample(4000), 40_000)
    assert grid is not None
    result = integral_audit(model, grid)
    assert result.passed, result


def test_large_tables_have_no_grid(columns):
    encoding = Encoding(tuple(learn(name, values, None, None) for name, values in columns.items()))
    assert grid_of(encoding, encoding.encode(list(columns.values())), 400_000) is None
