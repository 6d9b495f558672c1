"""Under `torchrun`, estimators learn in several processes what they learn in one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.estimators import two_process_fit
from tests.estimators.frames_for_tests import small_flow

from tessella.estimators import TabularFlow


def related(rows: int) -> pa.Table:
    """A column says the next."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, rows)
    second = np.where(rng.random(rows) < 0.9, first, rng.integers(0, 4, rows))
    return pa.table({"a": first.astype(str), "b": second.astype(str), "x": second + 0.2 * rng.standard_normal(rows)})


def test_two_processes_learn_what_one_does(tmp_path: Path):
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir(), out.mkdir()
    pq.write_table(related(1600), folder / "t.parquet", row_group_size=200)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    script = [two_process_fit.__file__, str(folder), str(out)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *script]
    done = subprocess.run(torchrun, env=environment, timeout=180, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = (json.loads((out / f"{rank}.json").read_text()) for rank in (0, 1))
    alone = small_flow(**two_process_fit.SETTINGS).fit(pq.read_table(folder))
    assert first["whole"]["before"] == pytest.approx(alone.initial_validation_, abs=1e-6)
    for how in ("whole", "streamed"):
        assert first[how] == second[how]
        assert first[how]["after"] < first[how]["before"] - 0.3
    gain = alone.initial_validation_ - alone.best_validation_
    assert first["whole"]["before"] - first["whole"]["after"] == pytest.approx(gain, rel=0.1)
    assert not {*first["reads"]} & {*second["reads"]}
    assert (out / "1.txt").read_text() == ""
    assert "report: " in (out / "0.txt").read_text()
    assert len(TabularFlow.load(out / "model").sample(3)) == 3
    assert not (out / "model" / "training").exists()


def test_processes_must_agree_about_chance(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "one")
    with pytest.raises(ValueError, match="random_state: got None in one of 2 processes; expected a number"):
        small_flow(random_state=None).fit([["a"], ["b"]])
