"""`tessella COMMAND`: the only place that joins rooms by name."""

import sys
from collections.abc import Callable
from typing import Any

from tessella.cli.data import data
from tessella.cli.demo import demo
from tessella.cli.evaluate import evaluate
from tessella.cli.fit import anomalies, fit, score
from tessella.cli.report import report
from tessella.cli.reproduce.figures import reproduce
from tessella.cli.results import results
from tessella.cli.sample import sample
from tessella.cli.train import train

COMMANDS: dict[str, Callable[..., Any]] = {
    "fit": fit,
    "score": score,
    "anomalies": anomalies,
    "sample": sample,
    "report": report,
    "train": train,
    "evaluate": evaluate,
    "data": data,
    "reproduce": reproduce,
    "results": results,
    "demo": demo,
}

DESCRIPTION = """Likelihoods you can trust for categories and mixed tables.

Your own table: fit, score, anomalies, sample, report. Research: train, evaluate, reproduce, results, data."""


def main() -> None:
    """Parse the command line, run the command; expected errors become one line and exit code 1."""
    import tyro

    flags = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.ConsolidateSubcommandArgs)
    try:
        tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="tessella", description=DESCRIPTION, config=flags)
    except (ValueError, TypeError, ArithmeticError, OSError) as error:
        print(f"tessella: {error}", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        print("tessella: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
