"""The paper's experiments as typed presets over one way of running things."""

from tessella.experiments.presets import PRESETS
from tessella.experiments.run import RunConfig, TrainedRun, load_run, train_run

__all__ = ["PRESETS", "RunConfig", "TrainedRun", "load_run", "train_run"]
