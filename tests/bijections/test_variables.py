"""Which variables move given which: no pair is always together, and no order of the table decides it."""

from itertools import chain, combinations, permutations

import pytest

from tessella.bijections import variable_groups, variable_halves


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


@pytest.mark.parametrize(("variables", "groups"), [(2, 2), (7, 3), (10, 5), (54, 4)])
def test_groups_are_all_variables_once_and_of_about_the_same_size(variables, groups):
    for sweep in range(3):
        found = variable_groups(variables, groups, sweep)
        assert sorted(chain(*found)) == list(range(variables))
        assert max(map(len, found)) - min(map(len, found)) <= 1


def test_variables_that_move_together_do_not_in_another_sweep():
    first, second = variable_groups(54, 4, 0), variable_groups(54, 4, 1)
    assert all(len({*one} & {*other}) < len(one) / 2 for one in first for other in second)
