"""The launch lines behind docs/ablations.md: printed, or run one after another.

python -m benchmarks.ablations cpu          # groups of columns: half an hour on one core
python -m benchmarks.ablations gpu          # flows without groups: minutes
python -m benchmarks.ablations cpu --run    # executed; then `tessella results` renders the page

Small models, equally many steps within a group: what helps at this size, not how far it goes.
"""

import shlex

from benchmarks.launch import launch

SMALL_FLOW = (
    "--data mushroom --method voronoi --preset ungrouped --steps 4000 --accelerator cuda",
    "model.dim=4 model.blocks=6 model.width=64 model.layers=1 model.noise_blocks=2 model.noise_width=64 "
    "model.nets=plain",
)
FLOW = {
    "reference: 4 dimensions, ELBO, 2 noise blocks": "",
    "2 dimensions": "model.dim=2",
    "IW-4 objective": "model.train_samples=4",
    "4 noise blocks": "model.noise_blocks=4",
    "Laguerre cells": "model.dequantizer=laguerre",
    "Student-t base": "model.base=student",
    "couplings move by 4 logistics": "model.modes=4",
    "learning rate 5e-3": "training.learning_rate=5e-3",
    "couplings move by 4 logistics, learning rate 5e-3": "model.modes=4 training.learning_rate=5e-3",
    "flat MLP couplings": "model.density=flat model.width=256 model.layers=2",
}
SMALL_GROUPED = (
    "--data connect4 --method voronoi --steps 400 --test-rows 500 --samples 20 --accelerator cpu",
    "model.width=64 model.layers=2 model.dropout=0 training.batch_size=128 training.learning_rate=2e-3 "
    "training.validation_rows=500",
)
GROUPED = {
    "reference: 8 groups, 16 classes, 2 dimensions": "",
    "1 group": "model.groups=1",
    "2 groups": "model.groups=2",
    "4 groups": "model.groups=4",
    "16 groups": "model.groups=16",
    "42 groups: every column in turn": "model.groups=42",
    "1 class: independent within a group": "model.classes=1",
    "64 classes": "model.classes=64",
    "4 dimensions": "model.dim=4",
    "no noise blocks": "model.noise_blocks=0",
    "IW-4 objective": "model.train_samples=4",
    "Laguerre cells": "model.dequantizer=laguerre",
    "2 coupling blocks before the modes": "model.blocks=2",
}
GROUPS = {"cpu": ("groups of columns", SMALL_GROUPED, GROUPED), "gpu": ("flow", SMALL_FLOW, FLOW)}


def lines(part: str) -> list[str]:
    group, (options, common), variants = GROUPS[part]
    return [
        f"tessella reproduce tables {options} --no-progress --ablation {shlex.quote(group)} "
        f"--variant {shlex.quote(variant)} --set {common} {changes}".rstrip()
        for variant, changes in variants.items()
    ]


if __name__ == "__main__":
    launch(__doc__, lines)
