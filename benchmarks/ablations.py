"""The launch lines behind docs/ablations.md: printed, or run one after another.

python -m benchmarks.ablations cpu          # blocks of columns, power, noise and start: hours on one core
python -m benchmarks.ablations gpu          # flows: minutes
python -m benchmarks.ablations cpu --run    # executed; then `tessella results` renders the page

Small models, equally many steps within a group: what helps at this size, not how far it goes.
"""

import shlex

from benchmarks.launch import launch

SMALL_FLOW = (
    "--data mushroom --method voronoi --preset affine --steps 4000 --accelerator cuda",
    "model.cells.dim=4 model.density.blocks=6 model.density.width=64 model.density.layers=1 model.noise.blocks=2 "
    "model.noise.width=64 model.noise.layers=1 model.fast=false",
)
FLOW = {
    "reference: 4 dimensions, ELBO, 2 noise blocks": "",
    "2 dimensions": "model.cells.dim=2",
    "IW-4 objective": "model.train_samples=4",
    "4 noise blocks": "model.noise.blocks=4",
    "Laguerre cells": "model.cells=laguerre",
    "Student-t base": "model.density.base=student",
    "couplings move by 4 logistics": "model.density.logistics=4",
    "learning rate 5e-3": "training.learning_rate=5e-3",
    "couplings move by 4 logistics, learning rate 5e-3": "model.density.logistics=4 training.learning_rate=5e-3",
    "flat MLP couplings": "model.density=flat model.density.width=256 model.density.layers=2",
}
SMALL_BLOCKS = (
    "--data connect4 --method blocks --steps 800 --accelerator cpu",
    "model.width=64 model.layers=2 model.dropout=0 training.batch_size=128 training.learning_rate=2e-3",
)
BLOCKS = {
    "reference: 8 groups, 16 components": "",
    "1 group": "model.groups=1",
    "2 groups": "model.groups=2",
    "4 groups": "model.groups=4",
    "16 groups": "model.groups=16",
    "42 groups: every column in turn": "model.groups=42",
    "42 groups, 1 component: a causal transformer": "model.groups=42 model.components=1",
    "1 component: independent within a group": "model.components=1",
    "64 components": "model.components=64",
}
SMALLER_FLOW = (
    "--data {data} --method voronoi --preset affine --steps 700 --accelerator cpu --threads 1 --test-rows 200",
    "training.batch_size=64 training.validation_rows=300 model.cells.dim=4 model.density.blocks=6 "
    "model.density.width=32 model.density.layers=1 model.noise.blocks=2 model.noise.width=32 model.noise.layers=1 "
    "model.fast=false",
)
APART = "model.cells.squashing=8 model.cells.placement=apart"
PROFILE = {
    "root, as it was": "model.cells.squashing=root",
    "p = 8, apart": APART,
    "p = 8, apart, Student noise": f"{APART} model.noise.base=student",
    "p = 8, apart, ball noise": f"{APART} model.noise.base=ball",
}
MORE_PROFILES = {
    "p = 8": "model.cells.squashing=8",
    "root, apart": "model.cells.squashing=root model.cells.placement=apart",
    "p = 16, apart": "model.cells.squashing=16 model.cells.placement=apart",
    "p = 8, apart, 4 logistics": f"{APART} model.density.logistics=4",
    "p learned from 8, apart": f"{APART} model.cells.learn_power=true",
}
HALVES = "model.density=coupling model.density.logistics=4 model.density.linear=true"
SMALL_NETS = "model.density.width=32 model.density.layers=1"
LEARNING_FLOW = (
    "--data {data} --method voronoi --preset blind --steps {steps} --accelerator cpu --threads 1 --test-rows 200",
    "training.batch_size=64 training.validation_rows=300 training.learning_rate=5e-3 model.noise.blocks=2 "
    "model.noise.width=32 model.noise.layers=1 model.fast=false",
)
ADAM_AND_HALVES = f"training.optimizer=adam model.cells.dim=4 {HALVES} model.density.blocks=6 {SMALL_NETS}"
POWERS = {
    "p = 8": "",
    "p = 2": "model.cells.squashing=root",
    "p = 4": "model.cells.squashing=4",
    "p = 16": "model.cells.squashing=16",
    "p learned from 8": "model.cells.learn_power=true",
}
POWERS_AND_NOISES = {
    f"{power}, {noise}": f"{changes} model.noise.base={base}".strip()
    for noise, base in (("Gaussian", "gaussian"), ("Student", "student"), ("ball", "ball"))
    for power, changes in POWERS.items()
}
STARTS = {
    "noise over 1/4 of the way": "model.cells.spread=0.25",
    "noise over 3/4 of the way": "model.cells.spread=0.75",
    "cells where their profiles are": "model.cells.placement=profiles",
    "cells at random": "model.cells.placement=random",
    "no linear maps between blocks": "model.density.linear=false",
}
MUON = "training.optimizer=muon training.learning_rate"
OPTIMIZERS = {
    "Adam, 5e-3": "",
    "Adam, 1e-2": "training.learning_rate=1e-2",
    "Muon, 5e-3": f"{MUON}=5e-3",
    "Muon, 1.5e-2": f"{MUON}=1.5e-2",
    "Muon, 3e-2": f"{MUON}=3e-2",
}
KNOWING = "model.cells.dim=2 model.cells.spread=0.1 model.noise.base=logistic model.density=cells"
COUPLINGS = {
    f"{what}, {optimizer}": f"{changes} {SMALL_NETS} training.optimizer={optimizer.lower()}"
    for optimizer in ("Adam", "Muon")
    for what, changes in {
        "halves of coordinates, 4 dimensions": f"model.cells.dim=4 {HALVES} model.density.blocks=8",
        "4 groups of columns, 4 dimensions": "model.cells.dim=4 model.density=groups model.density.sweeps=1",
        "4 groups of columns, 2 dimensions": "model.cells.dim=2 model.density=groups model.density.sweeps=1",
        "4 groups that know cells, 2 dimensions": f"{KNOWING} model.density.components=8",
        "4 groups that know cells, 2 dimensions, 1 component": f"{KNOWING} model.density.components=1",
    }.items()
}
LARGE_FLOW = (
    "--data forests --method voronoi --preset blind --steps 4000 --test-rows 500 --accelerator cuda",
    f"model.cells.dim=6 {HALVES} model.density.blocks=8 training.optimizer=adam training.learning_rate=3e-3 "
    "training.compile=fuse",
)
LARGE_STARTS = {
    "apart": "",
    "apart, narrow": "model.cells.spread=0.25",
    "profiles": "model.cells.placement=profiles",
}


