"""Files as bytes and arrays, never without their checksum."""

import gzip
import hashlib
import io
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tessella.data import locate, lzw

_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.decompress,
    ".Z": lzw.decompress,
    ".xz": lzma.decompress,
}
_AGAIN = "delete it and get it again (tessella.data.get, a copy from its source, or a reinstall for a shipped file)"


@dataclass(frozen=True)
class RawFile:
    """A file as its authors publish it.

    Attributes:
        name: its name, unpacked.
        checksum: of its unpacked bytes, `sha256:...`, or `git:...` for the id that git would give it.
    """

    name: str
    checksum: str


def read_raw(path: Path, raw: RawFile) -> bytes:
    """The unpacked bytes of `raw`, from a plain file, a packed one or a zip archive, with their checksum verified."""
    try:
        data = _from_zip(path, raw.name) if path.suffix == ".zip" else _unpack(path.name, raw.name, path.read_bytes())
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error, zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path}: cannot be unpacked ({error}); the file is cut off or damaged: {_AGAIN}") from error
    _verify(f"{path} ({raw.name})", data, raw.checksum)
    return data


def _unpack(name: str, raw_name: str, data: bytes) -> bytes:
    return _UNPACK[name.removeprefix(raw_name)](data)


def _from_zip(path: Path, raw_name: str) -> bytes:
    wanted = {raw_name + packing for packing in locate.PACKINGS}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if (name := member.rsplit("/", 1)[-1]) in wanted:
                return _unpack(name, raw_name, archive.read(member))
        raise ValueError(f"no {raw_name} among its members {', '.join(archive.namelist())}")


def read_compact(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description (`.json`) and the arrays (`.npz.xz`) of a compact file, with its checksum verified."""
    description, data = read_described(path)
    with np.load(io.BytesIO(lzma.decompress(data))) as arrays:
        return description, dict(arrays)


def read_described(path: Path) -> tuple[dict[str, Any], bytes]:
    """The description (`.json`) and the bytes of a compact file, with its checksum verified."""
    description = describe(path.with_name(path.name.removesuffix(".npz.xz").removesuffix(".tar") + ".json"))
    data = path.read_bytes()
    _verify(str(path), data, f"sha256:{description['compact_sha256']}")
    return description, data


def describe(path: Path) -> dict[str, Any]:
    """The description that lies beside a compact file."""
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(description, dict) or "compact_sha256" not in description:
            raise ValueError("no 'compact_sha256' in it")
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{path}: is missing; expected it beside the .npz.xz or .tar file: copy both"
        ) from error
    except ValueError as error:
        raise ValueError(
            f"{path}: not the description of a compact file ({error}): copy it again from its source"
        ) from error
    return description


def _verify(what: str, data: bytes, checksum: str) -> None:
    kind, expected = checksum.split(":")
    found = _DIGESTS[kind](data)
    if found != expected:
        raise ValueError(
            f"{what}: the {kind} checksum of its {len(data):,} bytes is {found}; expected {expected}: {_AGAIN}"
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _git(data: bytes) -> str:
    header = hashlib.sha1(b"blob %d\0" % len(data), usedforsecurity=False)
    header.update(data)
    return header.hexdigest()


_DIGESTS: dict[str, Callable[[bytes], str]] = {"sha256": _sha256, "git": _git}
