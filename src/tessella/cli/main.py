"""`tessella COMMAND`: the only place that joins rooms by name."""

import sys

from tessella.cli.demo import demo

COMMANDS = {"demo": demo}


def main() -> None:
    """Parse the command line, run the command, turn expected errors into one line and an exit code."""
    import tyro

    try:
        tyro.extras.subcommand_cli_from_dict(COMMANDS, prog="tessella", description=DESCRIPTION)
    except (ValueError, TypeError, FileNotFoundError) as error:
        print(f"tessella: {error}", file=sys.stderr)
        raise SystemExit(1) from error


DESCRIPTION = """Likelihoods you can trust for categories, mixed tables, sets and text."""
