"""Shuffle protocols through an aggregator."""

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.randomness import RandomBits
from shuffledp.simulation.aggregation import simulate_by_aggregator
from shuffledp.simulation.run import simulate
from shuffledp.testing.statistics import assert_same_law

TARGET = Privacy(1, 1e-6)


@pytest.mark.parametrize("method", ["poisson-bits", "coins", "zsum"])
def test_an_aggregator_gives_the_estimates_of_a_shuffler(method: str) -> None:
    plan = BinarySum.plan(users=300, privacy=TARGET, method=method)
    values = np.arange(300) % 3 == 0
    # The same clients' bits: the same messages, in another order, and so the same estimate, exactly.
    for seed in range(20):
        clients = plan.randomize(values, bits=RandomBits.seeded(seed))
        through = simulate_by_aggregator(plan, values, bits=RandomBits.seeded(seed))
        assert through.value == plan.analyze(Batch(clients.payloads, 300)).value


def test_the_law_is_that_of_the_shuffler() -> None:
    plan = BinarySum.plan(users=60, privacy=TARGET, method="poisson-bits")
    values = [1] * 20 + [0] * 40
    bits = RandomBits.seeded(1)
    aggregated = [simulate_by_aggregator(plan, values, bits=bits).value for _ in range(1500)]
    shuffled = [simulate(plan, values, bits=bits).value for _ in range(1500)]
    assert_same_law(aggregated, shuffled)
    twin = BinarySum.plan(users=60, privacy=Privacy(2, 1e-6), method="poisson-bits")
    with pytest.raises(AssertionError, match="two laws differ"):
        assert_same_law([simulate_by_aggregator(twin, values, bits=bits).value for _ in range(1500)], shuffled)


def test_messages_with_labels_are_refused() -> None:
    plan = VectorSum.plan(users=50, privacy=TARGET, dimension=2, radius=1.0, method="bits")
    with pytest.raises(ParameterError, match="without labels"):
        simulate_by_aggregator(plan, np.zeros((50, 2)), bits=RandomBits.seeded(1))
