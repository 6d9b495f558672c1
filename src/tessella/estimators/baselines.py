"""What one would use instead, on the same rows and in the same measure: exact likelihoods of mixed tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tessella.baselines import Baseline, CausalTransformer, ChowLiu, Independent
from tessella.baselines.choosing import fit_mixture
from tessella.baselines.trees import mutual_information
from tessella.contracts import Batch
from tessella.data import Encoding, Rows
from tessella.estimators.coding import Codes, NumberDistribution, number_distributions, smoothed
from tessella.estimators.learning import Plan, dropout, limited_epochs, on_gpu, single_precision, train_by_plan
from tessella.training.randomness import derived_seed, fork_rng

SIZES = (8, 16, 32)  # codes of each number
SECONDS_FOR_MIXTURE = 30.0  # as many components as the validation rows like and this leaves time for
SMOOTHINGS = (1.0, 8.0)  # of the tree
LARGEST_TABLE = 2**22  # pairs of categories that the tree may join; it is also tried with a quarter of the rows
ON_CPU, ON_GPU = (64, 2, 4e-3), (256, 6, 1e-3)  # transformers: width, layers, learning rate
PLAN = Plan(
    seed=0, device="auto", max_steps=None, time_budget=60.0, learning_rate=ON_CPU[2], batch_size=128, progress=False
)
"""How the transformer is trained where nobody says; its learning rate goes with its size."""


@dataclass(frozen=True)
class FittedBaseline:
    """log p(row) = log P(codes) + log p(numbers | codes): a `Likelihood` of mixed rows from a model of codes."""

    name: str
    model: Baseline
    codes: Codes
    rows: int
    """Training rows it learned from."""
    exact: bool = True

    @torch.no_grad()
    def log_prob(self, *batch: Tensor, samples: int | None = None) -> Tensor:
        """Log-likelihood of each row, in nats: (B); exact, whatever `samples` says."""
        return self.model.log_prob(self.codes.codes(*batch)).double() + self.codes.log_spread(*batch)

    def sample(self, rows: int) -> Batch:
        """So many new rows."""
        return self.codes.draw(*self.model.sample(rows))


Candidates = Callable[[Sequence[int], Tensor, Tensor, Plan], Iterator[Baseline]]


def _mixtures(counts: Sequence[int], train: Tensor, validation: Tensor, plan: Plan) -> Iterator[Baseline]:
    yield fit_mixture(counts, train, validation, seconds=SECONDS_FOR_MIXTURE, seed=plan.seed, progress=plan.progress)


def _trees(counts: Sequence[int], train: Tensor, validation: Tensor, plan: Plan) -> Iterator[Baseline]:
    information = mutual_information(train, counts)
    for largest in (LARGEST_TABLE, len(train) // 4):
        for smoothing in SMOOTHINGS:
            yield ChowLiu(counts).fit(train, smoothing, largest, information)


def _transformers(counts: Sequence[int], train: Tensor, validation: Tensor, plan: Plan) -> Iterator[Baseline]:
    with single_precision(), fork_rng(torch.device("cpu")):
        torch.manual_seed(derived_seed(plan.seed, "transformer"))
        width, layers, rate = _size(plan)
        model = CausalTransformer(counts, width, layers, dropout(len(train)))
        plan = limited_epochs(replace(plan, learning_rate=rate), len(train))
        train_by_plan(model, (Rows(train), Rows(validation)), plan)
    yield model.cpu()


def _size(plan: Plan) -> tuple[int, int, float]:
    """A transformer that minutes are enough for."""
    return ON_GPU if on_gpu(plan.device) else ON_CPU


def _independent(counts: Sequence[int], train: Tensor, validation: Tensor, plan: Plan) -> Iterator[Baseline]:
    """Every column with the smoothing that the validation rows like best."""
    model = Independent(counts)
    for j, count in enumerate(counts):
        frequency, seen = (torch.bincount(part[:, j], minlength=count).double() for part in (train, validation))
        model.log_table[model.segment(j)] = smoothed(frequency, seen)
    yield model


@dataclass(frozen=True)
class Recipe:
    """Models that the validation rows choose from, most training rows for them, and codes of each number."""

    candidates: Candidates
    rows: int | None
    sizes: tuple[int | None, ...] = SIZES


MIXTURE = "mixture of categoricals"
MODELS: dict[str, Recipe] = {
    MIXTURE: Recipe(_mixtures, 20_000),
    "Chow-Liu tree": Recipe(_trees, 50_000),
    "causal transformer": Recipe(_transformers, None, (48,)),
    "independent columns": Recipe(_independent, None, (None,)),
}
"""Models by name; the last is what the others are measured against."""


def fit_baselines(
    encoding: Encoding, train: Batch, validation: Batch, plan: Plan = PLAN, names: Iterable[str] = tuple(MODELS)
) -> list[FittedBaseline]:
    """One of each, with the settings that the validation rows like best.

    Args:
        encoding: of the rows.
        train, validation: rows, in random order.
        plan: how the transformer is trained: seconds, device, whether to show progress.
        names: which of them.
    """
    distributions = number_distributions(encoding, train, validation)
    return [_best(name, encoding, distributions, (train, validation), plan) for name in names]


def _best(
    name: str, encoding: Encoding, distributions: Sequence[NumberDistribution], rows: tuple[Batch, Batch], plan: Plan
) -> FittedBaseline:
    recipe, validation = MODELS[name], rows[1]
    train = tuple(part[: recipe.rows] for part in rows[0])
    tried = []
    for codes in [
        Codes(encoding, distributions, size) for size in (recipe.sizes if distributions else recipe.sizes[:1])
    ]:
        for model in recipe.candidates(codes.counts, codes.codes(*train), codes.codes(*validation), plan):
            baseline = FittedBaseline(name, model, codes, len(train[0]))
            tried.append((float(baseline.log_prob(*validation).mean()), baseline))
    return max(tried, key=lambda pair: pair[0])[1]
