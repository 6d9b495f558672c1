"""The validation value: the same rows and the same noise each time, whatever the number of processes."""

import torch
from torch import Tensor, nn

from tessella.training.config import TrainingConfig
from tessella.training.contract import Trainable
from tessella.training.randomness import derived_seed, seed_noise, undisturbed_noise


def evaluate(model: Trainable, validation: Tensor, config: TrainingConfig) -> float:
    """Mean of `model.nll` over the validation rows, in nats per row: exactly the number that `fit` reports.

    Leaves the model's mode and the global generators as they were.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {type(model).__name__}; expected an nn.Module")
    device = next(model.parameters()).device
    rows = validation_subset(validation, config).to(device)
    training = model.training
    model.eval()
    try:
        return float(nll_sums(model, rows, config).sum()) / len(rows)
    finally:
        model.train(training)


def validation_subset(validation: Tensor, config: TrainingConfig) -> Tensor:
    """The rows that count: all, or `validation_rows` of them drawn once from the seed, in their order."""
    if len(validation) <= config.validation_rows:
        return validation
    generator = torch.Generator().manual_seed(derived_seed(config.seed, "validation rows"))
    chosen = torch.randperm(len(validation), generator=generator)[: config.validation_rows].sort().values
    return validation[chosen.to(validation.device)]


@torch.no_grad()
def nll_sums(model: Trainable, rows: Tensor, config: TrainingConfig, rank: int = 0, processes: int = 1) -> Tensor:
    """Sum of `model.nll` over each chunk of rows, (chunks,), in float64; 0 for the chunks of other processes.

    Every chunk has a noise seed of its own, so that the sums of several processes add up to those of one, bit by bit.
    """
    chunks = rows.split(config.batch_size)
    sums = torch.zeros(len(chunks), dtype=torch.float64, device=rows.device)
    with undisturbed_noise(rows.device):
        for i in range(rank, len(chunks), processes):
            seed_noise(derived_seed(config.seed, "validation noise", i), rows.device)
            nll = model.nll(chunks[i])
            if nll.shape != (len(chunks[i]),):
                raise ValueError(
                    f"model.nll: got shape {tuple(nll.shape)}; expected ({len(chunks[i])},), a value per row"
                )
            sums[i] = nll.sum(dtype=torch.float64)
    return sums
