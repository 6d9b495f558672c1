"""BSDS300: small patches of natural images, drawn at random."""

import io
import re
import tarfile
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator

from tessella.data.vectors.parsing import Parts

_SIDE = 8
PATCHES = (1_000_000, 50_000, 250_000)  # train, validation, test


def patches_from_tar(stream: BinaryIO, generator: Generator) -> Parts:
    """Train and validation patches from the images in `train/`, test patches from those in `test/`.

    No patch is drawn twice, but a validation patch may overlap a training patch of the same image. How the published
    validation patches were chosen is not said.
    """
    images: dict[str, list[np.ndarray]] = {"train": [], "test": []}
    for name, data in sorted(_photographs(stream)):
        images[name.split("/")[-2]].append(_monochrome(data))
    train, validation, test = PATCHES
    seen, unseen = draw(images["train"], train + validation, generator), draw(images["test"], test, generator)
    return Parts(seen[:train], seen[train:], unseen, "resampled: not the published patches")


def _photographs(stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every .../train/*.jpg and .../test/*.jpg; nothing is unpacked to disk."""
    with tarfile.open(fileobj=stream) as archive:
        for member in archive:
            file = archive.extractfile(member) if re.search("/(train|test)/[^/]+[.]jpg$", member.name) else None
            if file:
                yield member.name, file.read()


def draw(images: list[np.ndarray], count: int, generator: Generator) -> np.ndarray:
    """Different 8 x 8 patches in random order, all equally likely, as rows: float32 (count, 63).

    x = v - mean(v) without the last pixel, where v = (pixels + u) / 256 with u uniform on [0, 1).
    """
    windows = [sliding_window_view(image, (_SIDE, _SIDE)) for image in images]
    ends = np.cumsum([window.shape[0] * window.shape[1] for window in windows])
    if len(ends) == 0 or ends[-1] < count:
        raise ValueError(f"got {len(images)} images; expected enough for {count:,} different patches")
    places = generator.choice(ends[-1], count, replace=False)
    owners = np.searchsorted(ends, places, side="right")
    rows = np.empty((count, _SIDE * _SIDE - 1), dtype=np.float32)
    for number, window in enumerate(windows):
        mine = np.flatnonzero(owners == number)
        start = ends[number] - window.shape[0] * window.shape[1]
        pixels = window[np.divmod(places[mine] - start, window.shape[1])].reshape(len(mine), _SIDE * _SIDE)
        values = (pixels + generator.random(pixels.shape)) / 256
        rows[mine] = (values - values.mean(axis=1, keepdims=True))[:, :-1]
    return rows


def _monochrome(data: bytes) -> np.ndarray:
    """The luma 0.299 R + 0.587 G + 0.114 B of a JPEG file, uint8 (height, width)."""
    from PIL import Image  # late: only BSDS300 needs it

    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("L"))
