"""Seeds that depend on what they are for, and the state of torch's global generators."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor


def derived_seed(seed: int, purpose: str, index: int = 0) -> int:
    """A 63-bit seed, a pure function of its arguments, unrelated for different purposes or indices.

    >>> derived_seed(0, "order", 1) == derived_seed(0, "order", 1) != derived_seed(0, "noise", 1)
    True
    """
    words = np.random.SeedSequence([seed, zlib.crc32(purpose.encode()), index]).generate_state(1, np.uint64)
    return int(words[0]) >> 1


def seed_noise(seed: int, device: torch.device) -> None:
    """Seed torch's global generator of the CPU and, where it is another, of the device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[_index(device)].manual_seed(seed)


def noise_state(device: torch.device) -> dict[str, Tensor]:
    """The states of these generators, as uint8 tensors."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_noise_state(state: dict[str, Tensor], device: torch.device) -> None:
    """Continue where `noise_state` was taken."""
    # Clones, because torch reads a state from the start of its memory: a row of a table of states would crash it.
    torch.set_rng_state(state["cpu"].clone())
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"].clone(), device)


def noise_to_restore(device: torch.device) -> Callable[[], None]:
    """Call it to continue from here, also after a CUDA graph that was not finished.

    A failed capture leaves the device's generator believing that it goes on, and `set_noise_state` refuses to touch it;
    so the generator is given a copy of its state from before.
    """
    cpu = torch.get_rng_state()
    on_device = [torch.cuda.default_generators[_index(device)]] if device.type == "cuda" else []
    copies = [generator.clone_state() for generator in on_device]

    def restore() -> None:
        torch.set_rng_state(cpu)
        for generator, copy in zip(on_device, copies, strict=True):
            generator.graphsafe_set_state(copy)

    return restore


@contextmanager
def fork_rng(device: torch.device) -> Iterator[None]:
    """Whatever is drawn or seeded inside, the generators stand afterwards where they stood before."""
    state = noise_state(device)
    try:
        yield
    finally:
        set_noise_state(state, device)


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index
