"""Patches under the symmetries of the square: permutations of all pixels, the dropped one as well, of volume one."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from tests.data.vector_files import SMALL, written
from torch import Tensor

from tessella.data import SymmetricPatches, Symmetries, augmented, load_vectors, patch_maps
from tessella.data.vectors.symmetries import pixel_orders

KINDS = get_args(Symmetries)


def patches(number: int = 5, side: int = 4) -> tuple[Tensor, Tensor]:
    """Whole patches that sum to zero, (n, side^2), and without their last pixel."""
    whole = torch.randn(number, side * side)
    whole = whole - whole.mean(1, keepdim=True)
    return whole, whole[:, :-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", [2, 3, 8])
def test_symmetries_are_a_group_that_keeps_neighbours(kind: Symmetries, side: int) -> None:
    orders = pixel_orders(kind, side)
    found = {tuple(order) for order in orders.tolist()}
    assert orders[0].tolist() == list(range(side * side))
    assert len(found) == len(orders) == {"none": 1, "left-right": 2, "reflections": 4, "square": 8}[kind]
    assert {tuple(one[other].tolist()) for one in orders for other in orders} == found
    places = torch.cartesian_prod(torch.arange(side), torch.arange(side)).double()
    distances = torch.cdist(places, places)
    for order in orders:
        torch.testing.assert_close(distances[order][:, order], distances)


def test_left_and_right_change_places() -> None:
    image = torch.arange(9).view(3, 3)
    assert torch.equal(image.flatten()[pixel_orders("left-right", 3)[1]].view(3, 3), image.fliplr())
    turned = {tuple(image.rot90(turns).flatten().tolist()) for turns in range(4)}
    assert turned < set(map(tuple, image.flatten()[pixel_orders("square", 3)].tolist()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_patch_is_seen_under_every_symmetry(kind: Symmetries) -> None:
    whole, x = patches()
    source, orders = SymmetricPatches(x, kind), pixel_orders(kind, 4)
    assert len(source) == len(orders) * len(x)
    (seen,) = source.batch(torch.arange(len(source)))
    assert torch.equal(seen[:: len(orders)], x)
    again = torch.cat([seen, -seen.sum(1, keepdim=True)], 1)
    torch.testing.assert_close(again, whole[:, orders].flatten(0, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", [2, 8])
def test_maps_do_what_the_source_does_and_keep_volumes(kind: Symmetries, side: int) -> None:
    _, x = patches(side=side)
    maps = patch_maps(kind, side * side - 1)
    (seen,) = SymmetricPatches(x, kind).batch(torch.arange(len(x) * len(maps)))
    torch.testing.assert_close(torch.einsum("gij,nj->ngi", maps, x).flatten(0, 1), seen)
    torch.testing.assert_close(torch.linalg.slogdet(maps).logabsdet, torch.zeros(len(maps)), atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", SMALL)
def test_only_images_are_augmented(name: str, empty_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(name, empty_data, monkeypatch)
    table = load_vectors(name)
    assert augmented(table, "none") is table.train
    if name == "bsds300":
        assert augmented(table, "square").shapes == [[8 * len(table.train), 63]]
        return
    with pytest.raises(ValueError, match=rf"symmetries: got 'square' for '{name}', whose rows are no images"):
        augmented(table, "square")


def test_what_is_no_square_is_refused() -> None:
    with pytest.raises(ValueError, match=r"dim: got 9; expected side\^2 - 1"):
        SymmetricPatches(torch.randn(3, 9), "square")
    with pytest.raises(ValueError, match=r"patches: got shape \(0, 8\); expected \(n, D\), n >= 1"):
        SymmetricPatches(torch.empty(0, 8), "square")
    with pytest.raises(ValueError, match="symmetries: got 'round'; expected one of none, left-right"):
        pixel_orders("round", 3)  # type: ignore[arg-type]
