"""Which variables move given which: no pair is always together, and no order of the table decides it."""

from itertools import combinations, permutations

import pytest

from tessella.bijections import variable_halves


@pytest.mark.parametrize("variables", [2, 3, 4, 7, 10, 42])
def test_any_two_variables_are_on_different_sides_in_some_layer(variables):
    layers = [variable_halves(variables, layer) for layer in range(2 * (variables - 1).bit_length())]
    for one, other in combinations(range(variables), 2):
        assert any(stays[one] != stays[other] for stays in layers)


def test_a_half_of_a_card_moves_given_the_other_half_and_another_card():
    """Five cards, each a suit and a rank; four layers, as eight blocks have."""
    layers = [variable_halves(10, layer) for layer in range(4)]
    met = {
        frozenset((card, other))
        for stays in layers
        for card, other in permutations(range(5), 2)
        if stays[2 * card] != stays[2 * card + 1] and stays[2 * other] and stays[2 * other + 1]
    }
    assert len(met) >= 8  # of ten pairs of cards; with the table's order none
