"""Work during which a process dies, a number of times."""

import os
import signal
from pathlib import Path
from typing import Any

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
