"""What is known about each table before a file is opened. A new table is an entry here and two parsers in `parsing`."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from pathlib import Path

from tessella.data import reading
from tessella.data.forms import COMPACT, Entry, Extent, Form
from tessella.data.reading import RawFile
from tessella.data.tables import parsing
from tessella.data.tables.joining import Joint, joined, one_hot, pairs, stacks
from tessella.data.tables.parsing import Coded

_UCI = "https://archive.ics.uci.edu"


@dataclass(frozen=True, kw_only=True)
class TableEntry(Entry[Coded]):
    """A table of categories, of which single-valued columns are left out.

    Attributes:
        seed: of the published split.
        percent: of the rows for training and validation; the rest is the test.
        entropy_floor: see `Table`.
        simulate: simulates (rows, seed) where the distribution is known.
        joints: columns that say one thing together, as the description of the data set has it.
    """

    seed: int
    percent: tuple[int, int] = (80, 10)
    entropy_floor: float | None = None
    simulate: Callable[[int, int], Coded] | None = None
    joints: tuple[Joint, ...] = ()

    @property
    def joined_variables(self) -> int:
        """Columns that vary where `joints` are one each."""
        return self.extent.variables - sum(len(joint.columns) - 1 for joint in self.joints)

    def joined(self, coded: Coded) -> Coded:
        """The same rows, `joints` as one column each."""
        return joined(coded, self.joints)

    def read(self, form: Form[Coded], paths: tuple[Path, ...], seed: int = 0) -> Coded:
        contents = reading.read_compact(paths[0]) if form.compact else tuple(map(reading.read_raw, paths, form.files))
        try:
            return form.verified(form.parse(*contents).varying())
        except (ValueError, KeyError) as error:
            raise ValueError(f"{', '.join(map(str, paths))}: not what was published: {error}") from error

    def remedy(self, name: str) -> str:
        simulated = ", or simulate it with load_table(..., simulated=True)" if self.simulate else ""
        return super().remedy(name) + simulated


def _words(stem: str, raw: RawFile, archive: str, extent: Extent) -> tuple[Form[Coded], ...]:
    """The two forms of a table of words, which ships in its compact one."""
    return (
        Form((RawFile(f"{stem}.npz.xz", COMPACT),), parsing.words_from_compact, extent),
        Form((raw,), parsing.words_from_raw(stem), extent, archive=f"{_UCI}/static/public/{archive}"),
    )


TABLES: dict[str, TableEntry] = {
    "connect4": TableEntry(
        source=f"UCI Connect-4 (Tromp, 1995), {_UCI}/dataset/26/connect+4",
        forms=_words(
            "connect4",
            RawFile("connect-4.data", "sha256:063152e6eadbb424c7ef4645df76e493a43812edd9c992400983da4fa54f8cba"),
            "26/connect+4.zip",
            Extent(67_557, 42, 3),
        ),
        seed=123,
        entropy_floor=log(67_557),  # all rows differ
        joints=tuple(Joint(f"file {file}", 6 * i, stacks(6, pieces=(1, 2))) for i, file in enumerate("abcdefg")),
    ),
    "forests": TableEntry(
        source=f"UCI Covertype (Blackard, 1998), {_UCI}/dataset/31/covertype",
        forms=(
            Form((RawFile("covtype.npz.xz", COMPACT),), parsing.forests_from_compact, Extent(581_012, 54, 10)),
            Form(
                (RawFile("covtype.data", "sha256:0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945"),),
                parsing.forests_from_raw,
                Extent(581_012, 54, 10),
                archive=f"{_UCI}/static/public/31/covertype.zip",
            ),
        ),
        seed=678,
        joints=(
            Joint("Wilderness_Area", 10, one_hot(4), tuple(f"{k + 1}" for k in range(4))),
            Joint("Soil_Type", 14, one_hot(40), tuple(f"{k + 1}" for k in range(40))),
        ),
    ),
    "mushroom": TableEntry(
        source=f"UCI Mushroom (donated by Schlimmer, 1987), {_UCI}/dataset/73/mushroom",
        forms=_words(
            "mushroom",
            RawFile("agaricus-lepiota.data", "sha256:e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"),
            "73/mushroom.zip",
            Extent(8_124, 21, 12),
        ),
        seed=234,
        entropy_floor=log(8_124),  # all rows differ
    ),
    "nursery": TableEntry(
        source=f"UCI Nursery (Rajkovic, 1989), {_UCI}/dataset/76/nursery",
        forms=_words(
            "nursery",
            RawFile("nursery.data", "sha256:8e0389c3dd37590248a921c2726d869ee96b817761a35eb8416afa24f31f931d"),
            "76/nursery.zip",
            Extent(12_960, 8, 5),
        ),
        seed=345,
        entropy_floor=log(12_960),  # the complete grid
    ),
    "pokerhands": TableEntry(
        source=f"UCI Poker Hand (Cattral and Oppacher, 2002), {_UCI}/dataset/158/poker+hand",
        forms=(
            Form(
                (
                    RawFile("poker-hand-testing.data", "git:c3d6eb72f64bb017fc4e6c5fca400010cfacebc0"),
                    RawFile(
                        "poker-hand-training-true.data",
                        "sha256:865e3ddab86a461d6d556ae339ca0c13b602d8be9088281abe8b2accd75a9f69",
                    ),
                ),
                parsing.poker_from_raw,
                Extent(1_025_010, 10, 13),
                archive=f"{_UCI}/static/public/158/poker+hand.zip",
            ),
            Form(
                (RawFile("poker_partial.npz.xz", COMPACT),),
                parsing.poker_from_compact,
                Extent(125_010, 10, 13),
                "partial: the last 900,000 of the 1,000,000 testing rows are missing; split 80/10/10 as it is",
            ),
        ),
        seed=567,
        entropy_floor=log(52 * 51 * 50 * 49 * 48),  # the entropy of an ordered deal
        simulate=parsing.simulate,
        joints=tuple(Joint(f"card {i + 1}", 2 * i, pairs(4, 13)) for i in range(5)),
    ),
    "uscensus90": TableEntry(
        source=f"UCI US Census Data 1990 (Meek, Thiesson and Heckerman, 2001), {_UCI}/dataset/116/us+census+data+1990",
        forms=(
            Form(
                (
                    RawFile(
                        "USCensus1990.data.txt",
                        "sha256:38e99f50855ddc03167b715b36519ef40b77295ae4e85dfef0c6429ac79ed799",
                    ),
                ),
                parsing.census_from_raw,
                Extent(2_458_285, 68, 18),
                archive=f"{_UCI}/static/public/116/us+census+data+1990.zip",
            ),
            Form(
                (RawFile("uscensus90_spmf10k.npz.xz", COMPACT),),
                parsing.census_from_compact,
                Extent(10_000, 48, 18),
                "partial: 10,000 of 2,458,285 rows and 48 of 68 attributes, split 90/5/5 as they are",
            ),
        ),
        seed=456,
        percent=(90, 5),
    ),
}
