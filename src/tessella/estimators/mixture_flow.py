"""`MixtureFlow`: an exact density of rows of real numbers, and the cell of each row."""

import numbers
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from tessella.data import Rows
from tessella.densities import DisjointMixture, DisjointMixtureConfig, Flow
from tessella.estimators import saving
from tessella.estimators.learning import (
    Device,
    Plan,
    check_settings,
    limited_threads,
    single_precision,
    split_rows,
    to_device,
    train_by_plan,
)
from tessella.models import VectorModel, build_vectors
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

ROWS_AT_ONCE = 10_000


class MixtureFlow(DensityMixin, BaseEstimator):
    """log p(x) = log p(k) + log p_comp(f_k^-1(z) | k) + log-determinants, z = flow(x), k the cell that holds z.

    A disjoint mixture: every row belongs to exactly one component, so its density is exact and costs one component
    however many there are. Densities are per unit of the columns as they come; inside, columns are standardised.

    For columns of real numbers without repeated values: where exact values come again and again, a density has no
    bound. Tables with categories, counts or missing values are for `TabularFlow`.

    Args:
        components: K, cells of the mixture.
        blocks: coupling blocks before the cells, which bend their borders, and as many inside them.
        width: width of their networks.
        time_budget: seconds of training; the learning-rate schedule is fitted to it. None: no limit.
        max_steps: most updates; None: 3000, or as many as the time budget allows.
        learning_rate: peak learning rate.
        batch_size: rows per update; the first batch places the cells, so it has at least as many rows as components.
        validation_fraction: share of the rows held out for early stopping.
        device: "auto", "cpu" or "cuda".
        threads: of training on a CPU; None: as many as short trials find fastest, again when the pace collapses.
        random_state: fixes split, training and samples; to the last digit, where `threads` is fixed too.
        progress: show a progress bar.

    Attributes:
        weights_: p(k), (K,).
        n_features_in_: columns.
        feature_names_in_: their names, where the fitted table had some.
        history_: step, seconds, loss and validation value (nats per row) during training.
        best_validation_: the lowest mean negative log-density of the validation rows, in nats.
        n_iter_: updates done.
        threads_: threads of its last one; 0 on a GPU.
        stopped_: why training ended: "steps", "patience", "time_budget" or "interrupted" (Ctrl-C keeps the best).

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> flow = MixtureFlow(components=2, blocks=1, width=8, max_steps=5, device="cpu", random_state=0, progress=False)
    >>> flow.fit(x).score_samples(x).shape, flow.sample(3).shape
    ((100,), (3, 2))
    """

    def __init__(
        self,
        components: int = 16,
        *,
        blocks: int = 4,
        width: int = 64,
        time_budget: float | None = None,
        max_steps: int | None = None,
        learning_rate: float = 2e-3,
        batch_size: int = 256,
        validation_fraction: float = 0.1,
        device: Device = "auto",
        threads: int | None = None,
        random_state: Any = None,
        progress: bool = True,
    ):
        self.components = components
        self.blocks = blocks
        self.width = width
        self.time_budget = time_budget
        self.max_steps = max_steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.validation_fraction = validation_fraction
        self.device = device
        self.threads = threads
        self.random_state = random_state
        self.progress = progress

    @limited_threads
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the density of the rows (n, D) of an array or a table of numbers; `y` is ignored."""
        self._check_parameters()
        rows = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.mean_, self.scale_ = rows.mean(0), self._scales(rows)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        parts = split_rows(len(rows), self.seed_, self.validation_fraction)
        train, validation = (self._standardised(rows[parts[name]]).float() for name in ("train", "validation"))
        self._check_enough(train)
        with single_precision(), fork_rng(torch.device("cpu")):
            torch.manual_seed(derived_seed(self.seed_, "model"))
            self.model_ = self._build()
            result, history = train_by_plan(self.model_, (Rows(train), Rows(validation)), self._plan())
        self.model_.double()  # so that a row has the same density alone and among others
        self.history_ = [{key: self._in_units(key, value) for key, value in row.items()} for row in history]
        self.best_validation_ = result.best_validation + self._log_unit
        self.n_iter_, self.stopped_, self.threads_ = result.steps, result.stopped, result.threads
        return self

    @limited_threads
    @torch.no_grad()
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row, in nats: exact."""
        scores = np.concatenate([self._density.log_prob(part).cpu().numpy() for part in self._parts(X)])
        scores -= self._log_unit
        if not np.isfinite(scores).all():
            bad = np.flatnonzero(~np.isfinite(scores))
            raise ArithmeticError(f"log-density: {len(bad)} of {len(scores)} rows are not finite (first: {bad[:5]})")
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of the rows, in nats."""
        return float(self.score_samples(X).mean())

    @limited_threads
    @torch.no_grad()
    def predict(self, X: Any) -> np.ndarray:
        """The cell of each row, 0 to K - 1: a clustering."""
        bent = (self._density.bijection.forward_and_ladj(part)[0] for part in self._parts(X))
        return np.concatenate([self._mixture.tessellation.nearest(z).cpu().numpy() for z in bent])

    @limited_threads
    @torch.no_grad()
    def sample(self, n: int = 1, random_state: Any = None) -> np.ndarray:
        """New rows, (n, D).

        Args:
            n: number of rows.
            random_state: of this call; None takes the estimator's, so that an integer there repeats the same rows.
        """
        check_is_fitted(self, "model_")
        if not isinstance(n, numbers.Integral) or n < 1:
            raise ValueError(f"n: got {n!r}; expected a positive integer")
        state = self.random_state if random_state is None else random_state
        device = next(self.model_.parameters()).device
        with fork_rng(device):
            seed_noise(derived_seed(int(check_random_state(state).randint(2**31 - 1)), "sample"), device)
            rows = self._density.sample((int(n),))
        return rows.cpu().numpy() * self.scale_ + self.mean_

    def save(self, folder: Path | str) -> None:
        """Write the estimator into a folder, as JSON and safetensors."""
        check_is_fitted(self, "model_")
        fitted = {name: getattr(self, name) for name in _FITTED}
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS if hasattr(self, name)}
        saving.write(Path(folder), self, {"fitted": fitted, "arrays": arrays}, self.model_)

    @classmethod
    def load(cls, folder: Path | str, device: Device = "auto") -> Self:
        """The estimator that `save` wrote, on a device of this machine; nothing in the folder is executed."""
        said, weights = saving.read(Path(folder), cls.__name__)
        flow = cls(**{**said["params"], "device": device})
        flow._check_parameters()
        for name in _FITTED:
            setattr(flow, name, said["fitted"][name])
        for name, values in said["arrays"].items():
            setattr(flow, name, np.array(values, dtype=_ARRAYS[name]))
        flow.model_ = flow._build().double()
        saving.give_weights(flow.model_, weights, Path(folder))
        to_device(flow.model_, device)
        return flow

    @property
    def weights_(self) -> np.ndarray:
        """p(k), (K,)."""
        check_is_fitted(self, "model_")
        return self._mixture.log_weights().exp().detach().cpu().numpy()

    @property
    def _density(self) -> Flow:
        assert isinstance(self.model_.density, Flow)
        return self.model_.density

    @property
    def _mixture(self) -> DisjointMixture:
        assert isinstance(self._density.base, DisjointMixture)
        return self._density.base

    @property
    def _log_unit(self) -> float:
        """log-density in the columns' units = log-density of standardised rows - this."""
        return float(np.log(self.scale_).sum())

    def _build(self) -> VectorModel:
        config = DisjointMixtureConfig(
            cells=self.components, blocks=self.blocks, component_blocks=self.blocks, width=self.width
        )
        with single_precision():
            return build_vectors(config, self.n_features_in_)

    def _plan(self) -> Plan:
        return Plan(
            seed=self.seed_,
            device=self.device,
            max_steps=self.max_steps,
            time_budget=self.time_budget,
            learning_rate=self.learning_rate,
            batch_size=max(self.batch_size, self.components),
            progress=self.progress,
            threads=self.threads,
        )

    def _parts(self, X: Any) -> Iterator[Tensor]:
        """Standardised rows like those of fit, some at a time, where the model is."""
        check_is_fitted(self, "model_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        device = next(self.model_.parameters()).device
        return (part.to(device) for part in self._standardised(rows).split(ROWS_AT_ONCE))

    def _standardised(self, rows: np.ndarray) -> Tensor:
        return torch.from_numpy((rows - self.mean_) / self.scale_)

    def _scales(self, rows: np.ndarray) -> np.ndarray:
        """Standard deviations; each column must have one."""
        scales: np.ndarray = rows.std(0)
        for column in np.flatnonzero(~(scales > 0) | ~np.isfinite(scales)):
            name = getattr(self, "feature_names_in_", range(len(scales)))[column]
            raise ValueError(
                f"column {name!r}: got numbers of standard deviation {scales[column]}; expected a positive, finite "
                "one, since a constant has no density"
            )
        return scales

    def _check_enough(self, train: Tensor) -> None:
        different = len(train.unique(dim=0))
        if different < self.components:
            raise ValueError(
                f"components: got {self.components}; expected at most {different}, the number of different training "
                f"rows (n_samples = {len(train)})"
            )

    def _check_parameters(self) -> None:
        check_settings(self.device, self.time_budget, self.validation_fraction)
        for name, least in {"components": 1, "blocks": 0, "width": 1}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")

    def _in_units(self, key: str, value: float) -> float:
        return value + self._log_unit if key in ("loss", "validation") else value


_FITTED = ("seed_", "n_features_in_", "history_", "best_validation_", "n_iter_", "stopped_", "threads_")
_ARRAYS = {"mean_": np.float64, "scale_": np.float64, "feature_names_in_": object}
