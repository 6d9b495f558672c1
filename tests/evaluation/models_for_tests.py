"""Small models that deserve to pass the audits, and others that do not."""

import torch
from torch import Tensor

from tessella.baselines import CategoricalMixture
from tessella.contracts import Batch
from tessella.data.tables.shape import TableShape
from tessella.densities import FlatCouplingConfig
from tessella.dequantizers import CellsConfig, ConditionalNoise
from tessella.models import FlowConfig, MixtureStartConfig, SemiDiscrete

COUNTS = (3, 2, 4)
ALL_ROWS = torch.cartesian_prod(torch.arange(3), torch.arange(2), torch.arange(4))


def untrained(cells: str = "voronoi", noise: str = "student") -> SemiDiscrete:
    """Cells and density at random, noise that knows nothing of the density: a valid bound, and a loose one."""
    torch.manual_seed(0)
    small = ConditionalNoise(width=8, layers=1, base=noise, context=4)
    density = FlatCouplingConfig(blocks=2, width=8, layers=1)
    model = FlowConfig(CellsConfig.named(cells), small, density).build(TableShape(COUNTS))
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
    noise = ConditionalNoise(blocks=1, width=8, layers=2, context=4)
    config = MixtureStartConfig(components=8, blocks=0, squashing="softsign", noise=noise)
    (rows,) = mixture().sample(3000)
    return config.start(TableShape(COUNTS), (rows[:2000],), (rows[2000:],)).model


class Shifted:
    """Nats added to every log-likelihood: what a wrong determinant or a forgotten term does."""

    def __init__(self, honest, nats: float):
        self.honest, self.nats, self.exact = honest, nats, honest.exact

    def log_prob(self, *batch: Tensor, samples: int | None = None) -> Tensor:
        return self.honest.log_prob(*batch, samples=samples) + self.nats

    def chunked_log_weights(self, *batch: Tensor, samples: int) -> list[Tensor]:
        return [weights + self.nats for weights in self.honest.chunked_log_weights(*batch, samples=samples)]

    def sample(self, rows: int) -> Batch:
        return self.honest.sample(rows)


class Independently(Shifted):
    """Rows in which each column is drawn for itself: right columns, wrong rows."""

    def __init__(self, honest):
        super().__init__(honest, 0.0)

    def sample(self, rows: int) -> Batch:
        (codes,) = self.honest.sample(rows)
        return (torch.stack([column[torch.randperm(rows)] for column in codes.T], 1),)


class Measured:
    """A code k in {0, 1, 2} and a number that is there for k > 0, normal with mean 3 k: rows (k; number or 0)."""

    exact = True

    def __init__(self, spread: float = 1.0):
        self.spread = spread
        self.mass = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)

    def log_prob(self, codes: Tensor, numbers: Tensor, samples: int | None = None) -> Tensor:
        code = codes[:, 0]
        number = torch.distributions.Normal(3.0 * code, self.spread).log_prob(numbers[:, 0])
        return self.mass.log()[code] + torch.where(code > 0, number, 0)

    def sample(self, rows: int) -> Batch:
        code = torch.multinomial(self.mass, rows, replacement=True)
        number = (3.0 * code + self.spread * torch.randn(rows)) * (code > 0)
        return code[:, None], number[:, None]
