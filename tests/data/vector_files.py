"""Small files in the published forms of the five continuous tables."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tessella.data import VECTORS
from tessella.data.vectors.registry import UNKNOWN, Form, Sizes


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def power_meters(minutes: int) -> np.ndarray:
    """Active power x 1000, reactive x 1000, voltage x 100, intensity x 10, three sub-meterings, as integers."""
    most = [9000, 900, 3000, 400, 80, 80, 30]
    return np.random.default_rng(1).integers(0, most, size=(minutes, 7)) + np.array([0, 0, 22000, 0, 0, 0, 0])


def power_text(minutes: int = 340) -> bytes:
    """Every 17th row lacks its values."""
    lines = ["Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;S1;S2;S3"]
    for i, (gap, grp, volt, gi, *sub) in enumerate(power_meters(minutes).tolist()):
        minute = (17 * 60 + 24 + i) % 1440
        values = f"{gap / 1000:.3f};{grp / 1000:.3f};{volt / 100:.3f};{gi / 10:.3f};" + ";".join(
            f"{s}.000" for s in sub
        )
        lines.append(f"16/12/2006;{minute // 60:02}:{minute % 60:02}:00;" + (values if i % 17 else "?;?;?;?;?;?;"))
    return "\r\n".join(lines).encode() + b"\r\n"


def gas_text(rows: int = 1200) -> bytes:
    """Sensors k and k + 8 measure nearly the same; one line more has a word in it."""
    draw = np.random.default_rng(2)
    sensors = draw.normal(size=(rows, 8))
    table = np.concatenate(
        [np.arange(3 * rows).reshape(rows, 3), sensors, sensors + 0.01 * draw.normal(size=(rows, 8))], 1
    )
    lines = [" ".join(f"{value:.6f}" for value in row) for row in table]
    lines.insert(5, lines[5].replace(lines[5].split()[7], "error"))
    return "\n".join(
        ["Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)", *lines]
    ).encode()


DISCRETE = (5, 9, 13, 17, 21)  # number of jets, and four tags


def hepmass_text(rows: int, seed: int, extra: int) -> bytes:
    """Label, 26 features of which five are discrete, and `extra` columns more; every second row is signal."""
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(rows, 27 + extra))
    table[:, 0] = np.arange(rows) % 2
    table[:, [1 + n for n in DISCRETE]] = draw.integers(0, 3, size=(rows, 5))
    header = ",".join(["# label", *(f"f{n}" for n in range(26 + extra))])
    return "\n".join([header, *(",".join(f"{value:.18e}" for value in row) for row in table)]).encode()


def jpegs(sizes: list[tuple[int, int]]) -> list[bytes]:
    draw, files = np.random.default_rng(3), []
    for size in sizes:
        file = io.BytesIO()
        Image.fromarray(draw.integers(0, 256, size=(*size, 3), dtype=np.uint8)).save(file, "JPEG")
        files.append(file.getvalue())
    return files


def bsds_tgz() -> bytes:
    packed = io.BytesIO()
    names = ["train/1", "train/2", "train/3", "test/1", "test/2"]
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in zip(names, jpegs([(48, 32), (32, 48), (40, 40), (32, 48), (48, 32)]), strict=True):
            member = tarfile.TarInfo(f"BSDS300/images/{name}.jpg")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# Name of the table: its files, and the sizes of the parts.
Files = dict[str, bytes]
SMALL: dict[str, Callable[[], tuple[Files, Sizes]]] = {
    "power": lambda: ({"household_power_consumption.txt": power_text()}, (260, 28, 32)),
    "gas": lambda: ({"ethylene_CO.txt": gas_text()}, (243, 27, 30)),
    "hepmass": lambda: (
        {"1000_train.csv.gz": gzip.compress(hepmass_text(600, 4, 1)), "1000_test.csv": hepmass_text(240, 5, 2)},
        (270, 30, 120),
    ),
    "miniboone": lambda: ({"data.npy": npy(np.random.default_rng(6).normal(2, 3, size=(300, 43)))}, (243, 27, 30)),
    "bsds300": lambda: ({"BSDS300-images.tgz": bsds_tgz()}, (400, 50, 100)),
}


def written(name: str, folder: Path, patch: pytest.MonkeyPatch) -> Sizes:
    """Put small files of a table into a folder, and let the table be published as these."""
    files, sizes = SMALL[name]()
    for file, data in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)
    publish(name, list(files.values()), sizes, patch)
    patch.setattr("tessella.data.vectors.parsing.SIGNAL_ROWS", (300, 120))
    patch.setattr("tessella.data.vectors.patches.PATCHES", SMALL["bsds300"]()[1])
    return sizes


def publish(name: str, contents: list[bytes], sizes: Sizes, patch: pytest.MonkeyPatch) -> None:
    entry = VECTORS[name]
    form = raw_form(name)
    files = tuple(
        replace(file, checksum=digest(data) if file.checksum != UNKNOWN else UNKNOWN)
        for file, data in zip(form.files, contents, strict=True)
    )
    patch.setitem(VECTORS, name, replace(entry, forms=(replace(form, files=files, rows=sizes),)))


def raw_form(name: str) -> Form:
    """The published form, not a compact one."""
    wanted = {file.removesuffix(".gz") for file in SMALL[name]()[0]}
    return next(form for form in VECTORS[name].forms if {file.name for file in form.files} == wanted)
