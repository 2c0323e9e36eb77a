"""Sums by a shuffler, shuffles by sums: round trips are exact."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from shuffledp.accounting.mixing import mixing_distance
from shuffledp.errors import BrokenBatchError, DataError, ParameterError, TooFewReportsError
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler
from shuffledp.simulation.aggregation import (
    AggregatorFromShuffler,
    ShufflerFromAggregator,
    aggregate,
    simulate_by_aggregator,
)
from shuffledp.simulation.run import simulate
from shuffledp.testing.statistics import assert_law, assert_not_law, assert_same_law

TARGET = Privacy(1, 1e-6)


@pytest.mark.parametrize("modulus_bits", [6, 16, 64])
def test_the_sum_comes_out_of_shuffled_shares(modulus_bits: int) -> None:
    aggregator = AggregatorFromShuffler.plan(users=40, modulus_bits=modulus_bits, distance=2**-30)
    values = np.arange(40) * 123_456_789_123
    shuffler = Shuffler(bits=RandomBits.seeded(1))
    shuffler.open(BatchSpec(40, aggregator.shares))
    shuffler.accept(aggregator.split(values, bits=RandomBits.seeded(2)))
    batch = shuffler.close()
    assert aggregator.total(batch) == aggregate(values, aggregator.modulus) == int(values.sum()) % 2**modulus_bits
    with pytest.raises(TooFewReportsError):
        aggregator.total(Batch(batch.payloads, 39))
    with pytest.raises(BrokenBatchError):
        aggregator.total(Batch(batch.payloads[1:], 40))


def test_as_many_shares_as_the_distance_needs() -> None:
    aggregator = AggregatorFromShuffler.plan(users=100, modulus_bits=20, distance=2**-40, honest=50)
    assert aggregator.distance == mixing_distance(50, aggregator.shares, 2**20) <= 2**-40
    assert dataclasses.replace(aggregator, shares=aggregator.shares - 1).distance > 2**-40
    assert aggregator.shares >= AggregatorFromShuffler.plan(users=100, modulus_bits=20, distance=2**-40).shares


def random_reports(seed: int, users: int, alphabet: int) -> Reports:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, users)
    return Reports(rng.integers(0, alphabet, int(sizes.sum())).astype(np.uint16), sizes)


@pytest.mark.parametrize(("users", "alphabet"), [(1, 1), (5, 2), (30, 40), (200, 300)])
def test_the_round_trip_loses_the_order_and_nothing_else(users: int, alphabet: int) -> None:
    reports = random_reports(users, users, alphabet)
    shuffler = ShufflerFromAggregator(alphabet_size=alphabet, largest_count=5 * users)
    numbers = shuffler.encode(reports)
    total = aggregate(numbers, shuffler.modulus)
    assert numbers.shape == (users,) and total == sum(numbers)
    batch = shuffler.batch(total, reports=users, bits=RandomBits.seeded(1))
    assert Counter(batch.payloads.tolist()) == Counter(reports.payloads.tolist()) and batch.reports == users


def test_digits_are_the_users_own_counts() -> None:
    shuffler = ShufflerFromAggregator(alphabet_size=4, largest_count=99)
    reports = Reports(np.array([3, 3, 0, 1, 1, 1], dtype=np.uint8), np.array([3, 0, 3]))
    assert shuffler.encode(reports).tolist() == [2_00_00_01, 0, 3_00]


def test_a_base_too_small_carries_and_is_wrong() -> None:
    """Why the base is more than all messages together, not more than one user's."""
    reports = Reports(np.zeros(4, dtype=np.uint8), np.array([2, 2]))
    numbers = [int(ShufflerFromAggregator(alphabet_size=2, largest_count=2).encode(one)[0]) for one in halves(reports)]
    small = ShufflerFromAggregator(alphabet_size=2, largest_count=2)
    assert small.histogram(aggregate(numbers, small.modulus)).tolist() == [1, 1]
    right = ShufflerFromAggregator(alphabet_size=2, largest_count=4)
    assert right.histogram(aggregate(right.encode(reports), right.modulus)).tolist() == [4, 0]
    with pytest.raises(ParameterError, match="messages must be at most 2"):
        small.encode(reports)


def halves(reports: Reports) -> list[Reports]:
    return [Reports(reports.payloads[:2], reports.sizes[:1]), Reports(reports.payloads[2:], reports.sizes[1:])]


