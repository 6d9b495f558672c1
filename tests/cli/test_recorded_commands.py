"""What records and benchmarks say to type is understood: every option, and every field that is changed."""

import json
import shlex
import sys
from functools import wraps
from pathlib import Path

import pytest

import tessella.cli.main  # noqa: F401  # the function of that name hides the module
from benchmarks import ablations, itemsets, texts
from benchmarks import tables as launches
from tessella.cli.reproduce.tables import tables
from tessella.configs import changed, parse_changes
from tessella.paper.tables.recipes import recipe_for

FRONT = sys.modules["tessella.cli.main"]
RECORDS = sorted((Path(__file__).parent.parent.parent / "results").rglob("*.json"))
OURS = (["tessella"], ["python", "-m", "tessella.cli"])


def arguments(command: str) -> list[str] | None:
    """Of our command line; None for another program."""
    words = shlex.split(command)
    return next((words[len(program) :] for program in OURS if words[: len(program)] == program), None)


COMMANDS = {json.loads(file.read_text())["command"] for file in RECORDS}
COMMANDS |= {
    line for part in ("cpu", "gpu") for module in (ablations, itemsets, launches, texts) for line in module.lines(part)
}
TYPED = sorted(command for command in COMMANDS if arguments(command))


def test_there_are_some():
    assert len(TYPED) > 90


@pytest.mark.parametrize("command", TYPED)
def test_it_is_understood(command, monkeypatch):
    asked = []
    found = FRONT.commands(arguments(command))
    noted = {name: wraps(run)(lambda *args, **said: asked.append((args, said))) for name, run in found.items()}
    monkeypatch.setattr(FRONT, "commands", lambda _: noted)
    monkeypatch.setattr(sys, "argv", ["tessella", *arguments(command)])
    FRONT.main()
    assert len(asked) == 1
    (experiment,) = [*asked[0][0], *asked[0][1].values()][:1]
    if getattr(experiment, "func", None) is tables:
        said = experiment.keywords
        recipe = recipe_for(said["data"], said["method"], said["preset"])
        assert changed(recipe, parse_changes(said["change"])) is not None
