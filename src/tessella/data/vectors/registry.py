"""What is known about each table of real numbers before a file is opened."""

import gzip
import io
import lzma
import tarfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from tessella.data import reading
from tessella.data.forms import COMPACT, UNKNOWN, Entry, Extent, Form
from tessella.data.reading import RawFile
from tessella.data.vectors import parsing
from tessella.data.vectors.parsing import Parts
from tessella.data.vectors.patches import PATCHES, patches_from_tar

_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError)
_UCI = "https://archive.ics.uci.edu"


@dataclass(frozen=True, kw_only=True)
class VectorEntry(Entry[Parts]):
    """A table of real numbers.

    Attributes:
        standardised: whether columns are brought to mean 0 and deviation 1.
        patches: whether rows are square patches of images, their mean removed and the last pixel dropped.
    """

    standardised: bool = True
    patches: bool = False

    def read(self, form: Form[Parts], paths: tuple[Path, ...], seed: int = 0) -> Parts:
        try:
            with ExitStack() as stack:
                streams = [stack.enter_context(_open(*pair)) for pair in zip(paths, form.files, strict=True)]
                parts = form.verified(form.parse(*streams, np.random.default_rng(seed)))
            if not all(np.isfinite(part).all() for part in parts[:3]):
                raise ValueError("got values that are not finite; expected numbers")
        except (ValueError, KeyError, *_DAMAGED) as error:
            raise ValueError(f"{', '.join(map(str, paths))}: not what was published: {error}") from error
        return parts


def _open(path: Path, file: RawFile) -> BinaryIO:
    if file.checksum == COMPACT:
        _, data = reading.read_described(path)
        return io.BytesIO(lzma.decompress(data) if path.suffix == ".xz" else data)
    if file.checksum != UNKNOWN:
        return io.BytesIO(reading.read_raw(path, file))
    return cast(BinaryIO, gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _extent(columns: int, *parts: int) -> Extent:
    """Columns, then rows for train, validation and test."""
    return Extent(sum(parts), columns, parts=parts)


_POWER = _extent(6, 1_659_917, 184_435, 204_928)
_PATCHES = _extent(63, *PATCHES)

VECTORS: dict[str, VectorEntry] = {
    "power": VectorEntry(
        forms=(
            Form((RawFile("power.npz.xz", COMPACT),), parsing.power_from_compact, _POWER),
            Form(
                (
                    RawFile(
                        "household_power_consumption.txt",
                        "sha256:4259c9d7ece5dbee9ab8d53682baac68d791c864f0f64a52b4043cb3b90894b7",
                    ),
                ),
                parsing.power_from_raw,
                _POWER,
                archive=f"{_UCI}/static/public/235/individual+household+electric+power+consumption.zip",
            ),
        ),
        source="UCI Individual household electric power consumption (Hebrail and Berard, 2012), "
        f"{_UCI}/dataset/235/individual+household+electric+power+consumption",
    ),
    "gas": VectorEntry(
        forms=(
            Form((RawFile("ethylene_CO.txt", UNKNOWN),), parsing.gas_from_raw, _extent(8, 852_174, 94_685, 105_206)),
        ),
        source="UCI Gas sensor array under dynamic gas mixtures (Fonollosa, 2015), "
        f"{_UCI}/dataset/322/gas+sensor+array+under+dynamic+gas+mixtures",
    ),
    "hepmass": VectorEntry(
        forms=(
            Form(
                (RawFile("1000_train.csv", UNKNOWN), RawFile("1000_test.csv", UNKNOWN)),
                parsing.hepmass_from_raw,
                _extent(21, 315_123, 35_013, 174_987),
            ),
        ),
        source=f"UCI HEPMASS (Whiteson, 2016), {_UCI}/dataset/347/hepmass",
    ),
    "miniboone": VectorEntry(
        forms=(
            Form(
                (RawFile("data.npy", "git:be9b09e313e8e7b6db276f8af493e25c2abc8f70"),),
                parsing.miniboone_from_raw,
                _extent(43, 29_556, 3_284, 3_648),
            ),
            Form(
                (RawFile("miniboone_first1523.npz.xz", COMPACT),),
                parsing.miniboone_from_compact,
                _extent(43, 1_234, 137, 152),
                partial="partial: the first 1,523 of 36,488 rows, split as they are",
            ),
        ),
        source="UCI MiniBooNE particle identification (Roe, 2010), "
        f"{_UCI}/dataset/199/miniboone+particle+identification, "
        "as preprocessed by Papamakarios et al. (2017), https://doi.org/10.5281/zenodo.1161203",
    ),
    "bsds300": VectorEntry(
        forms=(
            Form((RawFile("bsds300_images.tar", COMPACT),), patches_from_tar, _PATCHES),
            Form((RawFile("BSDS300-images.tgz", UNKNOWN),), patches_from_tar, _PATCHES),
        ),
        source="Berkeley Segmentation Dataset BSDS300 (Martin, Fowlkes, Tal and Malik, 2001), "
        "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/bsds/",
        licence="non-commercial research and education",
        standardised=False,
        patches=True,
    ),
}
