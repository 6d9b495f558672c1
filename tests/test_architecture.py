"""The import rules of ARCHITECTURE.md, as tests."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tessella

ROOT = Path(tessella.__file__).parent

# Floors of the house, top to bottom; a room imports only from floors below its own. `checks` stands under all of them.
FLOORS = [
    {"cli"},
    {"estimators", "report"},
    {"experiments"},
    {"evaluation"},
    {"models", "baselines"},
    {"dequantizers"},
    {"densities"},
    {"bijections"},
    {"geometry", "nets"},
    {"kernels", "data", "training"},
    {"checks", "contracts", "records", "progress"},
]
FLOOR_OF = {room: len(FLOORS) - level for level, rooms in enumerate(FLOORS) for room in rooms}

# Libraries that only one room may import.
ONLY_IN = {
    "triton": "kernels",
    "lightning_fabric": "training",
    "pooch": "data",
    "PIL": "data",
    "matplotlib": "report",
    "sklearn": "estimators",
    "narwhals": "estimators",
    "pyarrow": "cli",
    "tyro": "cli",
}


def imports(file: Path) -> set[str]:
    """Dotted names imported anywhere in a file."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write the full name"
            assert node.module is not None
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = [file for file in sorted(ROOT.rglob("*.py")) if file != ROOT / "__init__.py"]


def room_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_rooms_import_only_from_floors_below(file: Path):
    room = room_of(file)
    assert room in FLOOR_OF, f"{room}: a new room; give it a floor here and in ARCHITECTURE.md"
    for name in imports(file):
        parts = name.split(".")
        if parts[0] == "tessella" and len(parts) > 1 and parts[1] in FLOOR_OF and parts[1] != room:
            assert FLOOR_OF[parts[1]] < FLOOR_OF[room], f"{room} imports {name}, which is not on a floor below"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_libraries_stay_in_their_room(file: Path):
    for name in imports(file):
        library = name.split(".")[0]
        assert ONLY_IN.get(library, room_of(file)) == room_of(file), f"{library} belongs in {ONLY_IN.get(library)}"
        assert library not in {"tests", "benchmarks", "docs"}


def test_import_is_light():
    """`import tessella` costs little more than `import torch`."""
    heavy = ["matplotlib", "sklearn", "narwhals", "pyarrow", "pandas", "lightning_fabric", "pooch", "zuko", "tyro"]
    script = f"import sys, tessella; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"
