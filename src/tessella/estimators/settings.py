"""What a user may say about the model of `TabularFlow`, and to which density each setting belongs."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from tessella.estimators.learning import Plan

Density = Literal["auto", "autoregressive", "blocks", "coupling"]

LEAST = {"dim": 2, "blocks": 1, "width": 1, "layers": 1, "components": 1, "groups": 1, "batch_size": 1}
BELONGS: dict[str, Density] = {
    "dim": "coupling",
    "blocks": "coupling",
    "components": "coupling",
    "groups": "blocks",
    "layers": "autoregressive",
}
"""Settings of one density; the others have no use for them."""
WIDTH = {"blocks": 32, "coupling": 32}
DIM, BLOCKS = 2, 4


@dataclass(frozen=True)
class Settings:
    """A density and what was said about its size; None is left to the rows."""

    density: Density = "auto"
    dim: int | None = None
    blocks: int | None = None
    width: int | None = None
    layers: int | None = None
    components: int | None = None
    groups: int | None = None
    learning_rate: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        if self.density not in get_args(Density):
            raise ValueError(f"density: got {self.density!r}; expected one of {', '.join(get_args(Density))}")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name}: got {value}; expected at least {least}, or None to have it chosen")
            if value is not None and BELONGS.get(name, self.density) not in (self.density, self._means):
                raise ValueError(
                    f"{name}: got {value}, which belongs to density={BELONGS[name]!r}; the density is {self.density!r}"
                )

    def tuned(self, plan: Plan, learning_rate: float, batch_size: int) -> Plan:
        """The plan with a learning rate and a batch: those of the settings, or else these."""
        return replace(
            plan, learning_rate=self.learning_rate or learning_rate, batch_size=self.batch_size or batch_size
        )

    @property
    def _means(self) -> Density:
        """What "auto" is made of, as far as settings go."""
        return "autoregressive" if self.density == "auto" else self.density
