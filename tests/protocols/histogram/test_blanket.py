"""The blanket's theorem: two bins of balls dominate the whole view, whatever the two sets have in common."""

import itertools
import math
from collections import Counter

import pytest

from shuffledp.accounting.split_coins import BallsPair

Law = dict[tuple[int, ...], float]
EPSILONS = [-2.0, -0.7, -0.1, 0.0, 0.3, 0.9, 1.5, 3.0]


def _with_a_message(law: Law, messages: dict[int | None, float]) -> Law:
    """The law of the sorted view with one more independent message; None is no message."""
    more: Law = Counter()
    for view, chance in law.items():
        for message, weight in messages.items():
            seen = view if message is None else tuple(sorted((*view, message)))
            more[seen] += chance * weight
    return more


def _view(space: int, own: list[set[int]], balls: int, probability: float) -> Law:
    law: Law = {(): 1.0}
    for choices in own:
        law = _with_a_message(law, {message: 1 / len(choices) for message in choices})
    thrown: dict[int | None, float] = dict.fromkeys(range(space), probability / space)
    for _ in range(balls):
        law = _with_a_message(law, {None: 1 - probability, **thrown})
    return law


def _hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    return sum(max(0.0, mass - math.exp(epsilon) * q.get(view, 0.0)) for view, mass in p.items())


SETS = [  # messages, the two sets, random messages and their probability
    (4, {0, 1}, {2, 3}, 4, 0.8),
    (4, {0, 1}, {1, 2}, 4, 0.8),
    (4, {0, 1}, {1, 2}, 5, 1.0),
    (6, {0, 1, 2}, {1, 2, 3}, 4, 0.5),
    (6, {0, 1}, {1, 2}, 4, 1.0),
    (5, {0}, {3}, 5, 0.6),
    (3, {0}, {0}, 3, 0.7),
]


@pytest.mark.parametrize(("space", "first", "second", "balls", "probability"), SETS)
def test_two_bins_of_balls_dominate_the_view(space, first, second, balls, probability) -> None:
    """The third user's set meets both: its message is left in the view."""
    pair = BallsPair(balls, probability * len(first) / space)
    others = [{(message + 1) % space for message in first}]
    for known in ([], others):
        views = [_view(space, [own, *known], balls, probability) for own in (first, second)]
        for epsilon in EPSILONS:
            bound = pair.delta(epsilon)
            for p, q in itertools.permutations(views):
                assert _hockey_stick(p, q, epsilon) <= bound * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_disjoint_sets_are_the_worst_and_exact(epsilon: float) -> None:
    disjoint, overlapping = ([_view(4, [own], 4, 0.8) for own in sets] for sets in (({0, 1}, {2, 3}), ({0, 1}, {1, 2})))
    exact = _hockey_stick(*disjoint, epsilon)
    assert BallsPair(4, 0.4).delta(epsilon) == pytest.approx(exact, rel=1e-8)
    assert _hockey_stick(*overlapping, epsilon) < exact


def test_sets_of_different_sizes_are_not_covered() -> None:
    """The twin that must fail: were the second set smaller, its bin would be hit less often and hide less."""
    first, second = (_view(4, [own], 4, 0.8) for own in ({0, 1}, {2}))
    assert _hockey_stick(second, first, 0.9) > BallsPair(4, 0.4).delta(0.9)
