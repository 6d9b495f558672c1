"""Published files again, from what is shipped."""

import io
import zipfile

import numpy as np
import torch

from tessella.data import Table
from tessella.data.locate import SHIPPED
from tessella.data.reading import read_compact


def rebuilt(stem: str) -> bytes:
    """The published text of a shipped table, from its compact form."""
    description, arrays = read_compact(SHIPPED / f"{stem}.npz.xz")
    features, columns = iter(arrays["X"].T), []
    for column in description["columns"]:
        codes = arrays["y"] if column["role"] == "label" else next(features)
        columns.append(np.array(column["categories"])[codes].tolist())
    text = "".join(",".join(row) + "\n" for row in zip(*columns, strict=True))
    return (text + "\n" if stem == "nursery" else text).encode()


def zipped(name: str, data: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index", "something else")
        file.writestr(name, data)
    return archive.getvalue()


def everything(table: Table) -> torch.Tensor:
    """The codes of all rows, part after part."""
    return torch.cat([part.tensors[0] for part in table.parts.values()])


def restored(table: Table, seed: int) -> torch.Tensor:
    """The rows in the file's order again."""
    rows = everything(table)
    order = torch.from_numpy(np.random.RandomState(seed).permutation(len(rows)))
    return torch.empty_like(rows).index_copy_(0, order, rows)
