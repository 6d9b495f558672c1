"""Sets whose probability is a determinant: items repel each other where they are alike."""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from tessella.baselines.sets.base import SetBaseline
from tessella.contracts import Batch
from tessella.data.itemsets.shape import SetShape
from tessella.densities.sets.sizes import mask_of
from tessella.densities.sets.symmetric import draw_distinct, log_symmetric


class Determinantal(SetBaseline):
    """P(S) = det(L_S) / Z,  L = V V',  V = diag(sqrt f exp(b / 2)) B: an item's weight, and its direction.

    References:
        A. Kulesza, B. Taskar, "Determinantal point processes for machine learning", 2012.

    Args:
        shape: K items, sets of least to most of them.
        rank: columns of V, at least `most`.
    """

    def __init__(self, shape: SetShape, rank: int = 65):
        super().__init__(shape)
        if rank < shape.most:
            raise ValueError(f"rank: got {rank}; expected at least {shape.most}, or sets of so many items have P = 0")
        self.direction = nn.Parameter(torch.randn(shape.items, rank) / rank**0.5)
        self.bias = nn.Parameter(torch.zeros(shape.items))

    @property
    def factor(self) -> Tensor:
        """V, (K, rank)."""
        weight = (0.5 * (self.log_share.to(self.bias) + self.bias)).exp() * self.shape.most**0.5
        factor: Tensor = weight[:, None] * self.direction
        return factor

    def spectrum(self) -> Tensor:
        """Eigenvalues of V'V that are those of L, double precision, (rank,)."""
        factor = self.factor.double()
        values: Tensor = torch.linalg.eigvalsh(factor.mT @ factor)
        return values.clamp_min(torch.finfo(torch.float64).tiny)

    def log_determinant(self, items: Tensor, mask: Tensor) -> Tensor:
        """log det L_S, (B)."""
        rows = self.factor.double()[items] * mask[..., None]
        kernel = rows @ rows.mT + torch.diag_embed((~mask).double())  # 1 where no item is: it changes nothing
        value: Tensor = torch.linalg.slogdet(kernel).logabsdet
        return value

    def _draw(self, chosen: Tensor, vectors: Tensor) -> Tensor:
        """Items of the projection onto these eigenvectors: chosen (rank,) of vectors (K, rank)."""
        basis, items = vectors[:, chosen], []
        for _ in range(int(chosen.sum())):
            item = int(torch.multinomial(basis.square().sum(1).clamp_min(0), 1))
            items.append(item)
            pivot = int(basis[item].abs().argmax())
            rest = [column for column in range(basis.shape[1]) if column != pivot]
            basis = basis[:, rest] - basis[:, pivot : pivot + 1] * (basis[item, rest] / basis[item, pivot])
            basis = torch.linalg.qr(basis).Q if rest else basis
        return torch.tensor(items, dtype=torch.int64)

    def _eigenvectors(self) -> tuple[Tensor, Tensor]:
        """Eigenvalues (rank,) and eigenvectors (K, rank) of L."""
        factor = self.factor.double()
        values, small = torch.linalg.eigh(factor.mT @ factor)
        values = values.clamp_min(torch.finfo(torch.float64).tiny)
        return values, factor @ small / values.sqrt()

    @abstractmethod
    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor: ...


class DPP(Determinantal):
    """P(S) = det(L_S) / det(L + I): an L-ensemble, over sets of all sizes, which pays for those that never occur."""

    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        return self.log_determinant(items, mask) - self.spectrum().log1p().sum()

    @torch.no_grad()
    def sample(self, sets: int) -> Batch:
        """New sets of any size; those of none or of more than `most` items are drawn again, and are not in a batch."""
        values, vectors = self._eigenvectors()
        items = torch.zeros(sets, self.shape.most, dtype=torch.int64)
        sizes = torch.zeros(sets, dtype=torch.int64)
        for row in range(sets):
            chosen = torch.zeros(len(values), dtype=torch.bool)
            while not self.shape.least <= int(chosen.sum()) <= self.shape.most:
                chosen = torch.rand_like(values).cpu() < (values / (1 + values)).cpu()
            sizes[row] = int(chosen.sum())
            items[row, : sizes[row]] = self._draw(chosen.to(vectors.device), vectors)
        return items.to(vectors.device), mask_of(sizes, self.shape.most).to(vectors.device)

    def _sample(self, sizes: Tensor) -> Tensor:
        raise NotImplementedError("sizes: an L-ensemble draws them itself")


class KDPP(Determinantal):
    """P(S | n) = det(L_S) / e_n(eigenvalues of L): a determinantal point process given the size."""

    def _log_prob(self, items: Tensor, mask: Tensor) -> Tensor:
        total = log_symmetric(self.spectrum().log(), self.shape.most)[mask.sum(1)]
        return self.sizes.log_prob(mask) + self.log_determinant(items, mask) - total

    def _sample(self, sizes: Tensor) -> Tensor:
        values, vectors = self._eigenvectors()
        which = draw_distinct(values.log()[None], torch.zeros_like(sizes), sizes, self.shape.most)
        items = torch.zeros_like(which)
        for row, n in enumerate(sizes.tolist()):
            chosen = torch.zeros(len(values), dtype=torch.bool, device=vectors.device)
            chosen[which[row, :n]] = True
            items[row, :n] = self._draw(chosen, vectors).to(items.device)
        return items
