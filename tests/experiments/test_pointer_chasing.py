"""Pointer chasing: codes, answers by messages and by law, and the declared success."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.experiments.pointer_chasing import PointerChasing, decode, universe_size
from shuffledp.experiments.pointers import fewest_users, interval, measured_local_success, measured_success
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram import Histogram
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate

TARGET = Privacy(1, 1e-6)


def _codes(length: int) -> dict[tuple[int, tuple[int, ...]], int]:
    """The code of every part and permutation."""
    return {
        (part, tuple(order)): code for code in range(universe_size(length)) for part, order in [decode(code, length)]
    }


def test_every_part_and_permutation_has_one_code() -> None:
    codes = _codes(4)
    assert len(codes) == 48 == universe_size(4)
    assert codes.keys() == set(itertools.product((1, 2), itertools.permutations((1, 2, 3, 4))))


def test_six_in_a_circle_message_by_message() -> None:
    plan = PointerChasing.plan(users=300, privacy=TARGET, length=6)
    assert plan.histogram.bins == 1440 and plan.histogram.guarantee().delta <= 1e-6
    first, second = [3, 1, 2, 6, 5, 4], [2, 4, 6, 1, 3, 5]
    codes = _codes(6)
    values = np.tile([codes[1, tuple(first)], codes[2, tuple(second)]], 150)
    found = plan.answer_from(simulate(plan.histogram, values, bits=RandomBits.seeded(1)).value)
    assert (found.answer, found.first, found.second) == (6, tuple(first), tuple(second))
    assert plan.declared_success > 0.9


def test_success_is_as_declared() -> None:
    plan = PointerChasing.plan(users=120, privacy=TARGET, length=4)
    runs = 150
    right = measured_success(plan, runs=runs, seed=1)
    assert 0.5 < plan.declared_success <= right / runs + math.sqrt(math.log(1e9) / (2 * runs))
    # Hardly any users: little better than a guess.
    few = PointerChasing.plan(users=6, privacy=TARGET, length=4)
    assert few.declared_success == 0 and measured_success(few, runs=runs, seed=2) < 0.65 * runs


def test_the_local_model_needs_more_and_more() -> None:
    shuffled, local = (
        {size: fewest_users(size, model, runs=40).users for size in (3, 6)} for model in ("shuffle", "local")
    )
    assert shuffled[6] < local[6] / 2
    assert local[6] / local[3] > 1.2
    plan = PointerChasing.plan(users=shuffled[6], privacy=TARGET, length=6)
    beside = measured_local_success(6, plan.histogram.users, TARGET, runs=100, seed=3)[0]
    assert beside < 50 < measured_success(plan, runs=100, seed=3)


def test_an_interval_holds_what_it_should() -> None:
    assert interval(0, 20)[0] == 0 and interval(20, 20)[1] == 1
    low, high = interval(133, 200)
    assert low < 2 / 3 < high and high - low < 0.15


@pytest.mark.parametrize("call", [
    lambda: universe_size(1),
    lambda: universe_size(20),
    lambda: decode(12, 3),
    lambda: PointerChasing(histogram=Histogram.plan(users=50, privacy=TARGET, categories=5), length=3),
])  # fmt: skip
def test_what_cannot_be_is_refused(call) -> None:
    with pytest.raises(ParameterError):
        call()
