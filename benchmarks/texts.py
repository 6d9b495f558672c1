"""The launch lines behind the section on texts of docs/results.md: printed, or run one after another.

python -m benchmarks.texts gpu          # the whole of Table 3, ten minutes each
python -m benchmarks.texts gpu --run    # the same, executed; then `tessella results` renders the page
"""

from benchmarks.launch import launch

METHODS = (
    *(f"voronoi --dim {dim}" for dim in (2, 4, 6, 8)),
    "binary-argmax",
    "ordinal",
    "exact",
    "none",
)


def lines(part: str) -> list[str]:
    """Of the GPU; on a CPU only what is small."""
    if part == "cpu":
        return ["tessella reproduce text --data text8 --dequantizer exact --preset small --minutes 5 --accelerator cpu"]
    return [
        f"tessella reproduce text --data {data} --dequantizer {method} --minutes 9 --accelerator cuda"
        for data in ("text8", "enwik8")
        for method in METHODS
    ]


if __name__ == "__main__":
    launch(__doc__, lines)
