import numpy as np
import pytest

from shuffledp.errors import ParameterError, ShufflerBusyError
from shuffledp.messages import Reports
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.pool import ShufflerPool
from shuffledp.shuffle.shuffler import BatchSpec


def report(value: int) -> Reports:
    return Reports.of_equal_size(np.array([[value]], dtype=np.uint64))


def test_shufflers_fill_and_empty_by_themselves() -> None:
    """Users join every open batch; a small one is used again while a large one still fills."""
    pool = ShufflerPool(2, bits=RandomBits.seeded(1))
    closed: list[tuple[int, list[int]]] = []
    for user in range(6):
        for shuffler, size in ((0, 2), (1, 6)):
            if shuffler in pool.idle:
                pool.open(shuffler, BatchSpec(size))
        for shuffler in pool.active:
            batch = pool.accept(shuffler, report(user))
            if batch is not None:
                closed.append((shuffler, sorted(batch.payloads.tolist())))
    assert closed == [(0, [0, 1]), (0, [2, 3]), (0, [4, 5]), (1, [0, 1, 2, 3, 4, 5])]


def test_what_opens_next_may_depend_on_what_closed_before() -> None:
    """Algorithm 1 with a deliberately adaptive server: the next batch is as large as the last one's sum."""
    pool = ShufflerPool(1, bits=RandomBits.seeded(1))
    sizes, size = [], 2
    user = 0
    while len(sizes) < 5:
        pool.open(0, BatchSpec(size))
        sizes.append(size)
        batch = None
        while batch is None:
            batch = pool.accept(0, report(user % 3))
            user += 1
        size = max(1, int(batch.payloads.sum()))
    assert sizes == [2, 1, 2, 1, 2]


def test_each_shuffler_has_its_own_stream() -> None:
    pool = ShufflerPool(2, bits=RandomBits.seeded(1))
    orders = []
    for shuffler in (0, 1):
        pool.open(shuffler, BatchSpec(50))
        batch = pool.accept(shuffler, Reports.of_equal_size(np.arange(50, dtype=np.uint8).reshape(-1, 1)))
        assert batch is not None
        orders.append(batch.payloads.tolist())
    assert orders[0] != orders[1]


def test_bad_calls_are_named() -> None:
    with pytest.raises(ParameterError, match="shufflers"):
        ShufflerPool(0, bits=RandomBits.seeded(1))
    pool = ShufflerPool(2, bits=RandomBits.seeded(1))
    assert len(pool) == 2
    for call in (lambda: pool.open(2, BatchSpec(1)), lambda: pool.missing(-1)):
        with pytest.raises(ParameterError, match=r"0\.\.1"):
            call()
    pool.open(0, BatchSpec(3))
    assert pool.missing(0) == 3
    with pytest.raises(ShufflerBusyError):
        pool.open(0, BatchSpec(3))
    with pytest.raises(ShufflerBusyError):
        pool.accept(1, report(1))
