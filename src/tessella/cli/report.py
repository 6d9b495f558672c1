"""`tessella report`."""

from pathlib import Path

import tyro


def report(model: tyro.conf.Positional[Path], out: Path | None = None) -> None:
    """Write what the model made of its table as one page: tessella report model.

    Likelihoods beside those of baselines, real columns beside sampled ones, learned cells, the oddest rows. The page
    is a single file that needs no network.

    Args:
        model: folder that `tessella fit` made.
        out: the file to write; report.html in the model's folder without it.
    """
    from tessella.cli.fit import REPORT
    from tessella.report.page import write_page

    print(write_page(model, out or model / REPORT, model=str(model)))
