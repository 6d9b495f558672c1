"""The launch lines behind docs/results.md: printed, or run one after another.

python -m benchmarks.tables cpu          # what counts; minutes on one core
python -m benchmarks.tables gpu          # what trains
python -m benchmarks.tables cpu --run    # the same, executed; then `tessella results` renders the page
"""

from benchmarks.launch import launch

DATA = ("nursery", "mushroom", "connect4", "pokerhands", "pokerhands --simulated", "forests")
COUNTED = ("independent", "chow-liu", "mixture --minutes 3", "voronoi --preset mixture-start --minutes 3")
TRAINED = (
    "blocks --minutes 6",
    "voronoi --minutes 6",
    "simplex --minutes 6",
    "binary-argmax --minutes 6",
    "autoregressive --minutes 7",
    "voronoi --preset blind --minutes 7",
    "voronoi --preset affine --minutes 7",
    "voronoi --preset paper --minutes 5",
    "simplex --preset affine --minutes 6",
    "binary-argmax --preset affine --minutes 6",
    "discrete-flow --minutes 2",
    "transformer --minutes 6",
)
JOINED = ("voronoi", "autoregressive")
JOINT_DATA = ("connect4", "pokerhands --simulated", "forests")


def lines(part: str) -> list[str]:
    methods, device = (COUNTED, "cpu") if part == "cpu" else (TRAINED, "cuda")
    tables = [
        f"tessella reproduce tables --data {data} --method {method} --accelerator {device}"
        for data in DATA
        for method in methods
    ]
    if part == "cpu":
        return tables
    joined = [
        f"tessella reproduce tables --data {data} --method {method} --preset joined --minutes 6 --accelerator cuda"
        for data in JOINT_DATA
        for method in JOINED
    ]
    return [*tables, *joined, "tessella reproduce sampling-speed --data connect4 --accelerator cuda"]


if __name__ == "__main__":
    launch(__doc__, lines)
