"""What is known about each continuous table before a file is opened, and where its files are."""

import gzip
import io
import lzma
import tarfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.random import Generator

from tessella.data import locate, reading
from tessella.data.reading import RawFile
from tessella.data.vectors import parsing as parsing
from tessella.data.vectors.parsing import Parts
from tessella.data.vectors.patches import PATCHES, patches_from_tar

_UCI = "https://archive.ics.uci.edu"

_DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError)

COMPACT = "described"  # the checksum of a compact file is in the description beside it
UNKNOWN = ""  # no checksum is known: the file is streamed, and its sizes are all that is verified

Sizes = tuple[int, int, int]  # rows for train, validation and test


@dataclass(frozen=True)
class Form:
    """One form in which a table may lie in a folder.

    Attributes:
        files: all of them are needed; the checksum is that of `RawFile`, `COMPACT` or `UNKNOWN`.
        parse: from the open files and a random generator to the parts.
        rows: how many the parts should have.
        partial: what is missing, None where the form is complete.
        archive: the zip file at the home of the data that holds the files.
    """

    files: tuple[RawFile, ...]
    parse: Callable[..., Parts]
    rows: Sizes
    partial: str | None = None
    archive: str = ""

    def find(self, name: str) -> tuple[Path, ...] | None:
        """Where the files are, all together in a folder of `locate.folders` or in its subfolder `name`."""
        archive = self.archive.rsplit("/", 1)[-1]
        for prefix in ("", f"{name}/"):
            names = tuple(prefix + file.name for file in self.files)
            if paths := locate.find_raw(names, prefix + archive if archive else ""):
                return paths
        return None

    def read(self, paths: tuple[Path, ...], columns: int, generator: Generator) -> Parts:
        """The parts, with checksums where they are known, sizes and finite values verified."""
        try:
            with ExitStack() as stack:
                streams = [stack.enter_context(_open(*pair)) for pair in zip(paths, self.files, strict=True)]
                parts = self.parse(*streams, generator)
            shapes = tuple(part.shape for part in parts[:3])
            if shapes != (expected := tuple((rows, columns) for rows in self.rows)):
                raise ValueError(f"got train, validation and test of shapes {shapes}; expected {expected}")
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


@dataclass(frozen=True)
class VectorEntry:
    """Everything known about a continuous table before a file is opened.

    Attributes:
        columns: D.
        forms: the complete ones first.
        source: the data set, its authors and its home.
        licence: of the data.
        standardised: whether columns are brought to mean 0 and deviation 1.
    """

    columns: int
    forms: tuple[Form, ...]
    source: str
    licence: str = "CC BY 4.0"
    standardised: bool = True

    def find(self, name: str) -> tuple[Form, tuple[Path, ...]] | None:
        """The first form whose files are here."""
        return next(((form, paths) for form in self.forms if (paths := form.find(name))), None)


_POWER, _MINIBOONE = (1_659_917, 184_435, 204_928), (29_556, 3_284, 3_648)

VECTORS: dict[str, VectorEntry] = {
    "power": VectorEntry(
        columns=6,
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
        columns=8,
        forms=(Form((RawFile("ethylene_CO.txt", UNKNOWN),), parsing.gas_from_raw, (852_174, 94_685, 105_206)),),
        source="UCI Gas sensor array under dynamic gas mixtures (Fonollosa, 2015), "
        f"{_UCI}/dataset/322/gas+sensor+array+under+dynamic+gas+mixtures",
    ),
    "hepmass": VectorEntry(
        columns=21,
        forms=(
            Form(
                (RawFile("1000_train.csv", UNKNOWN), RawFile("1000_test.csv", UNKNOWN)),
                parsing.hepmass_from_raw,
                (315_123, 35_013, 174_987),
            ),
        ),
        source=f"UCI HEPMASS (Whiteson, 2016), {_UCI}/dataset/347/hepmass",
    ),
    "miniboone": VectorEntry(
        columns=43,
        forms=(
            Form(
                (RawFile("data.npy", "git:be9b09e313e8e7b6db276f8af493e25c2abc8f70"),),
                parsing.miniboone_from_raw,
                _MINIBOONE,
            ),
            Form(
                (RawFile("miniboone_first1523.npz.xz", COMPACT),),
                parsing.miniboone_from_compact,
                (1_234, 137, 152),
                partial="partial: the first 1,523 of 36,488 rows, split as they are",
            ),
        ),
        source="UCI MiniBooNE particle identification (Roe, 2010), "
        f"{_UCI}/dataset/199/miniboone+particle+identification, "
        "as preprocessed by Papamakarios et al. (2017), https://doi.org/10.5281/zenodo.1161203",
    ),
    "bsds300": VectorEntry(
        columns=63,
        forms=(
            Form((RawFile("bsds300_images.tar", COMPACT),), patches_from_tar, PATCHES),
            Form((RawFile("BSDS300-images.tgz", UNKNOWN),), patches_from_tar, PATCHES),
        ),
        source="Berkeley Segmentation Dataset BSDS300 (Martin, Fowlkes, Tal and Malik, 2001), "
        "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/bsds/",
        licence="non-commercial research and education",
        standardised=False,
    ),
}
