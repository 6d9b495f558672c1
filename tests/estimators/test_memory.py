"""Memory does not grow with rows x categories."""

import subprocess
import sys

SCRIPT = """
import resource
import numpy as np
from tests.estimators.frames_for_tests import small_flow
from tessella.estimators import TabularFlow
rng = np.random.default_rng(0)
def table(rows, categories):
    return np.stack([rng.permutation(np.arange(rows) % categories), rng.integers(0, 3, rows)], 1).astype(str)
def fit(rows, categories):
    flow = small_flow(max_steps=2, batch_size=64, samples=4).fit(table(rows, categories))
    flow.score_samples(table(500, categories))
    flow.sample(10)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = fit(200, 10)
print(fit(20_000, 5_000) - before)
"""


def test_many_categories_need_little_memory():
    """20,000 rows of 5,000 categories: one number for each pair would be 400 MB, or 800 in double precision."""
    megabytes = float(subprocess.check_output([sys.executable, "-c", SCRIPT], text=True).split()[-1])
    assert megabytes < 300
