"""What is known about each data set of sets before a file is opened."""

from dataclasses import dataclass
from pathlib import Path

from tessella.data import reading
from tessella.data.forms import COMPACT, UNKNOWN, Entry, Extent, Form
from tessella.data.itemsets import parsing
from tessella.data.itemsets.parsing import Subsets, Transactions
from tessella.data.reading import RawFile

_FIMI = "http://fimi.uantwerpen.be/data/"
_RETAIL = Extent(30_351, 4, 765)


@dataclass(frozen=True, kw_only=True)
class ItemSetEntry(Entry[Subsets]):
    """Sets of items.

    Attributes:
        published_seed: of the subsets and the split.
    """

    published_seed: int

    def read(self, form: Form[Subsets], paths: tuple[Path, ...], seed: int = 0) -> Subsets:
        try:
            return form.verified(form.parse(self.transactions(form, paths), self.published_seed))
        except (ValueError, KeyError) as error:
            raise ValueError(f"{', '.join(map(str, paths))}: not what was published: {error}") from error

    def transactions(self, form: Form[Subsets], paths: tuple[Path, ...]) -> Transactions:
        """The rows that sets are made of."""
        if form.compact:
            return parsing.transactions_from_compact(*reading.read_compact(paths[0]))
        return parsing.transactions_from_raw(_raw(paths[0], form.files[0]))


def _raw(path: Path, file: RawFile) -> bytes:
    return path.read_bytes() if file.checksum == UNKNOWN else reading.read_raw(path, file)


ITEMSETS: dict[str, ItemSetEntry] = {
    "retail": ItemSetEntry(
        forms=(
            Form((RawFile("retail.npz.xz", COMPACT),), parsing.several_subsets, _RETAIL),
            Form(
                (RawFile("retail.dat", "sha256:d967431ba522e32f0fbb243f2ee113ecd4cb374cb0234c1b0858dae1d499a055"),),
                parsing.several_subsets,
                _RETAIL,
            ),
        ),
        source=f"FIMI retail (Brijs, Swinnen, Vanhoof and Wets, 1999), {_FIMI}",
        licence="free use with citation",
        published_seed=123,
    ),
    "accidents": ItemSetEntry(
        forms=(
            Form((RawFile("accidents.dat", UNKNOWN),), parsing.one_subset, Extent(337_662, 4, 213)),
            Form(
                (RawFile("accidents_first15224.npz.xz", COMPACT),),
                parsing.several_subsets,
                Extent(142_025, 4, 139),
                partial="partial: several subsets of each of the first 15,224 of 340,183 rows, 139 items of "
                "the published 213, split 80/10/10 as they are",
            ),
        ),
        source=f"FIMI accidents (Geurts, Wets, Brijs and Vanhoof, 2003), {_FIMI}",
        licence="free use with citation",
        published_seed=234,
    ),
}
