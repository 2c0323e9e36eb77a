from itertools import permutations

import numpy as np
import pytest

from shuffledp import BinarySum, Privacy, RandomBits
from shuffledp.errors import ParameterError, TooFewReportsError
from shuffledp.simulation.online import InternallyPrivate
from shuffledp.testing.statistics import assert_deviation, assert_law, assert_mean

TARGET = Privacy(1, 1e-6)


@pytest.mark.parametrize("method", ["coins", "shares", "rr", "poisson-bits"])
def test_the_estimate_is_the_plans(method: str) -> None:
    plan = BinarySum.plan(users=40, privacy=TARGET, method=method, honest_fraction=0.5)
    errors = []
    for seed in range(400):
        online = InternallyPrivate(plan, bits=RandomBits.seeded(seed))
        for value in [1] * 15 + [0] * 5:
            online.read(value)
        errors.append(online.estimate().value - 15)
    assert_mean(errors, 0.0, plan.standard_error)
    assert_deviation(errors, plan.standard_error)


def test_the_memory_is_private_at_every_moment() -> None:
    """Its epsilon is the plan's with half the users; a plan for half of them keeps its word."""
    robust = BinarySum.plan(users=100, privacy=TARGET, method="coins", honest_fraction=0.5)
    assert InternallyPrivate(robust, bits=RandomBits.seeded(1)).internal_epsilon <= 1
    brittle = BinarySum.plan(users=100, privacy=TARGET, method="coins")
    assert InternallyPrivate(brittle, bits=RandomBits.seeded(1)).internal_epsilon > 1.3


def test_what_is_seized_has_no_order() -> None:
    """Messages of distinguishable users come in every order equally often."""
    plan = BinarySum.plan(users=4, privacy=TARGET, method="coins")
    numbers = {order: i for i, order in enumerate(permutations(range(4)))}
    bits, seen = RandomBits.seeded(1), []
    for _ in range(12_000):
        online = InternallyPrivate(plan, bits=bits)
        online._memory = np.empty(0, dtype=np.uint64)
        for message in range(4):
            online._insert(np.array([message], dtype=np.uint8))
        seen.append(numbers[tuple(online.seize().tolist())])
    assert_law(seen, 0, np.full(24, 1 / 24))


def test_the_memory_holds_no_key_that_was_used_and_no_spare_room() -> None:
    """With the first key an intruder could replay everything; spare room would count the first messages."""
    plan = BinarySum.plan(users=8, privacy=TARGET, method="coins")
    bits = RandomBits.seeded(1)
    first_key = bits._key
    online = InternallyPrivate(plan, bits=bits)
    for value in (1, 0, 0, 1):
        online.read(value)
        replayed = InternallyPrivate(plan, bits=RandomBits(online._bits._key))
        assert online._bits._key != first_key and not np.array_equal(replayed.seize(), online.seize()[: 8 * 20])
        assert online._memory.size == online.seize().size and online._memory.base is None


def test_too_few_and_too_many_values_are_refused() -> None:
    plan = BinarySum.plan(users=4, privacy=TARGET, method="coins")
    online = InternallyPrivate(plan, bits=RandomBits.seeded(1))
    online.read(1)
    with pytest.raises(TooFewReportsError):
        online.estimate()
    online.read(0)
    assert online.missing == 0
    with pytest.raises(ParameterError, match="twice as many"):
        online.read(0)
    with pytest.raises(ParameterError, match="even"):
        InternallyPrivate(BinarySum.plan(users=5, privacy=TARGET, method="coins"), bits=RandomBits.seeded(1))
