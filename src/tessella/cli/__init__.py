"""The command line."""

from tessella.cli.main import main

__all__ = ["main"]