def test_every_order_of_the_messages_is_equally_likely() -> None:
    shuffler = ShufflerFromAggregator(alphabet_size=3, largest_count=4)
    total = int(shuffler.encode(Reports(np.array([0, 1, 1, 2], dtype=np.uint8), np.array([4])))[0])
    bits = RandomBits.seeded(1)
    lists = [tuple(shuffler.batch(total, reports=1, bits=bits).payloads.tolist()) for _ in range(6000)]
    orders = {order: place for place, order in enumerate(sorted(set(lists)))}
    assert len(orders) == 12
    places = [orders[order] for order in lists]
    assert_law(places, 0, np.full(12, 1 / 12))
    assert_not_law(np.zeros(6000, dtype=np.int64), 0, np.full(12, 1 / 12))  # never permuted


def test_a_shuffler_from_an_aggregator_from_a_shuffler() -> None:
    """Two kinds of messages of 40 users fit into 64 bits: the aggregator may itself be shuffled shares."""
    bits = RandomBits.seeded(3)
    reports = random_reports(1, 40, 2)
    shuffler = ShufflerFromAggregator(alphabet_size=2, largest_count=200)
    aggregator = AggregatorFromShuffler.plan(users=40, modulus_bits=shuffler.modulus.bit_length(), distance=2**-20)
    shares = aggregator.split(shuffler.encode(reports).astype(np.uint64), bits=bits)
    total = aggregator.total(Batch(shares.payloads, 40))
    assert shuffler.histogram(total).tolist() == np.bincount(reports.payloads, minlength=2).tolist()


def test_what_cannot_be_encoded_or_decoded_is_refused() -> None:
    shuffler = ShufflerFromAggregator(alphabet_size=2, largest_count=9)
    labelled = Reports(np.zeros(1, dtype=np.uint8), np.array([1]), np.zeros(1, dtype=np.uint32))
    for reports, parameter in (
        (labelled, "labels"),
        (Reports(np.full(1, 2, dtype=np.uint8), np.array([1])), "messages"),
    ):
        with pytest.raises(ParameterError, match=parameter):
            shuffler.encode(reports)
    for total in (-1, 100):
        with pytest.raises(BrokenBatchError, match="another encoding"):
            shuffler.histogram(total)
    with pytest.raises(BrokenBatchError, match="lost or altered"):
        shuffler.batch(99, reports=1, bits=RandomBits.seeded(1))
    with pytest.raises(DataError, match="values"):
        AggregatorFromShuffler.plan(users=3, modulus_bits=8, distance=0.1).split([1, 2], bits=RandomBits.seeded(1))


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: AggregatorFromShuffler.plan(users=0, modulus_bits=8, distance=0.1), "users"),
        (lambda: AggregatorFromShuffler.plan(users=5, modulus_bits=65, distance=0.1), "modulus_bits"),
        (lambda: AggregatorFromShuffler.plan(users=5, modulus_bits=8, distance=0.0), "distance"),
        (lambda: AggregatorFromShuffler.plan(users=5, modulus_bits=8, distance=0.1, honest=6), "honest"),
        (lambda: AggregatorFromShuffler.plan(users=5, modulus_bits=8, distance=0.1, honest=0), "honest"),
        (lambda: ShufflerFromAggregator(alphabet_size=0, largest_count=1), "alphabet_size"),
        (lambda: ShufflerFromAggregator(alphabet_size=1 << 17, largest_count=1), "alphabet_size"),
        (lambda: ShufflerFromAggregator(alphabet_size=2, largest_count=0), "largest_count"),
        (lambda: aggregate([1], 0), "modulus"),
    ],
)
def test_bad_parameters_are_named(make, parameter: str) -> None:
    with pytest.raises(ParameterError) as told:
        make()
    assert told.value.parameter == parameter


def test_an_altered_sum_with_more_messages_than_64_bits_count_is_refused() -> None:
    shuffler = ShufflerFromAggregator(alphabet_size=2, largest_count=(1 << 63) - 1)
    digit = shuffler.largest_count - 1
    with pytest.raises(BrokenBatchError, match="must be at most"):
        shuffler.batch(digit * shuffler.base + digit, reports=2, bits=RandomBits.seeded(1))


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
