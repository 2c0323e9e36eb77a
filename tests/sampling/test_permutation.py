from itertools import permutations

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling import permutation
from shuffledp.sampling.permutation import uniform_permutation, uniform_permutation_of_few
from shuffledp.testing.statistics import assert_law, assert_not_law

NUMBERS = {order: number for number, order in enumerate(permutations(range(4)))}


class CoarseBits(RandomBits):
    """Bits whose high 61 are all 0 in 64-bit words drawn for keys: nearly every key ties."""

    def words(self, count: int):
        drawn = super().words(count)
        return drawn & np.uint64(1 << 63) if count == 4 and self.coarse else drawn

    coarse = True


@pytest.mark.parametrize("size", [0, 1, 2, 3, 17, 1000, 100_000])
def test_every_item_comes_once(size: int) -> None:
    assert (np.sort(uniform_permutation(size, bits=RandomBits.seeded(1))) == np.arange(size)).all()


def test_all_orders_are_equally_likely() -> None:
    bits = RandomBits.seeded(2)
    seen = [NUMBERS[tuple(uniform_permutation(4, bits=bits).tolist())] for _ in range(24_000)]
    assert_law(seen, 0, np.full(24, 1 / 24))


def test_ties_are_broken_uniformly(monkeypatch) -> None:
    bits = CoarseBits(bytes(32))
    plain = RandomBits.seeded(3)
    exact = permutation.uniform_permutation_of_few
    monkeypatch.setattr(permutation, "uniform_permutation_of_few", lambda size, *, bits: exact(size, bits=plain))
    seen = [NUMBERS[tuple(uniform_permutation(4, bits=bits).tolist())] for _ in range(24_000)]
    assert_law(seen, 0, np.full(24, 1 / 24))
    monkeypatch.setattr(permutation, "uniform_permutation_of_few", lambda size, *, bits: np.arange(size))
    seen = [NUMBERS[tuple(uniform_permutation(4, bits=bits).tolist())] for _ in range(24_000)]
    assert_not_law(seen, 0, np.full(24, 1 / 24))


def test_each_item_reaches_each_place_in_a_large_permutation() -> None:
    bits = RandomBits.seeded(4)
    places = np.array([np.flatnonzero(uniform_permutation(1000, bits=bits) == 0)[0] for _ in range(20_000)])
    assert_law(places // 10, 0, np.full(100, 1 / 100))


def test_bad_sizes_are_named() -> None:
    with pytest.raises(ParameterError, match="size"):
        uniform_permutation(-1, bits=RandomBits.seeded(1))


class FewKeys(RandomBits):
    """Keys are one of eight: four of them differ four times in ten."""

    def words(self, count: int):
        return super().words(count) & np.uint64(7 << 61)


def test_equal_keys_are_drawn_again() -> None:
    bits = FewKeys(bytes(32))
    seen = [NUMBERS[tuple(uniform_permutation_of_few(4, bits=bits).tolist())] for _ in range(12_000)]
    assert_law(seen, 0, np.full(24, 1 / 24))


# --- as large as batches are --------------------------------------------------------------------


def drawn(size: int, trials: int, seed: int) -> np.ndarray:
    bits = RandomBits.seeded(seed)
    return np.array([uniform_permutation(size, bits=bits) for _ in range(trials)])


@pytest.mark.parametrize(
    ("size", "trials"), [(256, 400), (1000, 200), (1001, 200), (1024, 200), (1025, 200), (5000, 60), (70_000, 20)]
)
def test_orders_of_any_size_are_uniform(size: int, trials: int, assert_uniform_orders) -> None:
    """False alarm 1e-9 each; on both sides of powers of two, where a key loses a bit to the index."""
    assert_uniform_orders(drawn(size, trials, seed=5))


@pytest.mark.parametrize("size", [1001, 300_000, 2_000_000])
def test_one_large_order_is_uniform(size: int, assert_uniform_orders) -> None:
    assert_uniform_orders(drawn(size, 1, seed=6))


class KeysWithTies(RandomBits):
    """Every key drawn for a large permutation is one of 64: items tie in long runs, which are then permuted."""

    def words(self, count: int):
        drawn = super().words(count)
        return drawn & np.uint64(0xFC << 56) if count == 1500 else drawn


def test_runs_of_ties_are_broken_uniformly_in_large_orders(assert_uniform_orders) -> None:
    bits = KeysWithTies(bytes(32))
    assert_uniform_orders([uniform_permutation(1500, bits=bits) for _ in range(100)])


def _in_blocks(order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([rng.permutation(block) for block in np.array_split(order, 10)])


def _blocks_only(order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    blocks = np.array_split(order, 100)
    return np.concatenate([blocks[place] for place in rng.permutation(100)])


def _swapped_neighbours(order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    pairs = order.reshape(-1, 2)
    flipped = rng.random(len(pairs)) < 0.5
    return np.where(flipped[:, None], pairs[:, ::-1], pairs).ravel()


TWINS = {
    "none": lambda order, rng: order,
    "reversed": lambda order, rng: order[::-1],
    "rotated": lambda order, rng: np.roll(order, rng.integers(order.size)),
    "the first nine tenths": lambda order, rng: np.append(rng.permutation(order[:1350]), order[1350:]),
    "all but the last": lambda order, rng: np.append(rng.permutation(order[:-1]), order[-1]),
    "in blocks": _in_blocks,
    "blocks only": _blocks_only,
    "neighbours swapped": _swapped_neighbours,
    "pairs stay together": lambda order, rng: rng.permutation(order.reshape(-1, 2)).ravel(),
    "even and odd places apart": lambda order, rng: np.stack(
        (rng.permutation(order[::2]), rng.permutation(order[1::2])), axis=1
    ).ravel(),
    "one seed": lambda order, rng: np.random.default_rng(1).permutation(order),
    "one cycle, nobody stays": lambda order, rng: _sattolo(order.copy(), rng),
}


def _sattolo(order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    for last in range(order.size - 1, 0, -1):
        other = rng.integers(last)
        order[last], order[other] = order[other], order[last]
    return order


@pytest.mark.parametrize("twin", TWINS)
def test_the_judge_of_orders_sees_wrong_twins(twin: str, assert_uniform_orders) -> None:
    rng = np.random.default_rng(7)
    with pytest.raises(AssertionError, match="not uniformly random"):
        assert_uniform_orders([TWINS[twin](np.arange(1500), rng) for _ in range(100)])


def test_an_order_that_is_used_twice_is_seen(assert_uniform_orders) -> None:
    orders = drawn(1500, 100, seed=8)
    assert_uniform_orders(orders)
    for again in (orders, orders[:, ::-1], np.roll(orders, 700, axis=1)):
        both = np.stack((orders, again), axis=1).reshape(-1, 1500)
        with pytest.raises(AssertionError, match="not uniformly random"):
            assert_uniform_orders(both)


def test_the_judge_of_orders_rarely_cries_wolf(assert_uniform_orders) -> None:
    """Its p-values, at sizes and numbers of orders as they are used, are not smaller than they should be."""
    rng = np.random.default_rng(9)
    for size, trials in ((256, 1), (1500, 1), (1500, 20)):
        found = [rng.permuted(np.tile(np.arange(size), (trials, 1)), axis=1) for _ in range(200)]
        for level in (0.2, 0.05):
            alarms = sum(_is_refused(assert_uniform_orders, orders, level) for orders in found)
            assert alarms / 200 <= level + 4 * np.sqrt(level / 200)


def _is_refused(check, orders: np.ndarray, false_alarm: float) -> bool:
    try:
        check(orders, false_alarm=false_alarm)
    except AssertionError:
        return True
    return False
