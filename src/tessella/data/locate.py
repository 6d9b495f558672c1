"""Where files are: inside the package, in the folder TESSELLA_DATA, in the cache, or at their home on the web."""

import os
from collections.abc import Iterator
from pathlib import Path

SHIPPED = Path(__file__).parent / "files"

PACKINGS = ("", ".gz", ".Z", ".xz")  # a file may lie there plain or packed


def folders() -> Iterator[Path]:
    """Where files are looked for, in this order: the package, `TESSELLA_DATA`, the cache."""
    yield SHIPPED
    if given := os.environ.get("TESSELLA_DATA"):
        if not Path(given).is_dir():
            raise FileNotFoundError(f"TESSELLA_DATA: folder {given!r} does not exist; create it or unset the variable")
        yield Path(given)
    yield cache()


def cache() -> Path:
    """The folder for downloads: `TESSELLA_CACHE`, else the platform's (`~/.cache/tessella` on Linux)."""
    if given := os.environ.get("TESSELLA_CACHE"):
        return Path(given)
    import pooch  # late: only needed for the platform's habits

    return Path(pooch.os_cache("tessella"))


def find(names: tuple[str, ...], archive: str) -> tuple[Path, ...] | None:
    """One path for each file, plain, packed, or the zip `archive` that holds it; all from one folder, or None."""
    for folder in folders():
        paths = [_in(folder, name, archive) for name in names]
        if all(paths):
            return tuple(path for path in paths if path)
    return None


def _in(folder: Path, name: str, archive: str) -> Path | None:
    candidates = [folder / f"{name}{packing}" for packing in PACKINGS] + [folder / archive]
    return next((path for path in candidates if path.is_file()), None)


def download(url: str) -> Path:
    """The file at `url`, in the cache under its own name. A half-finished download never gets that name."""
    return fetch(url, cache() / name_of(url))


def name_of(url: str) -> str:
    """The file name at the end of an address."""
    return url.rsplit("/", 1)[-1]


def fetch(url: str, path: Path) -> Path:
    """Download `url` to `path`, with a progress bar."""
    import pooch  # late: brings an HTTP client with it

    return Path(pooch.retrieve(url, known_hash=None, fname=path.name, path=path.parent, progressbar=True))
