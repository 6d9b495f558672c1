"""The import rules of ARCHITECTURE.md, as tests."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import tessella

ROOT = Path(tessella.__file__).parent

# Layers, top to bottom; a package imports only from layers below its own.
LAYERS = [
    {"cli"},
    {"estimators", "report", "paper"},
    {"runs"},
    {"evaluation"},
    {"models"},
    {"baselines"},
    {"dequantizers"},
    {"densities"},
    {"bijections"},
    {"geometry", "nets"},
    {"data", "training"},
    {"checks", "configs", "contracts", "folders", "progress", "records", "version"},
]
LAYER_OF = {package: len(LAYERS) - level for level, packages in enumerate(LAYERS) for package in packages}

# Libraries that only some packages may import.
ONLY_IN = {
    "triton": {"bijections", "geometry"},
    "lightning_fabric": {"training"},
    "pooch": {"data"},
    "PIL": {"data", "paper"},
    "matplotlib": {"paper"},
    "sklearn": {"estimators"},
    "narwhals": {"estimators"},
    "pyarrow": {"cli", "estimators"},
    "tyro": {"cli"},
    "ray": {"cli"},
    "zuko": {"densities"},
    "torchdiffeq": {"bijections"},
}


LAZY = {"import_module", "__import__", "find_spec"}  # calls that import what their argument names


def imports(file: Path) -> set[str]:
    """Dotted names imported anywhere in a file: by statements at any depth, and by name at run time."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import; write the full name"
            assert node.module is not None
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in LAZY:
            assert isinstance(node.args[0], ast.Constant), f"{file}: imports a name that only the run will know"
            found.add(str(node.args[0].value))
    return found


def home(name: str) -> str:
    """The package of ours that a dotted name comes from, through whatever re-exports it; "" for none of ours.

    >>> home("tessella.TabularFlow"), home("tessella.data.load_table"), home("torch.nn")
    ('estimators', 'data', '')
    """
    parts = name.split(".")
    if parts[0] != "tessella":
        return ""
    if (len(parts) > 1 and (ROOT / parts[1]).exists()) or (ROOT / f"{parts[1]}.py").exists():
        through, _, last = name.rpartition(".")
        defined = getattr(getattr(importlib.import_module(through), last, None), "__module__", None)
        if isinstance(defined, str) and defined.startswith("tessella."):
            return defined.split(".")[1]
        return parts[1]
    return home(f"{getattr(tessella, parts[1]).__module__}.{parts[1]}")


FILES = [file for file in sorted(ROOT.rglob("*.py")) if file != ROOT / "__init__.py"]


def package_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_packages_import_only_from_layers_below(file: Path):
    package = package_of(file)
    assert package in LAYER_OF, f"{package}: a new package; give it a layer here and in ARCHITECTURE.md"
    for name in imports(file):
        for source in {home(name), *name.split(".")[1:2]} & set(LAYER_OF) if home(name) else ():
            if source != package:
                assert LAYER_OF[source] < LAYER_OF[package], f"{package} imports {name}, which is not in a layer below"


def test_re_exports_are_seen(tmp_path):
    """A name from the root, from another package's front, or imported at run time, counts as what it is."""
    file = tmp_path / "sly.py"
    file.write_text("from tessella import TabularFlow\nimport importlib\nimportlib.import_module('sklearn.base')\n")
    assert imports(file) == {"tessella.TabularFlow", "importlib", "sklearn.base"}
    assert home("tessella.TabularFlow") == "estimators"
    assert home("tessella.Voronoi") == home("tessella.bijections.cell.Tessellation") == "geometry"
    assert home("tessella.checks") == "checks"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_libraries_stay_in_their_packages(file: Path):
    for name in imports(file):
        library, package = name.split(".")[0], package_of(file)
        assert package in ONLY_IN.get(library, {package}), f"{library} belongs in {ONLY_IN.get(library)}"
        assert library not in {"tests", "benchmarks", "docs"}


def test_only_the_command_line_imports_the_paper():
    users = {package_of(file) for file in FILES if any(home(name) == "paper" for name in imports(file))}
    assert users <= {"cli", "paper"}


def test_import_is_light():
    """`import tessella` costs nothing, and the names of the method little more than `import torch`."""
    heavy = ["matplotlib", "sklearn", "narwhals", "pyarrow", "pandas", "lightning_fabric", "pooch", "zuko", "tyro"]
    heavy += ["torch._dynamo", "torch._inductor"]
    script = "import sys, tessella; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "False"
    names = [name for name in tessella.__all__ if name not in ("MixtureFlow", "SetFlow", "TabularFlow")]
    script = f"import sys\nfrom tessella import {', '.join(names)}\nprint([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"
