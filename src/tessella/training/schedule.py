"""What changes from step to step: the learning rate and the decay of the averaged weights. Steps count from 0."""

from math import cos, pi

from tessella.training.config import TrainingConfig


def learning_rate(step: int, config: TrainingConfig, spent: float = 0.0) -> float:
    """eta_t = eta (t + 1) / w for t < w, then eta (f + (1 - f) (1 + cos(pi s)) / 2) with s from 0 to 1.

    w = `warmup_steps`, f = `final_fraction`; the last step runs at f times the peak. s is the share of the steps after
    w that were made, or the share of the time budget that is spent, if that is more: a run that turns out slower than
    planned still comes to rest.

    >>> config = TrainingConfig(steps=5, warmup_steps=2, learning_rate=1.0, final_fraction=0.5)
    >>> [round(learning_rate(step, config), 3) for step in range(5)]
    [0.5, 1.0, 1.0, 0.75, 0.5]
    >>> learning_rate(2, config, spent=1.0)
    0.5
    """
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    progress = (step - config.warmup_steps) / max(1, config.steps - 1 - config.warmup_steps)
    progress = max(progress, min(spent, 1.0))
    fraction = config.final_fraction + (1 - config.final_fraction) * (1 + cos(pi * progress)) / 2
    return config.learning_rate * fraction


def average_decay(step: int, config: TrainingConfig) -> float:
    """d_t = min(d, (1 + t) / (10 + t)): short memory at first, so that the average soon forgets the initial weights.

    >>> [average_decay(step, TrainingConfig(ema_decay=0.9)) for step in (0, 8, 1000)]
    [0.1, 0.5, 0.9]
    """
    return min(config.ema_decay, (1 + step) / (10 + step))
