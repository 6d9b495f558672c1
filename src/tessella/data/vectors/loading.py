"""The five continuous tables of density estimation, preprocessed as by Papamakarios et al. (2017)."""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from tessella.data import locate
from tessella.data.sources import Rows
from tessella.data.vectors.parsing import Parts
from tessella.data.vectors.registry import VECTORS


@dataclass(frozen=True)
class VectorTable:
    """train, validation and test partition the rows of a table of real numbers.

    Each column has mean 0 and standard deviation 1 over train and validation together, but for BSDS300, whose patches
    are not scaled. Log-likelihoods are those of these rows; in the units of the file they differ by the sum of the
    logarithms of the deviations.

    Attributes:
        name: the key in `VECTORS`.
        train: rows (x,), x float32 (B, D), like `validation` and `test`.
        partial: what is missing, in one sentence that belongs into every result made from this table; None if nothing.
        source: the data set, its authors and its home.
        licence: of the data.
        rebuilt: what was drawn anew, so that the rows are not exactly the published ones; None if they are.
        seed: of what was drawn.
    """

    name: str
    train: Rows
    validation: Rows
    test: Rows
    partial: str | None
    source: str
    licence: str
    rebuilt: str | None
    seed: int

    @property
    def parts(self) -> dict[str, Rows]:
        """Train, validation and test by name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def save(self, path: str | Path, rows: int | None = None) -> None:
        """Write a prepared table; `load_vectors` finds it as `NAME.prepared.safetensors` in `TESSELLA_DATA`.

        Args:
            path: a safetensors file; one that is there is overwritten.
            rows: keep at most the first so many of each part, which `partial` then says.
        """
        table = self if rows is None else self._first(rows)
        about = {field.name: getattr(table, field.name) for field in fields(table) if field.name not in table.parts}
        tensors = {part: rows.tensors[0].contiguous() for part, rows in table.parts.items()}
        save_file(tensors, path, {"table": json.dumps(about)})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The table that `save` wrote."""
        try:
            with safe_open(path, framework="pt") as file:
                train, validation, test = (Rows(file.get_tensor(part)) for part in ("train", "validation", "test"))
                about = json.loads(file.metadata()["table"])
            return cls(train=train, validation=validation, test=test, **about)
        except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: got {error}; expected a file that VectorTable.save wrote") from error

    def _first(self, rows: int) -> Self:
        if rows < 1:
            raise ValueError(f"rows: got {rows}; expected at least 1")
        sizes = [len(part) for part in self.parts.values()]
        if rows >= max(sizes):
            return self
        note = f"partial: at most {rows:,} rows of each part, of {' + '.join(f'{size:,}' for size in sizes)}"
        partial = f"{self.partial}; {note}" if self.partial else note
        # Clones: a file holds what is asked for, not the memory behind it.
        train, validation, test = (Rows(part.tensors[0][:rows].clone()) for part in self.parts.values())
        return replace(self, partial=partial, train=train, validation=validation, test=test)


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
    entry, path = VECTORS[name], prepared_path(name)
    prepared = VectorTable.load(path) if path else None
    if prepared and prepared.seed == seed and not prepared.partial:
        return prepared
    found = entry.find(name)
    if prepared and prepared.seed == seed and (found is None or found[0].partial):
        return prepared
    note = f"the prepared file has seed {prepared.seed}; " if prepared else ""
    form, paths = found or entry.download(name, note)
    parts = entry.read(form, paths, seed)
    arrays = _standardised(parts) if entry.standardised else parts[:3]
    train, validation, test = (Rows(torch.from_numpy(array.astype(np.float32, copy=False))) for array in arrays)
    return VectorTable(name, train, validation, test, form.partial, entry.source, entry.licence, parts.rebuilt, seed)


def prepared_path(name: str) -> Path | None:
    """Where a file that `VectorTable.save` wrote for this table lies."""
    paths = (folder / f"{name}.prepared.safetensors" for folder in locate.folders())
    return next((path for path in paths if path.is_file()), None)


def _standardised(parts: Parts) -> tuple[np.ndarray, ...]:
    seen = np.concatenate([parts.train, parts.validation])
    mean, deviation = seen.mean(axis=0), seen.std(axis=0)
    if not (deviation > 0).all():
        raise ValueError(f"column {int(deviation.argmin())}: has a single value; expected one that varies")
    return tuple((part - mean) / deviation for part in parts[:3])
