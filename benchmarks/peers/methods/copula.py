"""SDV's `GaussianCopulaSynthesizer`, with the types of columns that SDV finds.

What it takes for a name, a code or an identifier it would make up anew; such columns are categories here.
"""

import pandas as pd
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer

from benchmarks.peers.methods.exchange import Fitted, Task, serve

LEARNED = ("categorical", "numerical", "datetime", "boolean")


def fit(train: pd.DataFrame, task: Task) -> Fitted:
    metadata = Metadata.detect_from_dataframe(train)
    found = {name: column["sdtype"] for name, column in metadata.tables["table"].columns.items()}
    made_up = [name for name, kind in found.items() if kind not in LEARNED]
    if metadata.tables["table"].primary_key:
        metadata.remove_primary_key()
    for name in made_up:
        metadata.update_column(name, sdtype="categorical")
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit(train)
    return Fitted(synthesizer.sample, about={"types": found, "categories_instead": made_up})


if __name__ == "__main__":
    serve(fit, "sdv", "rdt", "copulas")
