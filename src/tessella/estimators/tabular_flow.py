"""`TabularFlow`: one joint likelihood for the rows of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tessella import configs
from tessella.contracts import Batch, Stream
from tessella.data import Column, Encoding, Rows
from tessella.data.tables.columns import learn
from tessella.data.tables.described import read_encoding
from tessella.data.tables.values import Value, shown
from tessella.dequantizers import VoronoiCells
from tessella.estimators import frames, saving, streaming
from tessella.estimators.anomalies import contributions, oddness, reasons
from tessella.estimators.asking import Asked
from tessella.estimators.coding import CodedRows, Codes
from tessella.estimators.learners import learn as train
from tessella.estimators.learning import (
    Device,
    Plan,
    check_settings,
    limited_threads,
    split_rows,
)
from tessella.estimators.network import SAMPLES, Kind, build, components_of, log_likelihood
from tessella.estimators.settings import Density, Settings
from tessella.models import AutoregressiveTable, BlocksConfig, TableConfig
from tessella.models.restoring import restored
from tessella.progress import Progress
from tessella.training import StopReason
from tessella.training.processes import launched, own_rank

MANY_CELLS = 100_000  # of a table that takes a while to prepare
MOST_SAMPLES = 100_000  # of a bound


@dataclass(frozen=True)
class Embedding:
    """positions[k] is the learned vector of categories[k]: (K, D)."""

    categories: tuple[Value, ...]
    positions: np.ndarray


class TabularFlow(Asked, saving.Loadable, DensityMixin, BaseEstimator):
    """log p(row) = sum_t log p(x_s(t) | x_s(<t)), exact: how likely each row is, more such rows, and any question.

    One network knows every order s of the columns, so what is given comes first: `sample`, `impute` and `predict` are
    exact under the model, whatever is known and whatever is asked. The likelihood is a mass in categorical, ordinal,
    boolean, count, grid and date columns and a density, per unit of the column, in continuous ones, but for values that
    repeat there (a zero in every second row), which have masses: rows can be compared with each other, tables in other
    units cannot. Missing values are modelled, as a category of their own or by an indicator; no row is dropped.

    Types of columns, where `column_types` does not say: booleans are "boolean"; text is "categorical" ("ordinal" where
    the dtype has an order); integers, also those written as floats, are "ordinal" with at most 30 different values and
    "count" with more; other numbers are "ordinal" with at most 30 values of ten rows each, else "grid" if they are all
    multiples of 0.1, 0.01, ... or 0.000001 and often equal, else "continuous"; dates are "date", counted in days,
    and so are instants, counted in the longest of days, hours, minutes, seconds and milliseconds that divides all. A
    column with a single value is kept, has probability 1, and accepts no other value.

    Args:
        column_types: type of some columns by name: "categorical", "ordinal", "boolean", "count", "grid",
            "continuous", "date".
        density: what the model is. "autoregressive": one column after another in any order, exact. "auto": that, or up
            to 20,000 rows a mixture of categoricals, where validation rows prefer it; exact, too. "blocks": groups of
            columns, each a mixture given those before it, exact. "coupling": a flow through cells that starts from a
            mixture, a lower bound.
        width: of the networks; None: 64 to 256, by rows and device; 32 for "blocks" and "coupling".
        layers: of attention, of "autoregressive"; None: 2 to 4.
        dim: dimensions of each column's cells, of "coupling"; None: 2.
        blocks: coupling blocks, of "coupling"; None: 4.
        components: of the mixture that "coupling" starts from, which statisticians call latent classes; None: as many
            as the validation rows like, up to 256.
        groups: of columns, of "blocks"; None: a column each, two each from 50,000 rows to learn from on; 64 at most.
        time_budget: seconds of training; the learning-rate schedule is fitted to it. None: no limit.
        max_steps: most updates; None: 3000, or as many as the time budget allows, but ("coupling" apart) no more than
            40 epochs, or 12 of "blocks": more would learn rows by heart.
        learning_rate: peak learning rate; None: by density and rows.
        batch_size: rows per update; None: 64, or by rows on a GPU.
        samples: S of the bound that scores, where the model is not exact; None: 64.
        validation_fraction: share of the rows held out for early stopping.
        test_fraction: share of the rows that training does not look at, except for the list of categories and the
            range, the grid and the repeated values of numbers; `parts_` says which.
        unseen: what to do with a category that training did not see: "error", or "missing" to take it for missing.
        device: "auto", "cpu" or "cuda".
        threads: of training on a CPU; None: as many as short trials find fastest, again when the pace collapses.
        memory: gigabytes that a table in Parquet files may take; a larger one is streamed. None: half of what the
            machine has.
        random_state: fixes split, training, scores and samples; to the last digit, where `threads` is fixed too.
        progress: show a progress bar.

    Attributes:
        columns_: what was learned about each column: type, categories, range.
        density_: what the model is: "autoregressive", "blocks" or "coupling" as above, or "mixture": of products of
            categoricals, exact, numbers by ranges and repeated values, where validation rows preferred it.
        exact_: whether scores are likelihoods rather than lower bounds of them.
        start_: what training began with, in words.
        groups_: groups of columns of "blocks"; else 0.
        samples_: S, where a call does not say.
        config_: everything that was chosen about the model.
        components_: of the mixture that the model is, corrects or began as, the last of them a background component for
            rows that belong to no other; of each group's; 0 of "autoregressive" where it corrects none.
        parts_: positions of the "train", "validation" and "test" rows, where the table was streamed those of the rows
            that were kept; not saved.
        history_: step, seconds, loss and validation value (nats per row) during training.
        initial_validation_: mean negative log-likelihood of validation rows before the first update, in nats.
        best_validation_: the same, or an upper bound of it, of the fitted model; never more.
        n_iter_: updates done.
        threads_: threads of its last one; 0 on a GPU.
        stopped_: why training ended: "steps", "patience", "time_budget" or "interrupted" (Ctrl-C keeps the best).
        schema_: how the table was read from a file, which whoever read it may note here; None. Saved with the model.
        effective_sample_size_: of the last `sample`.

    >>> import numpy as np
    >>> table = np.array([["a", "x"], ["b", "y"]] * 50)
    >>> flow = TabularFlow(width=8, max_steps=5, device="cpu", random_state=0, progress=False)
    >>> flow.fit(table).sample(3).shape
    (3, 2)
    """

    def __init__(
        self,
        column_types: Mapping[str, str] | None = None,
        *,
        density: Density = "auto",
        width: int | None = None,
        layers: int | None = None,
        dim: int | None = None,
        blocks: int | None = None,
        components: int | None = None,
        groups: int | None = None,
        time_budget: float | None = None,
        max_steps: int | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        samples: int | None = None,
        validation_fraction: float = 0.1,
        test_fraction: float = 0.0,
        unseen: Literal["error", "missing"] = "error",
        device: Device = "auto",
        threads: int | None = None,
        memory: float | None = None,
        random_state: Any = None,
        progress: bool = True,
    ):
        self.column_types = column_types
        self.density = density
        self.width = width
        self.layers = layers
        self.dim = dim
        self.blocks = blocks
        self.components = components
        self.groups = groups
        self.time_budget = time_budget
        self.max_steps = max_steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.samples = samples
        self.validation_fraction = validation_fraction
        self.test_fraction = test_fraction
        self.unseen = unseen
        self.device = device
        self.threads = threads
        self.memory = memory
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the distribution of the rows of a pandas, polars or pyarrow table or a 2-D array; `y` is ignored.

        X may also be the path of a Parquet file, or of a folder of such files. Where these would take more than
        `memory`, they are streamed: row groups are read in a random order, and the rows of a few of them mixed; at most
        50,000 rows are held out for validation, and for the test, by a hash of their places; atoms and bins of numbers
        are those of 200,000 rows; the density is "autoregressive".

        In a program that `torchrun` started, its processes learn together, a share of each batch each, and all of them
        have the model at the end. `random_state` must be a number then, the same in all of them.
        """
        return self._fit(X, None)

    def fit_resumable(self, X: Any, checkpoints: Path | str) -> Self:
        """`fit`, with the state of training kept in a folder: killed, the same call continues where it was.

        Other rows, or other settings, begin anew. The folder can be removed when the estimator is saved.
        """
        return self._fit(X, Path(checkpoints))

    @limited_threads
    def _fit(self, X: Any, checkpoints: Path | None) -> Self:
        self._check_parameters()
        if launched() > 1 and not isinstance(self.random_state, int | np.integer):
            raise ValueError(
                f"random_state: got {self.random_state!r} in one of {launched()} processes; expected a number, the "
                "same in all of them"
            )
        self.schema_: Mapping[str, Any] | None = None
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.samples_ = self.samples or SAMPLES
        table = streaming.opened(X, self.memory)
        if isinstance(table, streaming.Pieces):
            table = self._surveyed(table)
        rows, stream = self._streamed(table) if isinstance(table, streaming.Survey) else self._whole(table)
        learned = train(self.encoding_, self._settings(), rows, self._plan(checkpoints), stream)
        self.model_, self.config_, self.density_ = learned.model, learned.config, learned.kind
        self.groups_ = self.config_.groups if isinstance(self.config_, BlocksConfig) else 0
        self.start_, self.exact_, self.components_ = learned.start, self.model_.exact, components_of(self.model_)
        self.initial_validation_, self.best_validation_ = learned.initial_validation, learned.validation
        self.n_iter_, self.stopped_, self.history_ = learned.result.steps, learned.result.stopped, learned.history
        self.threads_ = learned.result.threads
        return self

    @limited_threads
    def score_samples(self, X: Any, samples: int | None = None) -> np.ndarray:
        """Log-likelihood of each row, in nats; the same at every call.

        Exact where `exact_` says so, else a lower bound, tighter with more `samples`.
        """
        return log_likelihood(self.model_, self._encode(X), self._samples(samples), self.seed_).numpy()

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        return float(self.score_samples(X).mean())

    @limited_threads
    def anomalies(self, X: Any, top: int = 20, samples: int | None = None) -> Any:
        """The oddest rows, and for each the columns that make it so: a frame of the library of `X`.

        Columns: `row` (position in X), `score` (nats), `surprise` (nats, largest first), then `column_1`,
        `contribution_1`, ..., largest first. With an autoregressive density or a mixture, a contribution is by how many
        nats the value surprises given all others, -log p(value | others), beyond what values of that column would on
        average, given the same others: a number that nobody could know is no reason. The surprise of a row is the same
        of every column given those before it, together; other than the score it has no units, and a missing number,
        which has a mass where others have a density, hides nothing. With other densities the surprise is -score, and a
        contribution by how many nats the row would be likelier with ordinary values in that column, drawn from the
        column alone.
        """
        batch, samples = self._encode(X), self._samples(samples)
        scores = log_likelihood(self.model_, batch, samples, self.seed_)
        rows = self.encoding_.join(*batch)
        odd = oddness(self.model_, self.encoding_, rows, scores)
        oddest = odd.argsort(descending=True, stable=True)[: max(0, top)]
        shares = contributions(self.model_, self.encoding_, rows[oddest], scores[oddest], samples, self.seed_)
        found = {"row": oddest.tolist(), "score": scores[oddest].tolist(), "surprise": odd[oddest].tolist()}
        return frames.write_new(frames.library_of(X), found | reasons(self.encoding_, shares))

    def embedding(self, column: str) -> Embedding:
        """The categories of a column and their learned vectors.

        What the network of an "autoregressive" or "blocks" model is told about each category; the anchors of the cells
        of a "coupling" one; the probability of each component of a "mixture" given the category.
        """
        check_is_fitted(self, "model_")
        index = self.encoding_.index(column)
        spec = self.columns_[index]
        if spec.number or len(spec.categories) < 2:
            what = f"is {spec.kind}" if spec.number else f"has the single value {shown(spec.categories)}"
            raise ValueError(f"column {column!r}: {what}; expected a column of at least two categories")
        token = self.encoding_.tokens(index)[0]
        if isinstance(self.model_, AutoregressiveTable):
            return Embedding(spec.categories, self.model_.density.vectors(token).cpu().numpy())
        if isinstance(self.model_, CodedRows):
            return Embedding(spec.categories, self.model_.positions(token).cpu().numpy())
        cells = self.model_.dequantizer.cells
        assert isinstance(cells, VoronoiCells)
        anchors = cells.map.tessellation.anchors[token, : len(spec.categories)]
        return Embedding(spec.categories, anchors.detach().cpu().numpy())

    def save(self, folder: Path | str) -> None:
        """Write the estimator into a folder, as JSON and safetensors."""
        check_is_fitted(self, "model_")
        description = {
            "layout": self.layout_.to_json(),
            "columns": self.encoding_.to_json(),
            "config": configs.to_json(self.config_),
            "codes": self.model_.codes.to_json() if isinstance(self.model_, CodedRows) else None,
            "fitted": {name: getattr(self, name) for name in _FITTED},
            "schema": self.schema_,
        }
        saving.write(Path(folder), self, description, self.model_)

    def _restore(self, said: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
        self._check_parameters()
        encoding, layout = read_encoding(said["columns"]), frames.Layout.from_json(said["layout"])
        frames.check_layout(layout, encoding.columns)
        self._describe(layout, encoding.columns)
        for name, value in saving.fitted(_FITTED, said["fitted"]).items():
            setattr(self, name, value)
        self._samples(self.samples_)
        self.schema_ = said.get("schema")
        codes = None if said["codes"] is None else Codes.from_json(encoding, said["codes"])
        self.config_ = configs.from_json(TableConfig, said["config"])  # type: ignore[type-abstract]  # a family is meant
        self.model_ = restored(lambda: build(self.config_, encoding, codes), said["config"], weights)
        return self.model_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _check_parameters(self) -> None:
        check_settings(self.device, self.time_budget, self.validation_fraction, self.threads, self.random_state)
        self._settings()
        streaming.budget(self.memory)
        if self.samples is not None:
            self._samples(self.samples)
        if self.unseen not in ("error", "missing"):
            raise ValueError(f"unseen: got {self.unseen!r}; expected one of error, missing")
        if not 0 <= self.test_fraction < 1 - self.validation_fraction:
            least = f"0 <= test_fraction < {1 - self.validation_fraction}"
            raise ValueError(f"test_fraction: got {self.test_fraction}; expected {least}")

    def _surveyed(self, pieces: streaming.Pieces) -> streaming.Survey:
        """What a pass over a table that is larger than memory finds."""
        kinds = self._kinds([str(label) for label in pieces.layout.labels], pieces.categorical)
        return streaming.survey(pieces, kinds, self.seed_, self.validation_fraction, self.test_fraction, self._visible)

    @property
    def _visible(self) -> bool:
        """Whether this process shows progress: the first of those that `torchrun` started."""
        return self.progress and own_rank() == 0

    def _whole(self, X: Any) -> tuple[tuple[Batch, Batch], None]:
        """Training and validation rows of a frame."""
        frame = frames.read(X)
        frames.check_rows(frame, least=2)
        kinds = self._kinds(frame.names, frame.categorical)
        self._describe(frame.layout, self._learned(frame, kinds))
        rows = Rows(*self.encoding_.encode(frame.columns))
        self.parts_ = split_rows(len(rows), self.seed_, self.validation_fraction, self.test_fraction)
        train, validation = (rows.batch(torch.from_numpy(self.parts_[name])) for name in ("train", "validation"))
        return (train, validation), None

    def _streamed(self, survey: streaming.Survey) -> tuple[tuple[Batch, Batch], Stream]:
        """Some training rows and those for validation, and all training rows as they come."""
        self._kinds([sketch.name for sketch in survey.sketches], ())
        self._describe(survey.pieces.layout, survey.columns())
        self.parts_ = survey.parts
        stream = streaming.TableStream(survey, self.encoding_, self.memory)
        return (survey.batch(self.encoding_, "train"), survey.batch(self.encoding_, "validation")), stream

    def _describe(self, layout: frames.Layout, columns: tuple[Column, ...]) -> None:
        self.layout_, self.columns_, self.encoding_ = layout, columns, Encoding(columns)
        self.n_features_in_ = len(columns)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if not layout.is_array and all(isinstance(label, str) for label in layout.labels):
            self.feature_names_in_ = np.array(layout.labels, dtype=object)

    def _learned(self, frame: frames.Frame, kinds: Mapping[str, str]) -> tuple[Column, ...]:
        """What there is to know about each column before training."""
        found, many = [], frame.rows * len(frame.columns) >= MANY_CELLS
        with Progress("columns prepared", len(frame.columns), self._visible and many, keep=False) as progress:
            for name, values in zip(frame.names, frame.columns, strict=True):
                found.append(learn(name, values, kinds.get(name), frame.orders.get(name)))
                progress.move(len(found))
        return tuple(found)

    def _kinds(self, names: Sequence[str], categorical: Sequence[str]) -> dict[str, str]:
        kinds = dict.fromkeys(categorical, "categorical") | dict(self.column_types or {})
        unknown = [name for name in kinds if name not in names]
        if unknown:
            raise ValueError(f"column_types: got {shown(unknown)}; expected columns, which are {shown(names)}")
        return kinds

    def _plan(self, checkpoints: Path | None) -> Plan:
        return Plan(
            seed=self.seed_,
            device=self.device,
            max_steps=self.max_steps,
            time_budget=self.time_budget,
            progress=self._visible,
            threads=self.threads,
            checkpoints=checkpoints,
            processes=launched(),
        )

    def _settings(self) -> Settings:
        return Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def _samples(self, samples: int | None) -> int:
        chosen = self.samples_ if samples is None else samples
        if not 1 <= chosen <= MOST_SAMPLES:
            raise ValueError(f"samples: got {chosen}; expected at least 1, and at most {MOST_SAMPLES}")
        return chosen

    def _encode(self, X: Any) -> Batch:
        check_is_fitted(self, "model_")
        frame = frames.read(X)
        frames.check_rows(frame, least=1)
        return self.encoding_.encode(frames.matched(frame, self.layout_), self.unseen)


_FITTED: dict[str, Any] = {
    "seed_": int,
    "density_": Kind,
    "exact_": bool,
    "start_": str,
    "groups_": int,
    "components_": int,
    "samples_": int,
    "initial_validation_": float,
    "best_validation_": float,
    "n_iter_": int,
    "stopped_": StopReason,
    "history_": list[dict[str, Any]],
    "threads_": int,
}
"""Attributes that are saved, and their types."""
