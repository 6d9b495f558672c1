"""One run: data + model + training -> a run folder, and back."""

from tessella.runs.run import DataConfig, RunConfig, TrainedRun, claimed_for_run, load_run, record_of, train_run
from tessella.runs.texts import TextData, TextRun, TextRunConfig, is_text_run, load_text_run, train_text

__all__ = [
    "DataConfig",
    "RunConfig",
    "TextData",
    "TextRun",
    "TextRunConfig",
    "TrainedRun",
    "claimed_for_run",
    "is_text_run",
    "load_run",
    "load_text_run",
    "record_of",
    "train_run",
    "train_text",
]
