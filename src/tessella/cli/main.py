"""`tessella COMMAND`: the only package that joins others by name."""

import sys
from collections.abc import Callable
from typing import Any

from tessella.cli.ask import impute, predict
from tessella.cli.data import data
from tessella.cli.demo import demo
from tessella.cli.evaluate import evaluate
from tessella.cli.fit import fit
from tessella.cli.report import report
from tessella.cli.reproduce import reproduce
from tessella.cli.results import results
from tessella.cli.sample import sample
from tessella.cli.score import anomalies, score
from tessella.cli.train import train_like

COMMANDS: dict[str, Callable[..., Any]] = {
    "fit": fit,
    "score": score,
    "anomalies": anomalies,
    "sample": sample,
    "impute": impute,
    "predict": predict,
    "report": report,
    "evaluate": evaluate,
    "data": data,
    "reproduce": reproduce,
    "results": results,
    "demo": demo,
}

DESCRIPTION = """Likelihoods you can trust for categories and mixed tables.

Your own table: fit, score, anomalies, sample, impute, predict, report.
Research: train, evaluate, reproduce, results, data."""


def main() -> None:
    """Parse the command line, run the command; expected errors become one line and exit code 1."""
    import tyro

    flags = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.ConsolidateSubcommandArgs)
    try:
        commands = COMMANDS | {"train": train_like(sys.argv[1:])}
        tyro.extras.subcommand_cli_from_dict(commands, prog="tessella", description=DESCRIPTION, config=flags)
    except (ValueError, TypeError, ArithmeticError, OSError) as error:
        print(f"tessella: {error}", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        print("tessella: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
