"""`SetFlow`: one likelihood for baskets of items."""

import numbers
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tessella import configs
from tessella.data import PaddedSets, SetShape
from tessella.estimators import baskets, frames, saving
from tessella.estimators.baskets import KINDS, Asked, BasketModel, Baskets, Items, ModelKind, network
from tessella.estimators.baskets.items import Unseen
from tessella.estimators.learning import (
    Device,
    Plan,
    check_settings,
    limited_threads,
    on_gpu,
    split_rows,
)
from tessella.estimators.tabular_flow import Embedding
from tessella.models import SetConfig
from tessella.models.restoring import restored, sound
from tessella.training import StopReason
from tessella.training.randomness import derived_seed, fork_rng, seed_noise

MOST_SAMPLES = 10_000  # of a bound


class SetFlow(saving.Loadable, DensityMixin, BaseEstimator):
    """P(S), whatever the order: how likely each basket is, and what comes next.

    A basket is a set: no order, no item twice, n of them. Several models are fitted, and the one is kept that the
    validation baskets prefer. Two count, and are exact for any size among up to a hundred thousand items:

    - "independent": items are independent given their number;
    - "mixture": P(S) = sum_m v_m P_m(n) prod_{k in S} w_m(k) / e_n(w_m). There are kinds of baskets, m; each has its
      own sizes and its own items, which given their number are independent (e_n adds up all sets of n items).

    Two learn by gradients in the time that is left, from 1,000 baskets on, where that can pay (`skipped_`):

    - "transformer": one item after another, summed over all orders; exact up to 4 items, else a lower bound;
    - "coupling": a flow of points in the items' cells, for small baskets of some hundred items; a lower bound.

    Baskets come as lists of items (texts, integers, anything hashable), or as a table of two columns, basket and item:
    pandas, polars, pyarrow, or a 2-D array. An item that comes twice in a basket counts once, which is said.

    Args:
        max_components: most kinds of a mixture; None: up to 256, by baskets and items.
        model_kind: what the model shall be, one of the above; "auto": what the validation baskets prefer.
        time_budget: seconds of fitting; None: until the validation baskets like nothing better.
        max_steps: most updates of a model that learns; None: 3000, or as many as the time budget allows, but no more
            than 30 epochs.
        samples: of a bound: orders of the items, or points in their cells; None: 24.
        validation_fraction: share of the baskets held out to choose by.
        test_fraction: share of the baskets of which nothing is learned but their items; `parts_` says which.
        unseen: what to do with an item that training did not see: "error", or "skip" to leave it out of its basket.
        device: "auto", "cpu" or "cuda".
        threads: of a CPU; None: as many as are free.
        random_state: fixes split, fit, scores and samples.
        progress: show progress.

    Attributes:
        items_: all items, the most frequent first.
        model_kind_: what the model is: "independent", "mixture", "transformer" or "coupling".
        components_: kinds of baskets; 0 of a model that learned.
        exact_: whether scores are likelihoods rather than lower bounds of them.
        samples_: of a bound.
        validation_: mean negative log-likelihood of the validation baskets in nats, or an upper bound of it, by model;
            of the first 2,000 of them, where a model learned.
        skipped_: why models were not tried, in words, by model.
        best_validation_: the value of the model.
        config_: what was chosen about a model that learned; else None.
        parts_: positions of the "train", "validation" and "test" baskets; not saved.
        independent_: the model of independent items, to compare with; not saved.
        history_: of each model, validation value and seconds after each round of counting or every few updates.
        n_iter_: rounds or updates of the model.
        seconds_: of fitting.
        stopped_: why fitting the model ended: "steps", "patience", "time_budget" or "interrupted" (Ctrl-C keeps the
            best).

    >>> baskets = [["bread", "butter"], ["bread", "butter", "jam"], ["beer", "chips"], ["beer"]] * 20
    >>> flow = SetFlow(device="cpu", random_state=0, progress=False).fit(baskets)
    >>> [item for item, probability in flow.complete(["bread", "jam"], 1)]
    ['butter']
    >>> flow.score_samples([["beer", "chips"], ["beer", "jam"]]).round(1).tolist()
    [-1.5, -4.6]
    """

    def __init__(
        self,
        max_components: int | None = None,
        *,
        model_kind: Asked = "auto",
        time_budget: float | None = None,
        max_steps: int | None = None,
        samples: int | None = None,
        validation_fraction: float = 0.1,
        test_fraction: float = 0.0,
        unseen: Unseen = "error",
        device: Device = "auto",
        threads: int | None = None,
        random_state: Any = None,
        progress: bool = True,
    ):
        self.max_components = max_components
        self.model_kind = model_kind
        self.time_budget = time_budget
        self.max_steps = max_steps
        self.samples = samples
        self.validation_fraction = validation_fraction
        self.test_fraction = test_fraction
        self.unseen = unseen
        self.device = device
        self.threads = threads
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the distribution of baskets; `y` is ignored."""
        return self._fit(X, None)

    def fit_resumable(self, X: Any, checkpoints: Path | str) -> Self:
        """`fit`, with the state of training kept in a folder: killed, the same call continues where it was.

        Other baskets, or other settings, begin anew. The folder can be removed when the estimator is saved.
        """
        return self._fit(X, Path(checkpoints))

    @limited_threads
    def _fit(self, X: Any, checkpoints: Path | None) -> Self:
        self._check_parameters()
        found = baskets.read(X)
        if len(found) < 2:
            raise ValueError(f"X: got {len(found)} basket (n_samples = 1); expected at least 2")
        self._items, self.library_, self.labels_ = Items.of(found), found.library, found.labels
        if len(self._items) < 2:
            raise ValueError(f"X: got baskets of the single item {self._items.names[0]!r}; expected at least two items")
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.samples_ = self.samples or network.SAMPLES
        sets, _ = self._items.encode(found)
        assert sets is not None  # no basket is empty
        self.parts_ = split_rows(len(found), self.seed_, self.validation_fraction, self.test_fraction)
        device = "cuda" if on_gpu(self.device) else "cpu"
        train, validation = (_some(sets, self.parts_[name]).to(device) for name in ("train", "validation"))
        shape = baskets.shape_of(sets, len(self._items))
        plan = Plan(
            self.seed_,
            self.device,
            self.max_steps,
            self.time_budget,
            self.progress,
            threads=self.threads,
            checkpoints=checkpoints,
        )
        chosen = baskets.choose((train, validation), shape, plan, self.model_kind, self.max_components, self.samples_)
        self.model_, self.model_kind_, self.exact_ = chosen.model, chosen.kind, chosen.model.exact
        self.independent_, self.config_, self.skipped_ = chosen.independent, chosen.config, chosen.skipped
        self.validation_, self.history_, self.n_iter_ = chosen.validation, chosen.history, chosen.steps
        self.stopped_, self.seconds_ = chosen.stopped, chosen.seconds
        return self

    @property
    def items_(self) -> tuple[Hashable, ...]:
        """All items, the most frequent first."""
        return self._items.names

    @property
    def components_(self) -> int:
        """Kinds of baskets; 0 of a model that learned."""
        return network.components_of(self.model_)

    @property
    def best_validation_(self) -> float:
        """Mean negative log-likelihood of the validation baskets in nats, or an upper bound of it."""
        return self.validation_[self.model_kind_]

    @limited_threads
    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each basket in nats; of a table, in the order in which baskets first come.

        Exact where `exact_` says so, else a lower bound, the same at every call.
        With unseen="skip", a basket of which nothing is left has -inf.
        """
        return self._scores(self._read(X))

    def independent_scores(self, X: Any) -> np.ndarray:
        """The same under items that are independent given their number, which `fit` leaves behind but does not save."""
        return self._scores(self._read(X), self.independent_)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the baskets, in nats."""
        return float(self.score_samples(X).mean())

    @limited_threads
    def sample(self, n: int = 1, random_state: Any = None) -> Any:
        """New baskets: lists of items; or a table of the library and labels that the model was fitted with.

        Args:
            n: number of baskets.
            random_state: of this call; None takes the estimator's, so that an integer there repeats the same baskets.
        """
        check_is_fitted(self, "model_")
        if not isinstance(n, numbers.Integral) or n < 1:
            raise ValueError(f"n: got {n!r}; expected a positive integer")
        state = self.random_state if random_state is None else random_state
        device = network.device_of(self.model_)
        with fork_rng(device), sound("sample"):
            seed_noise(derived_seed(int(check_random_state(state).randint(2**31 - 1)), "sample"), device)
            items, mask = (part.cpu() for part in self.model_.sample(int(n)))
        drawn = [[self.items_[code] for code in row[there].tolist()] for row, there in zip(items, mask, strict=True)]
        if self.library_ is None or self.labels_ is None:
            return drawn
        ids = [place for place, basket in enumerate(drawn) for _ in basket]
        columns = (ids, [item for basket in drawn for item in basket])
        return frames.write_new(self.library_, dict(zip(self.labels_, columns, strict=True)))

    @limited_threads
    def complete(self, basket: Iterable[Hashable], n: int = 5) -> list[tuple[Hashable, float]]:
        """What comes next: the n likeliest items, with P(basket and item | basket, and it has one item more).

        The probabilities of all items that are not in the basket add up to 1. The basket may be empty. A "transformer"
        says which item comes last, given that the others came before it in any order; a "coupling" estimates.
        """
        check_is_fitted(self, "model_")
        if not isinstance(n, numbers.Integral) or n < 1:
            raise ValueError(f"n: got {n!r}; expected a positive integer")
        items, _ = baskets.one_basket(basket)
        if self.unseen == "skip":
            items = [item for item in items if item in self._items.codes]
        codes = torch.tensor(self._items.codes_of(items, "basket"), dtype=torch.int64)
        most = min(self.model_.shape.most, len(self._items))
        if len(codes) >= most:
            raise ValueError(f"basket: got {len(codes)} items; expected fewer than {most}, the largest basket possible")
        chance, order = self._next(codes).exp().sort(descending=True, stable=True)
        some = range(min(int(n), len(self._items) - len(codes)))
        return [(self.items_[int(order[i])], float(chance[i])) for i in some]

    @limited_threads
    def anomalies(self, X: Any, top: int = 20, per_item: bool = False) -> Any:
        """The least likely baskets, and in each the item that is the oddest: a frame of the library of `X`.

        Columns: `basket` (its id, or its position in a list), `score` (nats), `size`, `item`, and `surprise`:
        -log P(item | the others, and it has one item more), in nats. Of lists, a list of such rows.

        Args:
            X: baskets.
            top: how many.
            per_item: whether to rank by nats per item: large baskets are all unlikely, whatever is in them.
        """
        found = self._read(X)
        scores = self._scores(found)
        sizes = np.array([len(basket) for basket in found.items])
        ranked = np.argsort(scores / sizes if per_item else scores, kind="stable")
        ranked = ranked[np.isfinite(scores[ranked])][: max(0, top)]  # of others nothing is left to be odd
        rows = []
        for place in ranked.tolist():
            item, surprise = self._oddest([item for item in found.items[place] if item in self._items.codes])
            score, size = float(scores[place]), int(sizes[place])
            row = {"basket": found.names[place], "score": score, "size": size, "item": item, "surprise": surprise}
            rows.append(row)
        if found.library is None:
            return rows
        names = ("basket", "score", "size", "item", "surprise")
        return frames.write_new(found.library, {name: [row[name] for row in rows] for name in names})

    def embedding(self) -> Embedding:
        """The items and their vectors, (K, D): items that come in the same kinds of baskets are neighbours.

        Of a "mixture", square roots of P(kind | item), which have length 1; an "independent" model knows one kind. What
        a "transformer" is told of each item; anchors of the cells of a "coupling".
        """
        check_is_fitted(self, "model_")
        return Embedding(self.items_, network.vectors(self.model_).cpu().numpy())  # type: ignore[arg-type]  # any item

    def save(self, folder: Path | str) -> None:
        """Write the estimator into a folder, as JSON and safetensors; items must be texts or integers."""
        check_is_fitted(self, "model_")
        for item in self.items_:
            if type(item) not in (str, int):
                raise TypeError(
                    f"items: got {item!r:.80} ({type(item).__name__}); expected texts or integers, to be saved"
                )
        shape = self.model_.shape
        description = {
            "items": list(self.items_),
            "library": self.library_,
            "labels": self.labels_,
            "config": {
                "items": shape.items,
                "most": shape.most,
                "components": self.components_,
                "model": None if self.config_ is None else configs.to_json(self.config_),
            },
            "fitted": {name: getattr(self, name) for name in _FITTED},
        }
        saving.write(Path(folder), self, description, self.model_)

    def _restore(self, said: Mapping[str, Any], weights: Mapping[str, Tensor]) -> nn.Module:
        self._check_parameters()
        config = saving.fitted({"items": int, "most": int, "components": int}, said["config"])
        self._items = Items([_plain(item) for item in said["items"]])
        if len(self._items.codes) != config["items"] or len(self._items) != config["items"]:
            raise ValueError(f"items: got {len(self._items.codes)} different ones; expected {config['items']}")
        self.library_, self.labels_ = _origin(said["library"], said["labels"])
        for name, value in saving.fitted(_FITTED, said["fitted"]).items():
            setattr(self, name, value)
        if self.model_kind_ not in self.validation_:
            raise ValueError(f"validation_: got {list(self.validation_)}; expected {self.model_kind_!r} among them")
        self._check_samples(self.samples_)
        learned = said["config"]["model"]
        self.config_ = None if learned is None else configs.from_json(SetConfig, learned)  # type: ignore[type-abstract]  # a family is meant
        about = self.model_kind_, SetShape(config["items"], 1, config["most"]), config["components"], self.config_
        self.model_ = restored(lambda: network.build(*about), said["config"], weights)
        network.check(self.model_)
        if self.exact_ != self.model_.exact:
            raise ValueError(f"exact_: got {self.exact_}; expected {self.model_.exact} of such a {self.model_kind_}")
        return self.model_

    def _check_parameters(self) -> None:
        check_settings(self.device, self.time_budget, self.validation_fraction, self.threads, self.random_state)
        if self.max_components is not None and self.max_components < 1:
            raise ValueError(f"max_components: got {self.max_components}; expected at least 1, or None")
        if self.model_kind not in ("auto", *KINDS):
            raise ValueError(f"model_kind: got {self.model_kind!r}; expected one of auto, {', '.join(KINDS)}")
        if self.max_steps is not None and self.max_steps < 1:
            raise ValueError(f"max_steps: got {self.max_steps}; expected at least 1, or None")
        if self.samples is not None:
            self._check_samples(self.samples)
        if self.unseen not in ("error", "skip"):
            raise ValueError(f"unseen: got {self.unseen!r}; expected one of error, skip")
        if not 0 <= self.test_fraction < 1 - self.validation_fraction:
            least = f"0 <= test_fraction < {1 - self.validation_fraction}"
            raise ValueError(f"test_fraction: got {self.test_fraction}; expected {least}")

    def _check_samples(self, samples: int) -> None:
        if not 1 <= samples <= MOST_SAMPLES:
            raise ValueError(f"samples: got {samples}; expected at least 1, and at most {MOST_SAMPLES:,}")

    def _next(self, codes: Tensor) -> Tensor:
        return network.log_next(self.model_, codes, self.samples_, self.seed_)

    def _read(self, X: Any) -> Baskets:
        check_is_fitted(self, "model_")
        return baskets.read(X)

    def _scores(self, found: Baskets, model: BasketModel | None = None) -> np.ndarray:
        """Of this model, or of another one of the same items."""
        sets, left = self._items.encode(found, self.unseen)
        scores = np.full(len(found), -np.inf)
        if sets is None:
            return scores
        self._check_sizes(sets, left, found)
        scores[left.numpy()] = network.log_likelihood(model or self.model_, sets, self.samples_, self.seed_).numpy()
        return scores

    def _check_sizes(self, sets: PaddedSets, left: Tensor, found: Baskets) -> None:
        sizes, most = sets.offsets.diff(), self.model_.shape.most
        if int(sizes.max()) > most:
            place = int(left.nonzero()[int((sizes > most).nonzero()[0])])
            raise ValueError(
                f"basket {found.names[place]!r}: got {len(found.items[place])} items; expected at most {most}, "
                "half as many again as the largest basket of training"
            )

    def _oddest(self, items: list[Hashable]) -> tuple[Hashable | None, float]:
        """The item that is least expected given all others, and -log of its probability."""
        codes = torch.tensor([self._items.codes[item] for item in items], dtype=torch.int64)
        found: tuple[Hashable | None, float] = (None, 0.0)
        for place, item in enumerate(items):
            others = torch.cat([codes[:place], codes[place + 1 :]])
            surprise = -float(self._next(others)[codes[place]])
            if found[0] is None or surprise > found[1]:
                found = item, surprise
        return found


def _some(sets: PaddedSets, places: np.ndarray) -> PaddedSets:
    """These of the sets."""
    pieces = sets.items.split(sets.offsets.diff().tolist())
    return PaddedSets([pieces[place] for place in places.tolist()])


def _plain(item: Any) -> Hashable:
    if type(item) not in (str, int):
        raise ValueError(f"items: got {item!r:.80}; expected texts or integers")
    hashable: Hashable = item
    return hashable


def _origin(library: Any, labels: Any) -> tuple[str | None, tuple[str, str] | None]:
    """Of the table, where there was one."""
    if library is None and labels is None:
        return None, None
    if (
        library not in ("pandas", "polars", "pyarrow", "numpy")
        or len(labels) != 2
        or not all(isinstance(one, str) for one in labels)
    ):
        raise ValueError(f"library, labels: got {library!r:.80} and {labels!r:.80}; expected a library and two names")
    return library, (labels[0], labels[1])


_FITTED: dict[str, Any] = {
    "seed_": int,
    "model_kind_": ModelKind,
    "exact_": bool,
    "samples_": int,
    "validation_": dict[str, float],
    "skipped_": dict[str, str],
    "history_": list[dict[str, Any]],
    "n_iter_": int,
    "seconds_": float,
    "stopped_": StopReason,
}
"""Attributes that are saved, and their types."""
