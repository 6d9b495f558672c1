"""A mixture whose components overlap: all of them are evaluated at every point."""

import torch
from torch import Tensor, nn

from tessella.densities.base import Density


class FlowMixture(Density):
    """log p(x) = log sum_k p(k) p_comp(x | k), over all K: what `DisjointMixture` avoids, kept for comparison.

    Args:
        component: density in R^D whose context is the embedding of k.
        components: their number K.
        embedding: size of the learned embedding of k.
    """

    def __init__(self, component: Density, components: int, embedding: int = 16):
        super().__init__()
        if components < 1:
            raise ValueError(f"components: got {components}; expected at least 1")
        self.component, self.event_shape = component, component.event_shape
        self.logits = nn.Parameter(torch.zeros(components))
        self.embedding = nn.Embedding(components, embedding)

    def log_prob(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        batch = x.shape[: x.dim() - len(self.event_shape)]
        everywhere = x.expand(len(self.logits), *x.shape)  # (K, *batch, *event)
        index = torch.arange(len(self.logits), device=x.device).view(-1, *[1] * len(batch)).expand(-1, *batch)
        log_each = self.component.log_prob(everywhere, self.embedding(index))
        log_weights = self.logits.log_softmax(0).view(-1, *[1] * len(batch))
        return torch.logsumexp(log_weights + log_each, 0)

    def sample(self, shape: tuple[int, ...], context: Tensor | None = None) -> Tensor:
        index = torch.distributions.Categorical(logits=self.logits, validate_args=False).sample(shape)
        return self.component.sample(shape, self.embedding(index))
