"""`MixtureFlow`: an exact density of rows of real numbers, and the cell of each row."""

import numbers
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from tessella import checks, configs
from tessella.densities import DensityConfig, DisjointMixture, Flow, GaussianMixture
from tessella.estimators import saving
from tessella.estimators.cells import MANY_ROWS, learn
from tessella.estimators.learning import (
    Device,
    Plan,
    check_settings,
    limited_threads,
    split_rows,
)
from tessella.models import build_vectors
from tessella.models.restoring import DamagedModelError, restored, sound
from tessella.training import StopReason
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

ROWS_AT_ONCE = 1000
VALIDATION_ROWS = 5000  # of each look during training
FAST, SLOW = 5e-3, 1e-3  # few rows are learned by heart in a few fast steps


class MixtureFlow(saving.Loadable, DensityMixin, BaseEstimator):
    """log p(x) = log p(k) + log p_comp(A_k f_k^-1(x) | k) + log-determinants, k the cell that holds x.

    A disjoint mixture: every row belongs to exactly one component, so its density is exact and costs one component
    however many there are. It starts from a Gaussian mixture, whose means are the anchors of its cells; A_k is an
    affine map that makes the rows of a cell white, and the component a flow of spline couplings. If the validation rows
    do not prefer it to the Gaussian mixture, that is the model (`density_`). Densities are per unit of the columns as
    they come; inside, columns are standardised.

    For columns of real numbers without repeated values: where exact values come again and again, a density has no
    bound. Tables with categories, counts or missing values are for `TabularFlow`.

    Args:
        components: K, cells of the mixture; None: as the validation rows choose. Gaussian mixtures of 1, 2, 4, ..., 128
            components are fitted as long as more are better; then flows with as many cells as the best, a quarter and a
            sixteenth of it are trained for a moment.
        blocks: coupling blocks inside the cells.
        width: width of their networks.
        time_budget: seconds of fitting; the learning-rate schedule is fitted to it. None: 300, or no limit where
            `max_steps` is given.
        max_steps: most updates; None: as many as the time budget allows, but not more than 100 epochs (or 1000 updates,
            where those are fewer).
        learning_rate: peak learning rate; None: 0.005, or 0.001 for fewer than 10,000 rows to learn from.
        batch_size: rows per update.
        validation_fraction: share of the rows held out to choose by: components, when to stop, what to keep.
        device: "auto", "cpu" or "cuda".
        threads: of training on a CPU; None: as many as short trials find fastest, again when the pace collapses.
        random_state: fixes split, training and samples; to the last digit, where `threads` and `max_steps` are fixed.
        progress: show a progress bar.

    Attributes:
        density_: what the model is: "flow", or "gaussian mixture" where the flow learned nothing beyond it.
        components_: K.
        weights_: p(k), (K,).
        config_: everything that was chosen about the density.
        n_features_in_: columns.
        feature_names_in_: their names, where the fitted table had some.
        history_: step, seconds, loss and validation value (nats per row) during training.
        initial_validation_: mean negative log-density of the validation rows under the Gaussian mixture, in nats.
        best_validation_: the same under the model; never more.
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
        components: int | None = None,
        *,
        blocks: int = 4,
        width: int = 64,
        time_budget: float | None = None,
        max_steps: int | None = None,
        learning_rate: float | None = None,
        batch_size: int = 1024,
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
        learned = learn(train, validation, self.components, self.blocks, self.width, self._plan(len(train)))
        self.config_, self.density_, self.model_ = learned.config, learned.kept, learned.model
        self.model_.double()  # so that a row has the same density alone and among others
        result = learned.result
        self.history_ = [{key: self._in_units(key, value) for key, value in row.items()} for row in learned.history]
        self.initial_validation_ = learned.initial_validation + self._log_unit
        self.best_validation_ = learned.validation + self._log_unit
        self.n_iter_, self.stopped_, self.threads_ = result.steps, result.stopped, result.threads
        return self

    @limited_threads
    @torch.no_grad()
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row, in nats: exact."""
        parts = self._parts(X)
        with sound("log-density"):
            scores = np.concatenate([self.model_.density.log_prob(part).cpu().numpy() for part in parts])
        scores -= self._log_unit
        if not np.isfinite(scores).all():
            bad = np.flatnonzero(~np.isfinite(scores))
            raise DamagedModelError(f"log-density: {len(bad)} of {len(scores)} rows are not finite (first: {bad[:5]})")
        return scores

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of the rows, in nats."""
        return float(self.score_samples(X).mean())

    @limited_threads
    @torch.no_grad()
    def predict(self, X: Any) -> np.ndarray:
        """The cell of each row, 0 to K - 1, or the Gaussian it is most probably of: a clustering."""
        parts = self._parts(X)
        with sound("predict"):
            return np.concatenate([self._component(part).cpu().numpy() for part in parts])

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
        with fork_rng(device), sound("sample"):
            seed_noise(derived_seed(int(check_random_state(state).randint(2**31 - 1)), "sample"), device)
            rows = self.model_.density.sample((int(n),))
            checks.finite("rows drawn", rows)
        return rows.cpu().numpy() * self.scale_ + self.mean_

    def save(self, folder: Path | str) -> None:
        """Write the estimator into a folder, as JSON and safetensors."""
        check_is_fitted(self, "model_")
        fitted = {name: getattr(self, name) for name in _FITTED}
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS if hasattr(self, name)}
        said = {"fitted": fitted, "arrays": arrays, "config": configs.to_json(self.config_)}
        saving.write(Path(folder), self, said, self.model_)

    def _restore(self, said: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
        self._check_parameters()
        for name, value in saving.fitted(_FITTED, said["fitted"]).items():
            setattr(self, name, value)
        for name, values in said["arrays"].items():
            kind = object if name == "feature_names_in_" else np.float64
            setattr(self, name, np.array(configs.checked(_ARRAYS[name], tuple(values), name), dtype=kind))
            if len(values) != self.n_features_in_:
                raise ValueError(f"{name}: got {len(values)} values; expected {self.n_features_in_}, one a column")
        if not (np.isfinite(self.mean_).all() and np.isfinite(self.scale_).all() and (self.scale_ > 0).all()):
            raise ValueError(f"scale_: got {self.scale_}; expected finite numbers above 0")
        self.config_ = configs.from_json(DensityConfig, said["config"])  # type: ignore[type-abstract]  # a family is meant
        model = restored(lambda: build_vectors(self.config_, self.n_features_in_).double(), said["config"], weights)
        self.model_ = model
        return self.model_

    @property
    def weights_(self) -> np.ndarray:
        """p(k), (K,)."""
        check_is_fitted(self, "model_")
        return self._mixture.log_weights().exp().detach().cpu().numpy()

    @property
    def components_(self) -> int:
        """K."""
        return len(self.weights_)

    @property
    def _mixture(self) -> DisjointMixture | GaussianMixture:
        density = self.model_.density
        mixture = density.base if isinstance(density, Flow) else density
        assert isinstance(mixture, DisjointMixture | GaussianMixture)
        return mixture

    def _component(self, x: Tensor) -> Tensor:
        density, mixture = self.model_.density, self._mixture
        if isinstance(mixture, GaussianMixture):
            return mixture.log_joint(x).argmax(-1)
        assert isinstance(density, Flow)
        return mixture.tessellation.nearest(density.bijection.forward_and_ladj(x)[0])

    @property
    def _log_unit(self) -> float:
        """log-density in the columns' units = log-density of standardised rows - this."""
        return float(np.log(self.scale_).sum())

    def _plan(self, rows: int) -> Plan:
        rate = FAST if rows >= MANY_ROWS else SLOW
        return Plan(
            seed=self.seed_,
            device=self.device,
            max_steps=self.max_steps,
            time_budget=self.time_budget,
            learning_rate=rate if self.learning_rate is None else self.learning_rate,
            batch_size=self.batch_size,
            progress=self.progress,
            threads=self.threads,
            validation_rows=VALIDATION_ROWS,
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
        if self.components is not None and different < self.components:
            raise ValueError(
                f"components: got {self.components}; expected at most {different}, the number of different training "
                f"rows (n_samples = {len(train)})"
            )

    def _check_parameters(self) -> None:
        check_settings(self.device, self.time_budget, self.validation_fraction, self.threads, self.random_state)
        for name, least in {"components": 1, "blocks": 0, "width": 1}.items():
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise ValueError(f"{name}: got {getattr(self, name)}; expected at least {least}")

    def _in_units(self, key: str, value: float) -> float:
        return value + self._log_unit if key in ("loss", "validation") else value


_FITTED: dict[str, Any] = {
    "seed_": int,
    "n_features_in_": int,
    "density_": Literal["flow", "gaussian mixture"],
    "history_": list[dict[str, Any]],
    "initial_validation_": float,
    "best_validation_": float,
    "n_iter_": int,
    "stopped_": StopReason,
    "threads_": int,
}
"""Attributes that are saved, and their types."""
_ARRAYS: dict[str, Any] = {
    "mean_": tuple[float, ...],
    "scale_": tuple[float, ...],
    "feature_names_in_": tuple[str, ...],
}
