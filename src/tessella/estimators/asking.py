"""What a fitted table can be asked: rows given anything, what is missing, what a column will be."""

import numbers
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tessella import checks
from tessella.data import Column, Encoding
from tessella.data.tables.values import Value
from tessella.estimators import conditioning, frames, questions
from tessella.estimators.learning import limited_threads
from tessella.estimators.network import Model
from tessella.estimators.questions.balance import Balance
from tessella.models.restoring import sound
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

FEW_EFFECTIVE = 0.1  # of the rows asked for


class Asked:
    """The part of `TabularFlow` that draws and predicts."""

    model_: Model
    encoding_: Encoding
    columns_: tuple[Column, ...]
    layout_: frames.Layout
    unseen: str
    random_state: Any
    threads: int | None

    @limited_threads
    def sample(
        self,
        n: int = 1,
        given: Mapping[str, Any] | None = None,
        *,
        temperature: float = 1.0,
        balance: Balance | None = None,
        random_state: Any = None,
    ) -> Any:
        """New rows, in a frame like the one that was fitted: same library, columns, dtypes and categories.

        Numbers are kept inside the range that training saw. Given columns come first, so with an autoregressive density
        or a mixture rows given values of any columns are exact and as fast as others. A column limited to an interval
        or to some categories is drawn from its conditional inside the limit, which is exact, too. With several of them
        a row is kept with the probability that the later limits are met given what was drawn for the earlier ones,
        which is exact again; where that keeps too few, rows are resampled by these weights instead. Other densities
        draw rows and keep those that meet the values, or resample. `effective_sample_size_` says how many independent
        rows they are worth.

        Args:
            n: number of rows.
            given: of some columns a value, None for missing; an interval `(low, high)` of numbers, dates or ordered
                categories, both included, None for no end; or a list of categories.
            temperature: T; every column is drawn from p^(1/T), of its categories or the parts of its numbers, given
                those before. Below 1 rows are more ordinary, above 1 more varied.
            balance: a column whose categories shall have equal shares; or shares, {column: {value: share}}, of values
                or anything else that can be given. Everything else is drawn given that.
            random_state: of this call; None takes the estimator's, so that an integer there repeats the same rows.
        """
        check_is_fitted(self, "model_")
        if not isinstance(n, numbers.Integral) or n < 1:
            raise ValueError(f"n: got {n!r}; expected a positive integer")
        if not temperature > 0:
            raise ValueError(f"temperature: got {temperature}; expected a positive number")
        given = dict(given or {})
        strata = [(given, int(n))] if balance is None else questions.strata(self.encoding_, balance, given, int(n))
        with self._noise("sample", random_state):
            parts = [
                self._rows(count, questions.read_given(self.encoding_, said), temperature) for said, count in strata
            ]
            rows = parts[0].rows if balance is None else questions.balanced([part.rows for part in parts])
            checks.finite("rows drawn", rows)
        self._note_worth(int(n), sum(part.effective_sample_size for part in parts))
        return frames.write(self.layout_, self.encoding_.decode(*self.encoding_.split(rows)))

    @limited_threads
    def impute(self, X: Any, most_likely: bool = False, n: int = 1, random_state: Any = None) -> Any:
        """The rows with a value for everything that is missing, in a frame like the one that was fitted.

        Values are drawn from their joint distribution given what is there, and that they are not missing; known values
        stay as they are. Columns that `X` does not have are missing. The density must be autoregressive or a mixture.

        Args:
            X: rows with missing values.
            most_likely: the likeliest category or the median of a number instead of a draw, one column after another
                in the table's order, each given those before: no draws, but rows are more alike than they should be.
            n: imputations; more than one are a list of frames, as multiple imputation needs them.
            random_state: as in `sample`.
        """
        check_is_fitted(self, "model_")
        if n < 1:
            raise ValueError(f"n: got {n!r}; expected at least 1")
        model = questions.exact(self.model_, "impute")
        known = questions.read_rows(self.encoding_, self.layout_, X, self.unseen, evidence=False)
        with self._noise("impute", random_state):
            filled = [questions.impute(model, self.encoding_, known.rows, known.unknown, most_likely) for _ in range(n)]
            checks.finite("rows filled", torch.stack(filled))
        found = [frames.write(self.layout_, _completed(self.encoding_, known.values, one)) for one in filled]
        return found[0] if n == 1 else found

    @limited_threads
    def predict_proba(self, X: Any, column: str | None = None) -> Any:
        """P(category | the other columns) of every row, exact, in a frame of the library of `X`; an array of an array.

        A column for each category, named as it prints, in the order of `columns_`; missing is none of them, so the
        probabilities are those given that the value is there. What `X` says about the column makes no difference.
        Other columns that `X` does not have are unknown, and so are missing values; but where training saw missing
        values, that one is missing says something, and is taken as known.

        Args:
            X: rows.
            column: which; None: the last one, where tables often have what is to be predicted.
        """
        index = self._target(column)
        spec = self.columns_[index]
        if spec.number:
            raise ValueError(f"column {spec.name!r}: is {spec.kind}; expected categories, use predict for its median")
        found = self._asked(X, index, questions.probabilities)
        if isinstance(X, np.ndarray):
            return found.numpy()
        names = [str(category) for category in spec.categories if category is not None]
        return frames.write_new(frames.library_of(X), dict(zip(names, found.T.tolist(), strict=True)))

    @limited_threads
    def predict(self, X: Any, column: str | None = None) -> np.ndarray:
        """The likeliest category of a column given the others, as in `predict_proba`, or the median of a number.

        The median, since the tails of a number may have no mean.
        """
        index = self._target(column)
        spec = self.columns_[index]
        if spec.number:
            return np.array(spec.decode(self._asked(X, index, questions.medians).numpy()))
        return np.array(spec.decode(self._asked(X, index, questions.probabilities).argmax(-1).numpy()))

    def _target(self, column: str | None) -> int:
        check_is_fitted(self, "model_")
        return len(self.columns_) - 1 if column is None else self.encoding_.index(column)

    def _asked(self, X: Any, index: int, ask: Callable[..., Tensor]) -> Tensor:
        """What a question about a column finds for the rows of `X`."""
        model = questions.exact(self.model_, "predict")
        known = questions.read_rows(self.encoding_, self.layout_, X, self.unseen, evidence=True, ignored=index)
        with sound("predict"):
            found = ask(model, self.encoding_, known.rows, known.unknown, index)
            checks.finite("answers", found)
        return found

    @contextmanager
    def _noise(self, purpose: str, random_state: Any) -> Iterator[None]:
        """The noise of one call."""
        state, device = self.random_state if random_state is None else random_state, self.model_.device
        with fork_rng(device), sound(purpose):
            seed_noise(derived_seed(int(check_random_state(state).randint(2**31 - 1)), purpose), device)
            yield

    def _rows(self, n: int, given: questions.Given, temperature: float) -> conditioning.Conditioned:
        if given or temperature != 1:
            return conditioning.sample_given(self.model_, self.encoding_, given, n, temperature)
        return conditioning.Conditioned(self.encoding_.join(*self.model_.sample(n)).cpu(), float(n))

    def _note_worth(self, n: int, worth: float) -> None:
        self.effective_sample_size_ = worth
        if worth < FEW_EFFECTIVE * n:
            warnings.warn(
                f"given: the {n} rows are worth {worth:.1f} independent ones; that is rare under the model",
                stacklevel=3,
            )


def _completed(encoding: Encoding, values: Sequence[Sequence[Value]], rows: Tensor) -> list[list[Value]]:
    """Columns of values, with those of rows (B, G + R) where they are missing."""
    found = encoding.decode(*encoding.split(rows))
    pairs = zip(values, found, strict=True)
    return [[new if old is None else old for old, new in zip(*pair, strict=True)] for pair in pairs]
