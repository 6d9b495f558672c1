"""A mixture whose components live in the cells of a tessellation, so that each point knows its own."""

from math import log

import torch
from torch import Tensor, nn

from tessella import checks
from tessella.bijections import CellAffine, CellBijection, Profile
from tessella.densities.base import Density
from tessella.geometry import Tessellation

ROUNDS_OF_MEANS = 10


class DisjointMixture(Density):
    """log p(x) = log p(k) + log p_comp(f_k^-1(x) | k) + log|det df_k^-1/dx|,  k = the cell that holds x.

    Exact, and one component is evaluated per point whatever the number of cells is. Outside the box of a boxed
    tessellation the density is 0 and log p = -inf: rows to train on must lie inside. Unbounded cells cover all of R^D.

    A Gaussian component vanishes at the walls of its cell; `StudentT` with the `degrees` of the squashing does not.

    Args:
        tessellation: a shared one, anchors (K, D).
        component: density of displacements in R^D. Its context is the embedding of k, followed by the context of the
            mixture; None when there is neither. It may be a flow, or again a mixture.
        embedding: size of the learned embedding of k; 0 for a component that is the same in every cell.
        context: size of the context vector of the mixture itself, which p(k) then depends on too; 0 for none.
        squashing: profile of the map into a cell, see `bijections.squashing`.
        scale: g of the map at the start. A standard normal component is then noise of this size around the anchors.
        affine: a map of all coordinates for each cell between the cell and the component (`CellAffine`): the component
            has a mean and a full covariance of its own in every cell.
        steady: of the map, see `CellBijection`: how slowly walls learn.

    >>> from tessella.densities import Gaussian
    >>> from tessella.geometry import Voronoi
    >>> mixture = DisjointMixture(Voronoi(torch.tensor([[-1.0], [1.0]])), Gaussian((1,)), embedding=0)
    >>> mixture.log_prob(torch.tensor([[-1.0], [1.0]])).exp()  # 1/2 N(0; 0, 0.2^2) at both anchors
    tensor([0.9974, 0.9974], grad_fn=<ExpBackward0>)
    """

    def __init__(
        self,
        tessellation: Tessellation,
        component: Density,
        embedding: int = 16,
        context: int = 0,
        squashing: Profile = "softsign",
        scale: float = 0.2,
        affine: bool = False,
        steady: float = 0.0,
    ):
        super().__init__()
        _check(tessellation, component, scale)
        self.map, self.component = CellBijection(tessellation, squashing, steady=steady), component
        self.event_shape = (tessellation.dim,)
        nn.init.constant_(self.map.log_scale, log(scale))
        cells = tessellation.counts[0]
        self.affine = CellAffine(cells, tessellation.dim) if affine else None
        self.logits = nn.Parameter(torch.zeros_like(tessellation.free[:, 0]))
        self.tilt = nn.Parameter(torch.zeros(context, cells)) if context else None
        self.embedding = nn.Embedding(cells, embedding) if embedding else None

    @property
    def tessellation(self) -> Tessellation:
        """Where the components live."""
        return self.map.tessellation

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        cell = self.tessellation.nearest(x)
        y, ladj = self._displacements(x, cell)
        inside_cell = self.component.log_prob(y, self._component_context(cell, context)) + ladj
        log_prob = inside_cell + self._log_weight(cell, context)
        return log_prob if self.tessellation.box is None else log_prob.where(self._in_box(x), -torch.inf)

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        """Draws (*shape, D): differentiable in component and cells, not in the weights."""
        log_weights = self.log_weights(context).expand(*shape, -1)
        cell = torch.distributions.Categorical(logits=log_weights, validate_args=False).sample()
        y = self.component.sample(shape, self._component_context(cell, context))
        if self.affine is not None:
            y = self.affine.inverse_and_ladj(y, cell)[0]
        return self.map.forward_and_ladj(y, cell)[0]

    def log_weights(self, context: Tensor | None = None) -> Tensor:
        """log p(k): (K,), or (*batch, K) given a context."""
        if self.tilt is None:
            return self.logits.log_softmax(-1)
        if context is None:
            raise TypeError(f"context: got None; expected (*batch, {len(self.tilt)}), as the mixture was built for one")
        return (self.logits + context @ self.tilt).log_softmax(-1)

    @torch.no_grad()
    def initialize(self, x: Tensor, context: Tensor | None = None, anchors: Tensor | None = None) -> None:
        """Learned anchors among the points, weights as the points fall, one scale by their median distance.

        Where every cell has an affine map, it makes the displacements of its points white.

        Args:
            x: (*batch, D), at least K different points, all inside the box where there is one.
            context: of each point, where the mixture has one.
            anchors: (K, D), e.g. the means of a fitted Gaussian mixture; None: centres of the points (`spread`).
        """
        points = x.reshape(-1, *self.event_shape)
        self._check_points(points)
        if isinstance(self.tessellation.free, nn.Parameter):
            self._place(spread(points, len(self.logits)) if anchors is None else anchors)
        cell = self.tessellation.nearest(x)
        self.logits.copy_(torch.bincount(cell.flatten(), minlength=len(self.logits)).add(1).log())
        typical = self.map.inverse_and_ladj(x, cell)[0].square().mean(-1).median()
        if typical > 0:  # it is 0 when most points have a cell for themselves
            self.map.log_scale.add_(typical.log() / 2)
        if self.affine is not None:
            displacements = self.map.inverse_and_ladj(points, cell.flatten())[0]
            self.affine.whiten(*moments(displacements, cell.flatten(), len(self.logits)))
        self.component.initialize(self._displacements(x, cell)[0], self._component_context(cell, context))

    def _displacements(self, x: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """What the component sees of points in these cells, and the log-determinant of all maps there."""
        y, ladj = self.map.inverse_and_ladj(x, cell)
        if self.affine is None:
            return y, ladj
        u, turned = self.affine.forward_and_ladj(y, cell)
        return u, ladj + turned

    def _place(self, anchors: Tensor) -> None:
        box = self.tessellation.box
        if box is not None:
            anchors = anchors.lerp(box.centre, 1e-3)  # a centre may lie on the wall, an anchor may not
        self.tessellation.free.copy_(type(self.tessellation)(anchors, box).free)

    def _component_context(self, cell: Tensor, context: Tensor | None) -> Tensor | None:
        if self.embedding is None:
            return context
        return self.embedding(cell) if context is None else torch.cat([self.embedding(cell), context], -1)

    def _log_weight(self, cell: Tensor, context: Tensor | None) -> Tensor:
        if self.tilt is None:
            return self.log_weights()[cell]
        return self.log_weights(context).take_along_dim(cell[..., None], -1)[..., 0]

    def _in_box(self, x: Tensor) -> Tensor:
        assert self.tessellation.box is not None
        lo, hi = self.tessellation.box.bounds()
        return ((lo <= x) & (x <= hi)).all(-1)

    def _check_points(self, points: Tensor) -> None:
        checks.finite("x", points)
        if self.tessellation.box is not None and not bool((inside := self._in_box(points)).all()):
            raise ValueError(
                f"x: {int((~inside).sum())} of {len(points)} points lie outside the box, where the density is 0; "
                "expected all inside. Make the box larger, or leave it out"
            )


@torch.no_grad()
def spread(points: Tensor, count: int) -> Tensor:
    """`count` centres of points (M, D): each seed drawn by its squared distance to those before, then rounds of means.

    The seeding is that of k-means++, so no two seeds coincide; every round moves a centre to the mean of its points.
    """
    centres = points[torch.randint(len(points), (1,), device=points.device)]
    gap = (points - centres).square().sum(-1)
    for _ in range(count - 1):
        if not bool(gap.any()):
            raise ValueError(f"x: got {len(centres)} different points; expected at least one for each of {count} cells")
        seed = points[torch.multinomial(gap / gap.sum(), 1)]
        centres, gap = torch.cat([centres, seed]), torch.minimum(gap, (points - seed).square().sum(-1))
    for _ in range(ROUNDS_OF_MEANS):
        nearest = torch.cdist(points, centres).argmin(-1)
        size = torch.bincount(nearest, minlength=count)[:, None]
        total = torch.zeros_like(centres).index_add_(0, nearest, points)
        centres = torch.where(size > 0, total / size.clamp_min(1), centres)
    return centres


def moments(points: Tensor, cell: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Means (K, D) and covariances (K, D, D) of the points (M, D) of each cell (M,), drawn towards those of all points.

    S_k = (sum of squares around the cell's mean + n_0 S) / (n_k + n_0), S the mean square within cells, n_0 = D + 2
    points; the mean likewise, towards 0, by one point. S itself has a thousandth of its mean variance added.
    """
    dim = points.shape[-1]
    size = torch.bincount(cell, minlength=count).to(points.dtype)
    means = torch.zeros_like(points[:1]).expand(count, -1).index_add(0, cell, points) / (size + 1)[:, None]
    apart = points - means[cell]
    squares = torch.stack([apart[cell == k].mT @ apart[cell == k] for k in range(count)])
    within = squares.sum(0) / len(points)
    within = within + 1e-3 * within.diagonal().mean() * torch.eye(dim, dtype=points.dtype, device=points.device)
    prior = dim + 2
    return means, (squares + prior * within) / (size + prior)[:, None, None]


def _check(tessellation: Tessellation, component: Density, scale: float) -> None:
    if not tessellation.shared:
        raise ValueError(f"tessellation: got one per variable, of {len(tessellation.counts)}; expected anchors (K, D)")
    if component.event_shape != (tessellation.dim,):
        raise ValueError(
            f"component: got a density of points {component.event_shape}; expected {(tessellation.dim,)}, as the cells"
        )
    if not scale > 0:
        raise ValueError(f"scale: got {scale}; expected a positive number")
