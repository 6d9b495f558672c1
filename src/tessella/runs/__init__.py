"""One run: data + model + training -> a run folder, and back."""

from tessella.runs.run import DataConfig, RunConfig, TrainedRun, claimed_for_run, load_run, record_of, train_run

__all__ = ["DataConfig", "RunConfig", "TrainedRun", "claimed_for_run", "load_run", "record_of", "train_run"]
