"""Folders on disk: written whole, by one process at a time; what is read from them is a file and nothing else."""

import errno
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save
from torch import Tensor

LOCK = ".tessella.lock"
ROOM = 64 * 2**20  # bytes that must be free before anything long begins
LARGEST_JSON, LARGEST_TENSORS = 2**30, 2**36  # bytes
LONGEST = 400  # characters of another library's message
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_FAR = 2**30  # the byte that is locked on Windows, where nobody can read what is locked

_MISUNDERSTOOD = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError),
    SafetensorError,
)

_held: set[tuple[int, Path]] = set()
"""Folders that this process has claimed; a forked child has not."""


class BrokenFolderError(ValueError):
    """A folder holds something else than what was written into it: the file, what came, what was expected.

    In one line, whatever came.
    """

    def __init__(self, said: str):
        super().__init__(" ".join(said.splitlines()))


class BusyFolderError(OSError):
    """Another process writes into a folder."""


def write_whole(files: Mapping[Path, bytes]) -> None:
    """Each file as a whole or not at all, in this order; none takes its place before all of them are on the disk.

    Modes follow the umask.
    """
    parts = {path: path.with_name(f".{path.name}.tmp") for path in files}
    try:
        for path, part in parts.items():
            with open(part, "wb") as file:
                file.write(files[path])
                file.flush()
                os.fsync(file.fileno())
        for path, part in parts.items():
            os.replace(part, path)
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def put_elsewhere(write: Callable[[Path], None], prefix: str) -> str:
    """Write what its own folder has no room for into a new one: a temporary one, or where we are, or at home.

    Returns:
        Where that is, or that it is nowhere, in words.
    """
    tried = []
    for find in (tempfile.gettempdir, Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):  # no such place
            tried.append(find())
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=tried[-1]))
            try:
                write(folder)
            except OSError:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                return f"it is in {folder} instead"
    return f"it is lost, since {', '.join(map(str, tried))} cannot be written either"


def tensor_bytes(tensors: Mapping[str, Tensor], about: dict[str, str] | None = None) -> bytes:
    """A safetensors file of these tensors, wherever they are, and of what is said about them."""
    return save({name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in tensors.items()}, about)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU."""
    return tensors_of(path, read_file(path, LARGEST_TENSORS))


def tensors_of(path: Path, content: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors file that has been read."""
    with interpreting(path):
        return load(content)


def read_about(path: Path) -> dict[str, str]:
    """What is said about the tensors of a safetensors file, without reading them."""
    check_file(path, LARGEST_TENSORS)
    with interpreting(path), safe_open(path, framework="pt") as file:
        return dict(file.metadata())


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    content = read_file(path, LARGEST_JSON)
    with interpreting(path):
        said = json.loads(content)
    if not isinstance(said, dict):
        raise BrokenFolderError(f"{path}: got {type(said).__name__}; expected an object, {{...}}")
    return said


@contextmanager
def interpreting(path: Path) -> Iterator[None]:
    """Whatever cannot be understood inside is an error about the file, in one line."""
    try:
        yield
    except BrokenFolderError:
        raise
    except _MISUNDERSTOOD as error:
        raise BrokenFolderError(f"{path}: cannot be read ({one_line(error)})") from error


def one_line(error: BaseException) -> str:
    """What an error says, in one line that is not too long.

    >>> one_line(KeyError("a")), one_line(ValueError("two\\nlines"))
    ("KeyError: 'a'", 'two lines')
    """
    text = " ".join(str(error).split())
    text = text if isinstance(error, ValueError | RuntimeError) and text else f"{type(error).__name__}: {text}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def read_file(path: Path, most: int) -> bytes:
    """The content of a file of at most so many bytes."""
    check_file(path, most)
    return path.read_bytes()


def check_file(path: Path, most: int) -> None:
    """The path is that of a file of at most so many bytes; to open a pipe would take for ever, a device never end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
        what = next((name for known, name in kinds.items() if known(found.st_mode)), "a device")
        raise BrokenFolderError(f"{path}: got {what}; expected a file")
    if found.st_size > most:
        raise BrokenFolderError(f"{path}: got {found.st_size:,} bytes; expected at most {most:,}")


@contextmanager
def claimed(folder: Path, room: int = ROOM) -> Iterator[None]:
    """While entered, no other process that claims the folder may; it is made, can be written, and has room.

    The lock belongs to an open file: when a process ends, killed or not, so does its lock. On Windows the file is
    locked by `msvcrt` instead of `flock`, to the same effect; on file systems that know no locks nothing is locked.
    Inside one process claims may be nested.

    Args:
        folder: which.
        room: bytes that must be free.
    """
    new = not folder.exists()
    _make(folder, room)
    own = os.getpid(), folder.resolve()
    if own in _held:
        yield
        return
    file = _locked(folder)
    _held.add(own)
    try:
        yield
    finally:
        _held.discard(own)
        with suppress(OSError):  # Windows removes no open file; one that is left is claimed again
            (folder / LOCK).unlink()
        file.close()
        if new:
            with suppress(OSError):  # where something is in it
                folder.rmdir()


def _make(folder: Path, room: int) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "a file is in its way" if isinstance(error, FileExistsError | NotADirectoryError) else error.strerror
        raise OSError(
            f"{folder}: cannot be made ({why}); expected a folder, or a path where one can be made"
        ) from error
    check_room(folder, room)


def check_room(folder: Path, room: int = ROOM) -> None:
    """So many bytes are free there."""
    free = shutil.disk_usage(folder).free
    if free < room:
        raise OSError(
            f"{folder}: {free / 2**20:.2f} MB are free there; expected at least {room / 2**20:.2f} MB, for what is "
            "saved; make room, or take another folder"
        )


def _locked(folder: Path) -> IO[str]:
    """The lock of a folder, taken, with the name of this process in it; that also shows that files can be written."""
    path = folder / LOCK
    try:
        file = _open_lock(path, folder)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()} ({' '.join(sys.argv)[:200]})")
        file.flush()
    except BusyFolderError:
        raise
    except OSError as error:
        raise OSError(f"{folder}: cannot be written ({error.strerror}); expected a folder for new files") from error
    return file


def _open_lock(path: Path, folder: Path) -> IO[str]:
    while True:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115  # open as long as the lock is held
        if not _take(file):
            with file:
                file.seek(0)
                who = file.read().strip() or "another process"
            raise BusyFolderError(f"{folder}: {who} is writing there; wait until it ends, or take another folder")
        if path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno())):
            return file
        file.close()  # whoever had it has just removed it


def _take(file: IO[str]) -> bool:
    """Whether the file is locked now, by this process."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True