def on(data: str) -> tuple[str, str]:
    return SMALLER_FLOW[0].format(data=data), SMALLER_FLOW[1]


def learning(data: str, steps: int, common: str = ADAM_AND_HALVES) -> tuple[str, str]:
    return LEARNING_FLOW[0].format(data=data, steps=steps), f"{LEARNING_FLOW[1]} {common}".rstrip()


GROUPS = {
    "cpu": [
        ("blocks of columns", SMALL_BLOCKS, BLOCKS),
        ("profile and start", on("nursery"), PROFILE),
        ("profile and start", on("mushroom"), PROFILE | MORE_PROFILES),
        ("power and noise", learning("nursery", 700), POWERS_AND_NOISES),
        ("power and noise", learning("mushroom", 1_000), POWERS_AND_NOISES | STARTS),
        ("power and noise", learning("connect4", 1_000), POWERS_AND_NOISES | STARTS),
        ("couplings", learning("mushroom", 1_000, common=""), COUPLINGS),
        ("optimizer", learning("mushroom", 1_000), OPTIMIZERS),
        ("optimizer", learning("connect4", 1_000), OPTIMIZERS),
    ],
    "gpu": [
        ("flow", SMALL_FLOW, FLOW),
        ("start", LARGE_FLOW, LARGE_STARTS),
        ("optimizer", LARGE_FLOW, {f"Muon, {rate}": f"{MUON}={rate}" for rate in ("2e-3", "4e-3", "8e-3")}),
    ],
}


def lines(part: str) -> list[str]:
    return [
        f"tessella reproduce tables {options} --no-progress --ablation {shlex.quote(group)} "
        f"--variant {shlex.quote(variant)} --set {common} {changes}".rstrip()
        for group, (options, common), variants in GROUPS[part]
        for variant, changes in variants.items()
    ]


if __name__ == "__main__":
    launch(__doc__, lines)
