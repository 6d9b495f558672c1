"""Small models that deserve to pass the audits, and others that do not."""

from types import SimpleNamespace

import torch
from torch import Tensor

from tessella.baselines import CategoricalMixture
from tessella.models import SemiDiscrete, SemiDiscreteConfig, build
from tessella.runs.run import start

COUNTS = (3, 2, 4)
ALL_ROWS = torch.cartesian_prod(torch.arange(3), torch.arange(2), torch.arange(4))


def untrained(dequantizer: str = "voronoi", noise: str = "student", **options) -> SemiDiscrete:
    """Cells and density at random, noise that knows nothing of the density: a valid bound, and a loose one."""
    torch.manual_seed(0)
    chosen = {"blocks": 2, "width": 8, "layers": 1, "noise_width": 8, "context": 4, "density": "flat"}
    model = build(SemiDiscreteConfig(dequantizer=dequantizer, noise_base=noise, **(chosen | options)), COUNTS)
    with torch.no_grad():
        for parameter in model.density.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def mixture() -> CategoricalMixture:
    """Exact; three components, columns that depend on each other."""
    torch.manual_seed(3)
    model = CategoricalMixture(COUNTS, 3)
    logits = 3 * torch.randn(sum(COUNTS), 3)
    parts = [logits[model.segment(j)].log_softmax(0) for j in range(len(COUNTS))]
    model.log_table.copy_(torch.cat(parts))
    return model


def tight() -> SemiDiscrete:
    """The mixture seen through cells: narrow noise, a component of the density in every cell, so a bound that is nearly
    exact."""
    torch.manual_seed(0)
    config = SemiDiscreteConfig(base="classes", classes=8, blocks=0, dim=2, noise_blocks=1, noise_width=8, context=4)
    model, rows = build(config, COUNTS), mixture().sample(3000)
    start(model, config, SimpleNamespace(train=rows[:2000], validation=rows[2000:]), seed=0)
    return model


class Shifted:
    """Nats added to every log-likelihood: what a wrong determinant or a forgotten term does."""

    def __init__(self, honest, nats: float):
        self.honest, self.nats, self.exact = honest, nats, honest.exact

    def log_prob(self, rows: Tensor, samples: int | None = None) -> Tensor:
        return self.honest.log_prob(rows, samples) + self.nats

    def chunked_log_weights(self, rows: Tensor, samples: int) -> list[Tensor]:
        return [weights + self.nats for weights in self.honest.chunked_log_weights(rows, samples)]

    def sample(self, rows: int) -> Tensor:
        return self.honest.sample(rows)


class Independently(Shifted):
    """Rows in which each column is drawn for itself: right columns, wrong rows."""

    def __init__(self, honest):
        super().__init__(honest, 0.0)

    def sample(self, rows: int) -> Tensor:
        return torch.stack([column[torch.randperm(rows)] for column in self.honest.sample(rows).T], 1)


class Measured:
    """A code k in {0, 1, 2} and a number that is there for k > 0, normal with mean 3 k: rows (k, number or 0)."""

    exact = True

    def __init__(self, spread: float = 1.0):
        self.spread = spread
        self.mass = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)

    def log_prob(self, rows: Tensor, samples: int | None = None) -> Tensor:
        code = rows[:, 0].long()
        number = torch.distributions.Normal(3.0 * code, self.spread).log_prob(rows[:, 1])
        return self.mass.log()[code] + torch.where(code > 0, number, 0)

    def sample(self, rows: int) -> Tensor:
        code = torch.multinomial(self.mass, rows, replacement=True)
        number = (3.0 * code + self.spread * torch.randn(rows)) * (code > 0)
        return torch.stack([code.double(), number], 1)
