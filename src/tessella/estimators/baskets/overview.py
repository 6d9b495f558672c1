"""Everything that a report shows of fitted baskets, as plain data: `overview.json` beside the model."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from sklearn.manifold import TSNE

from tessella.estimators.baskets.network import LEARNED
from tessella.estimators.baskets.reading import Baskets, flattened, read
from tessella.estimators.overview.document import FILE, FORMAT
from tessella.folders import write_whole
from tessella.version import __version__

if TYPE_CHECKING:
    from tessella.estimators.set_flow import SetFlow

DRAWN = 5000  # baskets, at most
SHOWN, BARS, MAPPED, NAMED, ODD = 8, 24, 300, 100, 8
FEWEST = 8  # items of a map
FEW = 3  # items of an odd basket, at least
ITEMS_SHOWN = 40  # of a basket
NAMES = {
    "independent": "independent items",
    "mixture": "mixture of kinds",
    "transformer": "transformer in every order",
    "coupling": "flow through cells",
}


class Compared(TypedDict):
    """Mean -log P of the held-out baskets in nats, its standard error, and the paired gain over independent items."""

    name: str
    nll: float
    error: float
    exact: bool
    gain: float
    gain_error: float


class Tried(TypedDict):
    """A model, its mean -log P of the validation baskets in nats where it was fitted, and why not where it was not."""

    name: str
    validation: float | None
    exact: bool
    chosen: bool
    why: str


class Shares(TypedDict):
    """Of real and of sampled baskets."""

    name: str
    labels: list[str]
    real: list[float]
    sampled: list[float]
    ends: list[str]


class ItemMap(TypedDict):
    """Items on the plane, the most frequent first, of which `named` have their names shown."""

    labels: list[str]
    points: list[list[float]]
    shares: list[float]
    named: int


@dataclass(frozen=True)
class BasketOverview:
    """Fitted baskets at a glance; every field is made of JSON's types."""

    version: str
    baskets: int
    items: int
    parts: dict[str, int]
    model: str
    components: int
    exact: bool
    tried: list[Tried]
    seconds: float
    rounds: int
    stopped: str
    held_out: str
    scored: int
    likelihoods: list[Compared]
    sizes: Shares
    frequencies: Shares
    frequency_error: float
    item_map: ItemMap | None
    odd: list[dict[str, Any]]
    sampled: list[list[str]]
    sampled_baskets: int
    kind: str = "baskets"
    format: int = FORMAT

    def write(self, folder: Path) -> None:
        """Into the model's folder."""
        write_whole({folder / FILE: (json.dumps(asdict(self), indent=1) + "\n").encode()})


def gather(flow: SetFlow, X: Any) -> BasketOverview:
    """What there is to show of an estimator that was just fitted to these baskets."""
    found = read(X)
    part = "test" if len(flow.parts_["test"]) else "validation"
    held_out = Baskets([found.items[i] for i in flow.parts_[part]], [found.names[i] for i in flow.parts_[part]])
    drawn = read(flow.sample(min(DRAWN, len(found)), random_state=flow.seed_))
    frequencies = _frequencies(found, drawn, flow.items_[:BARS])
    several = _several(held_out)
    odd = flow.anomalies(several.items, top=ODD, per_item=True)
    return BasketOverview(
        version=__version__,
        baskets=len(found),
        items=len(flow.items_),
        parts={name: len(places) for name, places in flow.parts_.items()},
        model=flow.model_kind_,
        components=flow.components_,
        exact=flow.exact_,
        tried=_tried(flow),
        seconds=flow.seconds_,
        rounds=flow.n_iter_,
        stopped=flow.stopped_,
        held_out=part,
        scored=len(held_out),
        likelihoods=_compared(flow, held_out),
        sizes=_sizes(found, drawn),
        frequencies=frequencies,
        frequency_error=float(np.abs(np.subtract(frequencies["real"], frequencies["sampled"])).mean()),
        item_map=_map(flow, found),
        odd=[_odd(row, several.items[row["basket"]], several.names[row["basket"]]) for row in odd],
        sampled=[list(map(str, basket[:ITEMS_SHOWN])) for basket in drawn.items[:SHOWN]],
        sampled_baskets=len(drawn),
    )


