"""Launch lines: printed, or run one after another."""

import shlex
import subprocess
import sys
from collections.abc import Callable


def launch(usage: str | None, lines: Callable[[str], list[str]]) -> None:
    """As the arguments of the script say: `cpu` or `gpu`, and `--run` to execute them."""
    asked = sys.argv[1:]
    if asked[:1] not in (["cpu"], ["gpu"]) or asked[1:] not in ([], ["--run"]):
        raise SystemExit(usage)
    for line in lines(asked[0]):
        print(line, flush=True)
        if asked[1:]:
            subprocess.run([sys.executable, "-m", "tessella.cli", *shlex.split(line)[1:]], check=True)
