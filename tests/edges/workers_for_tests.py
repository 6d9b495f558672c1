"""What workers are asked to do: to die, a number of times, and to say how many threads they have."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from tessella.cli.fitted import Piece, Question


def killed(question: Question, deaths: Path, first: int, times: int, flow: Any, piece: Piece) -> Any:
    """The answer to a question; about the piece that begins there only after so many deaths, each of which has a file.

    Args:
        question: which.
        deaths: folder of the files.
        first: row.
        times: how many.
        flow, piece: of the question.
    """
    before = len(list(deaths.iterdir()))
    if piece.first == first and before < times:
        (deaths / str(before)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return question(flow, piece)


def threads(part: Any) -> Iterator[int]:
    """Of torch."""
    yield torch.get_num_threads()
