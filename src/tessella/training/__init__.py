"""The one training loop: Lightning Fabric, averaged weights, exact resume, run folders without pickle.

>>> from tessella.training import TrainingConfig, fit
"""

from tessella.contracts import Trainable
from tessella.training.config import TrainingConfig
from tessella.training.fitting import fit
from tessella.training.folder import RunFolder, load_best
from tessella.training.result import FitResult, NonFiniteError, StopReason
from tessella.training.schedule import average_decay, learning_rate
from tessella.training.validation import evaluate

__all__ = [
    "FitResult",
    "NonFiniteError",
    "RunFolder",
    "StopReason",
    "Trainable",
    "TrainingConfig",
    "average_decay",
    "evaluate",
    "fit",
    "learning_rate",
    "load_best",
]
