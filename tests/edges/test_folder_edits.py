"""Changes of a saved folder that somebody made, or may make: each is refused in a line that says what is wrong."""

import os
from pathlib import Path
from typing import Any

import polars
import pytest
import torch
from tests.edges.folders_for_tests import change_weights, copied, edit, loaded, save_estimator

from tessella.estimators.saving import DESCRIPTION, WEIGHTS
from tessella.folders import BrokenFolderError

USED = ["autoregressive", "blocks", "coupling", "mixture", "array", "gaussians"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    made = {density: tmp_path_factory.mktemp("saved") / density for density in USED}
    for density, folder in made.items():
        save_estimator(density, folder)
    return made


def refused(folder: Path, density: str) -> str:
    with pytest.raises(BrokenFolderError) as caught:
        loaded(folder, density)
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)
    return str(caught.value)


EDITS: list[tuple[str, str, Any, str]] = [
    # sizes that nobody has the memory or the time for
    ("autoregressive", "config.width", 10**6, "width: got 1000000; expected at most"),
    ("autoregressive", "config.layers", 10**7, "layers: got 10000000"),
    ("autoregressive", "config.layers", 900, "got no weight; expected one of this description"),
    ("autoregressive", "config.width", 1000, "much larger model than the weights"),
    ("autoregressive", "config.orders", 10**9, "orders: got 1000000000"),
    ("autoregressive", "config.sizes.0", [10**9, 0, 1], "sizes: got 1000000000"),
    ("blocks", "config.components", 10**8, "components: got 100000000"),
    ("blocks", "config.width", -4, "width: got -4"),
    ("blocks", "config.groups", 10**9, "groups: got 1000000000"),
    ("coupling", "config.blocks", 10**7, "blocks: got 10000000"),
    ("coupling", "config.dim", 999, "expected (62, 999)"),
    ("coupling", "config.noise.layers", 10**9, "layers: got 1000000000"),
    ("coupling", "fitted.samples_", 10**9, "samples: got 1000000000"),
    ("coupling", "params.samples", 10**9, "samples: got 1000000000"),
    ("mixture", "config.components", [10**9], "components: got 1000000000"),
    ("mixture", "codes.0.group.0", 10**9, "expected one for each part"),
    ("gaussians", "config.components", 10**8, "components: got 100000000"),
    ("gaussians", "fitted.n_features_in_", 10**9, "expected 1000000000, one a column"),
    # types
    ("autoregressive", "config.width", "wide", "width: got 'wide'; expected int"),
    ("autoregressive", "config.width", 8.0, "width: got 8.0; expected int"),
    ("autoregressive", "config.fast", 1, "fast: got 1; expected bool"),
    ("autoregressive", "config", None, "expected an object"),
    ("autoregressive", "config.kind", "magic", "got 'magic'; expected one of"),
    ("autoregressive", "config.more", 1, "AutoregressiveConfig: got more"),
    ("autoregressive", "params.width", "8", "width: got '8'"),
    ("autoregressive", "params.shape", 8, "params: got shape"),
    ("autoregressive", "fitted.seed_", None, "seed_: got None; expected int"),
    ("autoregressive", "fitted.density_", "none", "density_: got 'none'"),
    ("autoregressive", "fitted", {}, "KeyError: 'seed_'"),
    ("coupling", "config.noise.base", "cauchy", "base: got 'cauchy'"),
    # columns that cannot be
    ("autoregressive", "columns", [], "expected a list of objects"),
    ("autoregressive", "columns.0.categories", [], "expected at least one"),
    ("autoregressive", "columns.0.categories", ["F", "F"], "all different"),
    ("autoregressive", "columns.0.categories", ["F", {"date": "x"}], "columns: cannot be read"),
    ("autoregressive", "columns.0.kind", "colour", "kind: got 'colour'"),
    ("autoregressive", "columns.0.name", "height", "got the names"),
    ("autoregressive", "columns.1.low", float("nan"), "got the range nan"),
    ("autoregressive", "columns.4.high", 1e300, "do not hold the columns"),
    ("autoregressive", "columns.5.high", 1e9, "days that there are"),
    ("autoregressive", "columns.4.step", 0, "got the step 0"),
    ("autoregressive", "columns.1.atoms", [2.0, 1.0], "expected none, or 4"),
    ("autoregressive", "columns.2.frequencies", [1], "got frequencies (1)"),
    ("mixture", "codes.0.edges", [1.0], "expected rising numbers"),
    ("mixture", "codes.0.log_mass.0", 3.0, "sum to 1"),
    ("mixture", "codes", None, "cannot be read"),
    # dtypes that are none
    ("blocks", "layout.dtypes.1.dtype", "show_versions", "got the dtype 'show_versions'; expected one of polars's"),
    ("blocks", "layout.dtypes.1.dtype", "Config", "expected one of polars's"),
    ("blocks", "layout.dtypes.1.dtype", "Int64", "do not hold the columns"),
    ("blocks", "layout.library", "os", "got the library 'os'"),
    ("coupling", "layout.dtypes.1.dtype", "struct<a: int64>", "expected one of pyarrow's"),
    ("coupling", "layout.dtypes.0.indices", "string", "do not hold the columns"),
    ("autoregressive", "layout.dtypes.1.dtype", "Sparse[float64]", "expected one of pandas's"),
    ("autoregressive", "layout.labels.0", "other", "expected one a column"),
    ("autoregressive", "layout.labels.0", [1], "expected text or integers"),
    ("array", "layout.dtypes.0.dtype", "<U999999999", "expected texts of at most"),
    ("array", "layout.dtypes.0.dtype", "V8", "expected one of numpy's"),
    # what belongs to another estimator or version
    ("autoregressive", "estimator", "MixtureFlow", "expected a TabularFlow"),
    ("autoregressive", "format", "3", "got format '3'"),
    ("autoregressive", "weights", "0" * 64, "expected both of one save"),
    ("gaussians", "arrays.scale_.0", 0.0, "expected finite numbers above 0"),
    ("gaussians", "arrays.mean_", [0.0], "got 1 values; expected 2"),
]


