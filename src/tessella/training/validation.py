"""The validation value: the same rows and the same noise each time, whatever the number of processes."""

import torch
from torch import Tensor, nn

from tessella.contracts import Source, Trainable
from tessella.training.batches import check_source
from tessella.training.config import TrainingConfig
from tessella.training.randomness import derived_seed, fork_rng, seed_noise


def evaluate(model: Trainable, validation: Source, config: TrainingConfig) -> float:
    """Mean of `model.nll` over the validation rows, in nats per row: exactly the number that `fit` reports.

    Leaves the model's mode and the global generators as they were.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model: got {type(model).__name__}; expected an nn.Module")
    check_source("validation", validation)
    device = next(model.parameters()).device
    rows = validation_subset(validation, config).to(device)
    training = model.training
    model.eval()
    try:
        return float(nll_sums(model, validation.to(device), rows, config).sum()) / len(rows)
    finally:
        model.train(training)


def validation_subset(validation: Source, config: TrainingConfig) -> Tensor:
    """Indices of the rows that count: all, or `validation_rows` of them drawn once from the seed, in their order."""
    number = len(validation)
    if number <= config.validation_rows:
        return torch.arange(number)
    generator = torch.Generator().manual_seed(derived_seed(config.seed, "validation rows"))
    return torch.randperm(number, generator=generator)[: config.validation_rows].sort().values


@torch.no_grad()
def nll_sums(
    model: Trainable, source: Source, rows: Tensor, config: TrainingConfig, rank: int = 0, processes: int = 1
) -> Tensor:
    """Sum of `model.nll` over each chunk of rows, (chunks,), in float64; 0 for the chunks of other processes.

    Every chunk has a noise seed of its own, so that the sums of several processes add up to those of one, bit by bit.

    Args:
        model, source: on one device.
        rows: indices into the source, on this device.
        config: size of a chunk, seed of the noise.
        rank, processes: which chunks are this process's.
    """
    chunks = rows.split(config.batch_size)
    sums = torch.zeros(len(chunks), dtype=torch.float64, device=rows.device)
    with fork_rng(rows.device):
        for i in range(rank, len(chunks), processes):
            seed_noise(derived_seed(config.seed, "validation noise", i), rows.device)
            nll = model.nll(*source.batch(chunks[i]))
            if nll.shape != (len(chunks[i]),):
                raise ValueError(
                    f"model.nll: got shape {tuple(nll.shape)}; expected ({len(chunks[i])},), a value per row"
                )
            sums[i] = nll.sum(dtype=torch.float64)
    return sums
