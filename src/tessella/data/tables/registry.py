"""What is known about each table before a file is opened. A new table is an entry here and two parsers in `formats`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

from tessella.data.reading import RawFile
from tessella.data.tables import formats
from tessella.data.tables.formats import Coded, FromCompact, FromRaw

_UCI = "https://archive.ics.uci.edu"


@dataclass(frozen=True)
class Extent:
    """How large a table is: rows, variables, and the most categories that one variable has."""

    rows: int
    variables: int
    categories: int

    def __str__(self) -> str:
        return f"{self.rows:,} rows, {self.variables} variables, at most {self.categories} categories"


@dataclass(frozen=True)
class Compact:
    """A compact file `stem.npz.xz`: how to read it, and what it lacks where it is only a part."""

    stem: str
    parse: FromCompact
    partial: tuple[Extent, str] | None = None


@dataclass(frozen=True)
class Entry:
    """Everything known about a table before its file is opened.

    Attributes:
        source: the data set, its authors and its home.
        archive: the zip file at its home that holds the raw files.
        raw: the raw files, in the order in which their rows are joined.
        parse: from the bytes of the raw files to codes.
        compact: the compact form.
        extent: of the complete table, single-valued columns left out.
        seed: of the published split.
        percent: of the rows for training and validation; the rest is the test.
        floor: see `Table`.
        simulate: simulates (rows, seed) where the law is known.
    """

    source: str
    archive: str
    raw: tuple[RawFile, ...]
    parse: FromRaw
    compact: Compact
    extent: Extent
    seed: int
    percent: tuple[int, int] = (80, 10)
    floor: float | None = None
    licence: str = "CC BY 4.0"
    simulate: Callable[[int, int], Coded] | None = None

    @property
    def archive_name(self) -> str:
        """The archive's file name."""
        return self.archive.rsplit("/", 1)[-1]


TABLES: dict[str, Entry] = {
    "connect4": Entry(
        source=f"UCI Connect-4 (Tromp, 1995), {_UCI}/dataset/26/connect+4",
        archive=f"{_UCI}/static/public/26/connect+4.zip",
        raw=(RawFile("connect-4.data", "sha256:063152e6eadbb424c7ef4645df76e493a43812edd9c992400983da4fa54f8cba"),),
        parse=formats.words_from_raw("connect4"),
        compact=Compact("connect4", formats.words_from_compact),
        extent=Extent(67_557, 42, 3),
        seed=123,
        floor=log(67_557),  # all rows differ
    ),
    "forests": Entry(
        source=f"UCI Covertype (Blackard, 1998), {_UCI}/dataset/31/covertype",
        archive=f"{_UCI}/static/public/31/covertype.zip",
        raw=(RawFile("covtype.data", "sha256:0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"),),
        parse=formats.forests_from_raw,
        compact=Compact("covtype", formats.forests_from_compact),
        extent=Extent(581_012, 54, 10),
        seed=678,
    ),
    "mushroom": Entry(
        source=f"UCI Mushroom (donated by Schlimmer, 1987), {_UCI}/dataset/73/mushroom",
        archive=f"{_UCI}/static/public/73/mushroom.zip",
        raw=(
            RawFile("agaricus-lepiota.data", "sha256:e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"),
        ),
        parse=formats.words_from_raw("mushroom"),
        compact=Compact("mushroom", formats.words_from_compact),
        extent=Extent(8_124, 21, 12),
        seed=234,
        floor=log(8_124),  # all rows differ
    ),
    "nursery": Entry(
        source=f"UCI Nursery (Rajkovic, 1989), {_UCI}/dataset/76/nursery",
        archive=f"{_UCI}/static/public/76/nursery.zip",
        raw=(RawFile("nursery.data", "sha256:8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d"),),
        parse=formats.words_from_raw("nursery"),
        compact=Compact("nursery", formats.words_from_compact),
        extent=Extent(12_960, 8, 5),
        seed=345,
        floor=log(12_960),  # the complete grid
    ),
    "pokerhands": Entry(
        source=f"UCI Poker Hand (Cattral and Oppacher, 2002), {_UCI}/dataset/158/poker+hand",
        archive=f"{_UCI}/static/public/158/poker+hand.zip",
        raw=(
            RawFile("poker-hand-testing.data", "git:c3d6eb72f64bb017fc4e6c5fca400010cfacebc0"),
            RawFile(
                "poker-hand-training-true.data",
                "sha256:865e3ddab86a461d6d556ae339ca0c13b602d8be9088281abe8b2accd75a9f69",
            ),
        ),
        parse=formats.poker_from_raw,
        compact=Compact(
            "poker_partial",
            formats.poker_from_compact,
            (
                Extent(125_010, 10, 13),
                "partial: the last 900,000 of the 1,000,000 testing rows are missing; split 80/10/10 as it is",
            ),
        ),
        extent=Extent(1_025_010, 10, 13),
        seed=567,
        floor=log(52 * 51 * 50 * 49 * 48),  # the entropy of an ordered deal
        simulate=formats.simulate,
    ),
    "uscensus90": Entry(
        source=f"UCI US Census Data 1990 (Meek, Thiesson and Heckerman, 2001), {_UCI}/dataset/116/us+census+data+1990",
        archive=f"{_UCI}/static/public/116/us+census+data+1990.zip",
        raw=(
            RawFile("USCensus1990.data.txt", "sha256:38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799"),
        ),
        parse=formats.census_from_raw,
        compact=Compact(
            "uscensus90_spmf10k",
            formats.census_from_compact,
            (
                Extent(10_000, 48, 18),
                "partial: 10,000 of 2,458,285 rows and 48 of 68 attributes, split 90/5/5 as they are",
            ),
        ),
        extent=Extent(2_458_285, 68, 18),
        seed=456,
        percent=(90, 5),
    ),
}
