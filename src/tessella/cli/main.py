"""`tessella COMMAND`: the only package that joins others by name."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

DESCRIPTION = """Likelihoods you can trust for categories and mixed tables.

Your own table: fit, score, anomalies, sample, impute, predict, report. Baskets of items: baskets.
Research: train, evaluate, reproduce, results, data."""


def commands(arguments: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """The commands by name, for this line."""
    from tessella.cli.ask import impute, predict
    from tessella.cli.baskets import baskets
    from tessella.cli.data import data
    from tessella.cli.demo import demo
    from tessella.cli.evaluate import evaluate
    from tessella.cli.fit import fit
    from tessella.cli.late import late_commands
    from tessella.cli.report import report
    from tessella.cli.results import results
    from tessella.cli.sample import sample
    from tessella.cli.score import anomalies, score

    found: dict[str, Callable[..., Any]] = {
        "fit": fit,
        "score": score,
        "anomalies": anomalies,
        "sample": sample,
        "impute": impute,
        "predict": predict,
        "report": report,
        "baskets": baskets,
        "evaluate": evaluate,
        "data": data,
        "results": results,
        "demo": demo,
    }
    return found | late_commands(arguments)


def main() -> None:
    """Parse the command line, run the command; expected errors become one line and exit code 1."""
    try:
        _run(sys.argv[1:])
    except (ValueError, TypeError, ArithmeticError, OSError) as error:
        print(f"tessella: {error}", file=sys.stderr)
        raise SystemExit(1) from error
    except KeyboardInterrupt:
        print("tessella: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


def _run(arguments: list[str]) -> None:
    if arguments == ["--version"]:
        from tessella.version import __version__

        print(f"tessella {__version__}")
        return
    import tyro

    flags = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.ConsolidateSubcommandArgs)
    tyro.extras.subcommand_cli_from_dict(
        commands(arguments), prog="tessella", description=DESCRIPTION, args=arguments, config=flags
    )
