"""The launch lines of Table 2, docs/results.md: printed, or run one after another.

python -m benchmarks.itemsets cpu          # exact models; minutes on one core
python -m benchmarks.itemsets gpu          # what trains longer
"""

from benchmarks.launch import launch

DATA = ("retail", "accidents")
COUNTED = ("independent", "mixture --minutes 4", "kdpp --minutes 4", "dpp --minutes 4")
TRAINED = (
    "mixture --minutes 2",
    "transformer --minutes 4",
    "coupling --minutes 6",
    "coupling --preset base --minutes 3",
    "coupling --preset gaussian --minutes 6",
    "voronoi --minutes 8",
    "voronoi --preset gaussian --minutes 8",
    "voronoi --preset paper --minutes 8",
    "simplex --minutes 6",
    "binary-argmax --minutes 8",
)


def lines(part: str) -> list[str]:
    methods, device = (COUNTED, "cpu") if part == "cpu" else (TRAINED, "cuda")
    return [
        f"tessella reproduce itemsets --data {data} --method {method} --accelerator {device}"
        for data in DATA
        for method in methods
    ]


if __name__ == "__main__":
    launch(__doc__, lines)
