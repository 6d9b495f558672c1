"""Frames of any library as Arrow tables, which every file format knows."""

from typing import Any

import narwhals as nw
import numpy as np


def to_arrow(frame: Any) -> Any:
    """A pandas, polars or pyarrow table, or a 2-D array (columns named 0, 1, ...), as a pyarrow table."""
    if isinstance(frame, np.ndarray):
        names = [str(j) for j in range(frame.shape[1])]
        return nw.from_dict(dict(zip(names, frame.T.tolist(), strict=True)), backend="pyarrow").to_native()
    return nw.from_native(frame, eager_only=True).to_arrow()
