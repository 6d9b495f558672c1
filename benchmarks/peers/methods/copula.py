"""SDV's `GaussianCopulaSynthesizer`, with the types of columns that SDV finds.

What it takes for a name, a code or an identifier it would make up anew; such columns are categories here.
"""

import pandas as pd
from sdv.metadata import Metadata
from sdv.single_table import GaussianCopulaSynthesizer

from benchmarks.peers.methods.exchange import Fitted, Task, serve

TABLE = "rows"
LEARNED = ("categorical", "ordinal", "numerical", "datetime", "boolean")


def fit(train: pd.DataFrame, task: Task) -> Fitted:
    metadata = Metadata.detect_from_dataframes({TABLE: train}, infer_keys=None)
    found = {name: column["sdtype"] for name, column in metadata.tables[TABLE].columns.items()}
    made_up = [name for name, kind in found.items() if kind not in LEARNED]
    metadata.update_columns(made_up, sdtype="categorical")
    synthesizer = GaussianCopulaSynthesizer(metadata)
    synthesizer.fit({TABLE: train})
    return Fitted(lambda rows: synthesizer.sample(rows)[TABLE], about={"types": found, "categories_instead": made_up})


if __name__ == "__main__":
    serve(fit, "sdv", "rdt", "copulas")
