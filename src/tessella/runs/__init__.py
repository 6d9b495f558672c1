"""One run: data + model + training -> a run folder, and back."""

from tessella.runs.run import RunConfig, TrainedRun, load_run, train_run

__all__ = ["RunConfig", "TrainedRun", "load_run", "train_run"]
