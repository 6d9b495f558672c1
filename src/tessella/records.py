"""Where a measured number comes from: every JSON record in results/ carries this."""

import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

CODE = (":/src", ":/benchmarks", ":/pyproject.toml", ":/constraints.txt")  # results and pages are what runs change


def provenance(seed: int | None = None) -> dict[str, Any]:
    """Command, commit, hardware, versions, seed and time of the run that asks."""
    return {
        "command": _command(),
        "commit": _commit(),
        "hardware": hardware(),
        "torch": torch.__version__,
        "seed": seed,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def hardware() -> str:
    """The processor and, where there is one, the accelerator, in words.

    Runs that share a machine say so if TESSELLA_RUNS_AT_ONCE holds their number: no run can see the others.
    """
    cpu = f"{_cpu_name()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    said = f"{torch.cuda.get_device_name()}; {cpu}" if torch.cuda.is_available() else cpu
    together = os.environ.get("TESSELLA_RUNS_AT_ONCE", "1")
    if not together.isdecimal():
        raise ValueError(f"TESSELLA_RUNS_AT_ONCE: got {together!r}; expected how many runs share the machine, e.g. 4")
    return f"{said}; {together} runs at once" if int(together) > 1 else said


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a record as JSON, readable in a diff."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")


def _command() -> str:
    """What was typed, as a shell takes it: `tessella ...`, or `python -m module ...`."""
    if sys.orig_argv[1:2] == ["-m"]:
        return shlex.join(["python", *sys.orig_argv[1:]])
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """The commit of the checkout this file is in ("+" when its code has local changes); "unknown" outside one."""
    if given := os.environ.get("TESSELLA_COMMIT"):
        return given
    here = Path(__file__).parent
    git = ["git", "-C", str(here)]
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        look = [*git, "status", "--porcelain", "--untracked-files=no", "--", *CODE]
        changed = subprocess.run(look, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