@pytest.mark.parametrize(("density", "path", "value", "said"), EDITS, ids=lambda part: str(part)[:24])
def test_an_edited_description_is_refused(folders, tmp_path, density, path, value, said):
    folder = copied(folders[density], tmp_path / "edited")
    edit(folder, path, value)
    assert said in refused(folder, density)


def test_no_function_of_a_library_is_called(folders, tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(polars, "show_versions", lambda **_: called.append(1))
    folder = copied(folders["blocks"], tmp_path / "edited")
    edit(folder, "layout.dtypes.1.dtype", "show_versions")
    refused(folder, "blocks")
    assert not called


@pytest.mark.parametrize("density", USED)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(folders, tmp_path, density, value):
    def spoil(weights):
        finite = (weight for weight in weights.values() if weight.is_floating_point() and weight.isfinite().all())
        next(finite).view(-1)[0] = value

    folder = copied(folders[density], tmp_path / "spoiled")
    change_weights(folder, spoil)
    assert "NaN or infinite" in refused(folder, density)


def test_weights_that_training_cannot_make_are_refused(folders, tmp_path):
    folder = copied(folders["autoregressive"], tmp_path / "spoiled")
    change_weights(folder, lambda weights: weights["density.bias"][:1].fill_(-1e38))
    assert "weight 'density.bias': got 1e+38 or its negative" in refused(folder, "autoregressive")
    folder = copied(folders["mixture"], tmp_path / "other")
    change_weights(folder, lambda weights: weights["model.log_weight"][:1].fill_(0.1))
    assert "away from 1; expected a sum of 1" in refused(folder, "mixture")


@pytest.mark.parametrize(
    ("density", "name"),
    [
        ("autoregressive", "density.groups.row"),
        ("blocks", "model.outcome"),
        ("autoregressive", "density.numbers.edges"),
    ],
)
def test_tables_that_point_elsewhere_are_refused(folders, tmp_path, density, name):
    folder = copied(folders[density], tmp_path / "spoiled")
    change_weights(folder, lambda weights: weights[name].view(-1)[-1:].fill_(10**6))
    assert "expected" in refused(folder, density)


def test_weights_of_another_shape_are_refused(folders, tmp_path):
    folder = copied(folders["autoregressive"], tmp_path / "spoiled")
    change_weights(folder, lambda weights: weights.update({"density.bias": torch.zeros(3).float()}))
    assert "weight 'density.bias': got (3,) of torch.float32; expected (" in refused(folder, "autoregressive")
    change_weights(folder, lambda weights: weights.pop("density.bias"))
    assert "weight 'density.bias': got no weight; expected one" in refused(folder, "autoregressive")


@pytest.mark.parametrize("name", [WEIGHTS, DESCRIPTION])
def test_what_is_no_file_is_refused_at_once(folders, tmp_path, name):
    for make, what in [
        (os.mkfifo, "a pipe"),
        (os.mkdir, "a folder"),
        (lambda p: p.symlink_to("/dev/zero"), "a device"),
    ]:
        folder = copied(folders["array"], tmp_path / what)
        (folder / name).unlink()
        make(folder / name)
        assert f"{name}: got {what}; expected a file" in refused(folder, "array")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 10**6, b"\xff\xfe", b"1" * 10**5, b"{}", b'"x"'])
def test_what_is_no_description_is_refused(folders, tmp_path, content):
    folder = copied(folders["array"], tmp_path / "spoiled")
    (folder / DESCRIPTION).write_bytes(content)
    refused(folder, "array")
