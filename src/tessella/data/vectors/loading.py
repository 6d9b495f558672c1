"""The five continuous tables of density estimation, preprocessed as by Papamakarios et al. (2017)."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from tessella.data import locate
from tessella.data.catalogue import Listing
from tessella.data.tables.finding import download_archive
from tessella.data.vectors.parsing import Parts
from tessella.data.vectors.registry import VECTORS, Form, VectorEntry

_PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class VectorTable:
    """train, validation and test partition the rows of a table of real numbers.

    Each column has mean 0 and standard deviation 1 over train and validation together, but for BSDS300, whose patches
    are not scaled. Log-likelihoods are those of these rows; in the units of the file they differ by the sum of the
    logarithms of the deviations.

    Attributes:
        name: the key in `VECTORS`.
        train: float32 (rows, D), like `validation` and `test`.
        partial: what is missing, in one sentence that belongs into every result made from this table; None if nothing.
        source: the data set, its authors and its home.
        licence: of the data.
        rebuilt: what was drawn anew, so that the rows are not exactly the published ones; None if they are.
        seed: of what was drawn.
    """

    name: str
    train: Tensor
    validation: Tensor
    test: Tensor
    partial: str | None
    source: str
    licence: str
    rebuilt: str | None
    seed: int

    def save(self, path: str | Path, rows: int | None = None) -> None:
        """Write a prepared table; `load_vectors` finds it as `NAME.prepared.safetensors` in `TESSELLA_DATA`.

        Args:
            path: a safetensors file; one that is there is overwritten.
            rows: keep at most the first so many of each part, which `partial` then says.
        """
        table = self if rows is None else self._first(rows)
        about = {key: value for key, value in asdict(table).items() if key not in _PARTS}
        save_file({part: getattr(table, part).contiguous() for part in _PARTS}, path, {"table": json.dumps(about)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The table that `save` wrote."""
        try:
            with safe_open(path, framework="pt") as file:
                return cls(**{part: file.get_tensor(part) for part in _PARTS}, **json.loads(file.metadata()["table"]))
        except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: got {error}; expected a file that VectorTable.save wrote") from error

    def _first(self, rows: int) -> Self:
        if rows < 1:
            raise ValueError(f"rows: got {rows}; expected at least 1")
        sizes = [len(getattr(self, part)) for part in _PARTS]
        if rows >= max(sizes):
            return self
        note = f"partial: at most {rows:,} rows of each part, of {' + '.join(f'{size:,}' for size in sizes)}"
        partial = f"{self.partial}; {note}" if self.partial else note
        # Clones: a file holds what is asked for, not the memory behind it.
        return replace(self, partial=partial, **{part: getattr(self, part)[:rows].clone() for part in _PARTS})


def load_vectors(name: str, *, seed: int = 0) -> VectorTable:
    """x = (rows - mean) / deviation, both over train and validation, of the rows that the published rules give.

    A prepared file with this seed comes first, then raw and compact files, then the web where a checksum is known
    (power); a complete table always before a part. See docs/data.md for the rules.

    Args:
        name: a key of `VECTORS`.
        seed: of the noise, the order and the patches; hepmass and miniboone draw nothing.
    """
    if name not in VECTORS:
        raise ValueError(f"continuous table {name!r}: not known; expected one of {', '.join(VECTORS)}")
    entry, prepared = VECTORS[name], _prepared(name)
    if prepared and prepared.seed == seed and not prepared.partial:
        return prepared
    found = entry.find(name)
    if prepared and prepared.seed == seed and (found is None or found[0].partial):
        return prepared
    form, paths = found or _download(name, entry, prepared)
    parts = form.read(paths, entry.columns, np.random.default_rng(seed))
    arrays = _standardised(parts) if entry.standardised else parts[:3]
    train, validation, test = (torch.from_numpy(array.astype(np.float32, copy=False)) for array in arrays)
    return VectorTable(name, train, validation, test, form.partial, entry.source, entry.licence, parts.rebuilt, seed)


def available_vectors() -> list[Listing]:
    """All continuous tables, whether here or not; `Listing.categories` is 0.

    >>> [(listing.name, listing.variables) for listing in available_vectors()]
    [('power', 6), ('gas', 8), ('hepmass', 21), ('miniboone', 43), ('bsds300', 63)]
    """
    return [_listing(name, entry) for name, entry in VECTORS.items()]


def _listing(name: str, entry: VectorEntry) -> Listing:
    found, prepared = entry.find(name), _prepared_path(name)
    form = found[0] if found else entry.forms[0]
    rows, partial, where = sum(form.rows), form.partial, f"not here: {_remedy(name, entry)}"
    if found:
        where = ", ".join(map(str, found[1]))
    elif prepared:
        table = VectorTable.load(prepared)
        rows, partial, where = sum(len(getattr(table, part)) for part in _PARTS), table.partial, str(prepared)
    return Listing(name, rows, entry.columns, 0, where, partial, entry.licence)


def _prepared_path(name: str) -> Path | None:
    paths = (folder / f"{name}.prepared.safetensors" for folder in locate.folders())
    return next((path for path in paths if path.is_file()), None)


def _prepared(name: str) -> VectorTable | None:
    path = _prepared_path(name)
    return VectorTable.load(path) if path else None


def _download(name: str, entry: VectorEntry, prepared: VectorTable | None) -> tuple[Form, tuple[Path, ...]]:
    other = f"the prepared file has seed {prepared.seed}; " if prepared else ""
    form = next((form for form in entry.forms if form.archive), None)
    if form is None:
        raise FileNotFoundError(f"{name}: not here; {other}{_remedy(name, entry)}")
    return form, download_archive(form.archive, form.files, other + _remedy(name, entry))


def _remedy(name: str, entry: VectorEntry) -> str:
    files = ", or ".join(" and ".join(file.name for file in form.files) for form in entry.forms)
    return f"put {files} into the folder named by TESSELLA_DATA or its subfolder {name} ({entry.source})"


def _standardised(parts: Parts) -> tuple[np.ndarray, ...]:
    seen = np.concatenate([parts.train, parts.validation])
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    if not (deviation > 0).all():
        raise ValueError(f"column {int(deviation.argmin())}: has a single value; expected one that varies")
    return tuple((part - mean) / deviation for part in parts[:3])
