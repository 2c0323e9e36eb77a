"""Dealing to random buckets and permuting each is one uniform permutation, exactly; buckets of another kind are not."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import factorial

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.shuffle import two_passes
from shuffledp.shuffle.two_passes import deal, permuted_in_two_passes, permuted_rows
from shuffledp.testing.statistics import assert_law, assert_not_law

NUMBERS = {order: number for number, order in enumerate(permutations(range(4)))}


def rows(places: range) -> np.ndarray:
    return np.array(places, dtype="<u4").view(np.uint8).reshape(-1, 4)


def order_of(pieces: list[np.ndarray]) -> tuple[int, ...]:
    return tuple(np.concatenate(pieces).copy().view("<u4").ravel().tolist())


def exact_law(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], buckets: int, labels: Callable[..., list[tuple[int, ...]]]
) -> dict[tuple[int, ...], Fraction]:
    """The exact probability of every order of messages that come in parts of these sizes, over all coins."""
    count, law = sum(sizes), Counter()
    starts = np.cumsum((0, *sizes))
    parts = [rows(range(start, start + size)) for start, size in zip(starts, sizes, strict=False)]
    dealt = labels(count, buckets)
    for label in dealt:
        held = [label.count(bucket) for bucket in range(buckets) if label.count(bucket)]
        for orders in product(*(permutations(range(size)) for size in held)):
            drawn, chosen = iter(orders), iter(label)

            def below(modulus: int, size: int, *, bits: RandomBits, left=chosen) -> np.ndarray:
                return np.array([next(left) for _ in range(size)], dtype=np.uint8)

            def permutation(size: int, *, bits: RandomBits, left=drawn) -> np.ndarray:
                return np.array(next(left))

            monkeypatch.setattr(two_passes, "uniform_below", below)
            monkeypatch.setattr(two_passes, "uniform_permutation", permutation)
            mixed = order_of(list(permuted_in_two_passes(parts, buckets, bits=RandomBits.seeded(1))))
            weight = Fraction(1, len(dealt))
            for size in held:
                weight /= factorial(size)
            law[mixed] += weight
    return dict(law)


def each_its_own(count: int, buckets: int) -> list[tuple[int, ...]]:
    return list(product(range(buckets), repeat=count))


@pytest.mark.parametrize(("sizes", "buckets"), [((3,), 2), ((2, 2), 3), ((1, 1, 1), 2), ((4,), 2), ((4,), 1)])
def test_every_order_has_the_same_probability(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], buckets: int
) -> None:
    law = exact_law(monkeypatch, sizes, buckets, each_its_own)
    assert set(law.values()) == {Fraction(1, factorial(sum(sizes)))} and len(law) == factorial(sum(sizes))


def as_they_came(count: int, buckets: int) -> list[tuple[int, ...]]:
    """The first messages to the first bucket: messages are permuted inside blocks of arrival only."""
    return [tuple(at * buckets // count for at in range(count))]


def half_stays(count: int, buckets: int) -> list[tuple[int, ...]]:
    """The first message goes to the first bucket."""
    return [label for label in each_its_own(count, buckets) if label[0] == 0]


@pytest.mark.parametrize("wrong", [as_they_came, half_stays])
def test_buckets_that_depend_on_arrival_are_found(monkeypatch: pytest.MonkeyPatch, wrong: Callable) -> None:
    law = exact_law(monkeypatch, (2, 2), 2, wrong)
    assert len(law) < 24 or set(law.values()) != {Fraction(1, 24)}


def test_the_bits_that_are_used_give_every_order_as_often() -> None:
    bits, parts = RandomBits.seeded(41), [rows(range(3)), rows(range(3, 4))]
    seen = [NUMBERS[order_of(list(permuted_in_two_passes(parts, 3, bits=bits)))] for _ in range(2_400)]
    assert_law(seen, 0, np.full(24, 1 / 24))
    blocks = [NUMBERS[order_of([permuted_rows(part, bits=bits) for part in parts])] for _ in range(2_400)]
    assert_not_law(blocks, 0, np.full(24, 1 / 24))


def test_sizes_of_buckets_are_multinomial() -> None:
    """As they must be where every message has drawn its own bucket."""
    bits = RandomBits.seeded(42)
    first = [{b: len(r) for b, r in deal(rows(range(6)), 2, bits=bits)}.get(0, 0) for _ in range(2_000)]
    assert_law(first, 0, np.array([1, 6, 15, 20, 15, 6, 1]) / 64)


@pytest.mark.parametrize("part", [1000, 40_000])
def test_a_large_batch_has_no_memory_of_how_it_came(part: int, assert_uniform_orders: Callable[..., None]) -> None:
    bits = RandomBits.seeded(43)
    parts = [rows(range(start, start + part)) for start in range(0, 40_000, part)]
    orders = [order_of(list(permuted_in_two_passes(parts, 7, bits=bits))) for _ in range(3)]
    assert_uniform_orders(orders)
    with pytest.raises(AssertionError, match="not uniformly random"):
        assert_uniform_orders(
            [order_of([permuted_rows(each, bits=bits) for each in np.array_split(rows(range(40_000)), 40)])]
        )


def test_no_bucket_is_refused() -> None:
    with pytest.raises(ParameterError, match="buckets must be >= 1, got 0"):
        deal(rows(range(3)), 0, bits=RandomBits.seeded(1))