def _compared(flow: SetFlow, held_out: Baskets) -> list[Compared]:
    """The model, then independent items."""
    own, independent = flow.score_samples(held_out.items), flow.independent_scores(held_out.items)
    scored = {(name_of(flow), flow.exact_): own, ("independent items", True): independent}
    root = len(own) ** 0.5
    return [
        Compared(
            name=name,
            nll=float(-values.mean()),
            error=float(values.std() / root),
            exact=exact,
            gain=float((values - independent).mean()),
            gain_error=float((values - independent).std() / root),
        )
        for (name, exact), values in scored.items()
    ]


def name_of(flow: SetFlow) -> str:
    """What the model is, in words."""
    return f"mixture of {flow.components_} kinds" if flow.model_kind_ == "mixture" else NAMES[flow.model_kind_]


def _tried(flow: SetFlow) -> list[Tried]:
    """All models, the best first, then those that were not fitted."""
    values = sorted(flow.validation_.items(), key=lambda one: one[1])
    found = [
        Tried(
            name=name_of(flow) if kind == flow.model_kind_ else NAMES[kind],
            validation=value,
            exact=flow.exact_ if kind == flow.model_kind_ else kind not in LEARNED,
            chosen=kind == flow.model_kind_,
            why="",
        )
        for kind, value in values
    ]
    return found + [
        Tried(name=NAMES[kind], validation=None, exact=False, chosen=False, why=why)
        for kind, why in flow.skipped_.items()
    ]


def _sizes(real: Baskets, drawn: Baskets) -> Shares:
    """Shares of the sizes up to where a hundredth of the baskets is larger, which are in the last bar."""
    sizes = [np.array([len(basket) for basket in one.items]) for one in (real, drawn)]
    last = max(2, int(np.quantile(sizes[0], 0.99)))
    shares = [np.bincount(one.clip(max=last), minlength=last + 1)[1:] / len(one) for one in sizes]
    labels = [str(n) for n in range(1, last + 1)]
    return Shares(
        name="items in a basket",
        labels=labels,
        real=shares[0].tolist(),
        sampled=shares[1].tolist(),
        ends=["1", f"{last} or more"],
    )


def _frequencies(real: Baskets, drawn: Baskets, items: tuple[Hashable, ...]) -> Shares:
    """Shares of the baskets that hold each of these items."""
    shares = []
    for one in (real, drawn):
        counts = Counter(flattened(one.items))
        shares.append([counts[item] / len(one) for item in items])
    return Shares(name="items", labels=list(map(str, items)), real=shares[0], sampled=shares[1], ends=[])


def _map(flow: SetFlow, found: Baskets) -> ItemMap | None:
    """The most frequent items, so that those of the same kinds of baskets are neighbours; None where there are few."""
    vectors = flow.embedding()
    number = min(MAPPED, len(vectors.categories))
    if number < FEWEST or flow.model_kind_ == "independent":
        return None
    places = TSNE(perplexity=min(20.0, (number - 1) / 3), init="pca", random_state=flow.seed_)
    points = places.fit_transform(vectors.positions[:number].astype(np.float32))
    counts = Counter(flattened(found.items))
    labels = vectors.categories[:number]
    shares = [counts[item] / len(found) for item in labels]
    return ItemMap(labels=list(map(str, labels)), points=points.tolist(), shares=shares, named=min(NAMED, number))


def _several(baskets: Baskets) -> Baskets:
    """Those of a few items at least, where there are some: a rare item alone is no riddle."""
    kept = [i for i, basket in enumerate(baskets.items) if len(basket) >= FEW] or range(len(baskets))
    return Baskets([baskets.items[i] for i in kept], [baskets.names[i] for i in kept])


def _odd(row: dict[str, Any], basket: list[Hashable], name: Any) -> dict[str, Any]:
    return {**row, "basket": str(name), "item": str(row["item"]), "items": list(map(str, basket[:ITEMS_SHOWN]))}
