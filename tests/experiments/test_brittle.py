"""Private with everybody, not with one user less: Theorems 36 and 37 by exact laws."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.pairs import FinitePair
from shuffledp.errors import ParameterError
from shuffledp.experiments.brittle import BrittleProtocol, theorem_36, theorem_37


def law(protocol: BrittleProtocol, inputs: tuple[int, ...]) -> np.ndarray:
    """The law of the number of messages, by trying every choice of every user."""
    longest = max(map(max, protocol.lengths))
    totals = [sum(choice) for choice in itertools.product(*(protocol.lengths[bit] for bit in inputs))]
    return np.bincount(totals, minlength=len(inputs) * longest + 1) / len(totals)


@pytest.mark.parametrize("users", [2, 3, 4])
@pytest.mark.parametrize("theorem", [theorem_36, theorem_37])
def test_exact_figures_are_those_of_every_input_and_choice(users: int, theorem) -> None:
    protocol = theorem(users=users)
    for present in (users, users - 1):
        worst, delta = 0.0, 0.0
        for others in itertools.product((0, 1), repeat=present - 1):
            zero, one = (law(protocol, (*others, bit)) for bit in (0, 1))
            seen = (zero > 0) | (one > 0)
            with np.errstate(divide="ignore"):
                worst = max(worst, float(np.abs(np.log(zero[seen]) - np.log(one[seen])).max()))
            delta = max(delta, *(float(np.maximum(a - math.e * b, 0).sum()) for a, b in ((zero, one), (one, zero))))
        assert protocol.epsilon(present) == pytest.approx(worst, rel=1e-12)
        assert protocol.delta(present, 1.0) == pytest.approx(delta, abs=1e-9)


@pytest.mark.parametrize("users", [2, 3, 5, 8, 12])
def test_theorem_36_is_pure_with_n_users_and_not_with_one_less(users: int) -> None:
    protocol = theorem_36(users=users)
    epsilon = protocol.epsilon(users)
    assert 0 < epsilon < math.inf and protocol.epsilon(users - 1) == math.inf
    # The accountant agrees: no delta is left at this epsilon, and some is just below it and for n - 1 users.
    assert protocol.delta(users, epsilon + 1e-8) < 1e-11 and protocol.delta(users, epsilon - 1e-3) > 1e-14
    assert protocol.delta(users - 1, 50.0) > 0


def test_the_printed_inputs_of_theorem_36_do_not_tell_and_the_corrected_ones_do() -> None:
    protocol = theorem_36(users=4)
    printed, other = law(protocol, (0, 0, 0)), law(protocol, (0, 0, 1))
    assert printed[4] > 0 and other[4] > 0
    assert law(protocol, (1, 1, 0))[4] > 0 and law(protocol, (1, 1, 1))[4] == 0
    assert epsilon_at(FinitePair(printed, other), 1e-12) < math.inf


@pytest.mark.parametrize("users", [2, 4, 7])
def test_theorem_37_overlaps_with_n_users_and_never_with_one_less(users: int) -> None:
    protocol = theorem_37(users=users)
    for epsilon in (0.0, 1.0, 20.0):
        assert protocol.delta(users, epsilon) == pytest.approx(1 - 2.0**-users, abs=1e-6)
        assert protocol.delta(users - 1, epsilon) == pytest.approx(1, abs=1e-9)
    assert protocol.epsilon(users) == protocol.epsilon(users - 1) == math.inf


def test_bad_numbers_of_users_are_named() -> None:
    for users in (1, 41, 2.5):
        with pytest.raises(ParameterError, match="users"):
            theorem_36(users=users)
    for present in (0, 4):
        with pytest.raises(ParameterError, match="present"):
            theorem_36(users=3).epsilon(present)
