from itertools import permutations

import numpy as np
import pytest

from shuffledp.errors import ParameterError, ShufflerBusyError, TooFewReportsError
from shuffledp.messages import Reports
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler
from shuffledp.testing.statistics import assert_law


def reports(*values: int) -> Reports:
    return Reports.of_equal_size(np.array(values, dtype=np.uint8).reshape(-1, 1))


def test_messages_come_out_in_every_order_equally_often() -> None:
    """It permutes, whatever the split of the messages over reports."""
    numbers = {order: number for number, order in enumerate(permutations(range(4)))}
    shuffler = Shuffler(bits=RandomBits.seeded(1))
    seen = []
    for _ in range(12_000):
        shuffler.open(BatchSpec(3))
        shuffler.accept(reports(2, 0))
        shuffler.accept(Reports(np.array([3, 1], dtype=np.uint8), np.array([2])))
        seen.append(numbers[tuple(shuffler.close().payloads.tolist())])
    assert_law(seen, 0, np.full(24, 1 / 24))


def test_labels_travel_with_their_payloads() -> None:
    shuffler = Shuffler(bits=RandomBits.seeded(2))
    shuffler.open(BatchSpec(100))
    payloads = np.arange(200, dtype=np.uint64)
    shuffler.accept(Reports.of_equal_size(payloads.reshape(100, 2), (payloads % 7).astype(np.uint8).reshape(100, 2)))
    batch = shuffler.close()
    assert batch.labels is not None and (batch.labels == batch.payloads % 7).all()
    assert (np.sort(batch.payloads) == payloads).all() and (batch.payloads != payloads).any()


def test_fewer_reports_than_the_spec_are_refused_and_kept() -> None:
    shuffler = Shuffler(bits=RandomBits.seeded(1))
    shuffler.open(BatchSpec(3))
    shuffler.accept(reports(1, 1))
    with pytest.raises(TooFewReportsError, match="reports must be 3, got 2"):
        shuffler.close()
    assert shuffler.missing == 1
    shuffler.accept(reports(0))
    assert shuffler.close().reports == 3


def test_many_messages_in_few_reports_are_still_too_few_reports() -> None:
    shuffler = Shuffler(bits=RandomBits.seeded(1))
    shuffler.open(BatchSpec(3))
    shuffler.accept(Reports.of_equal_size(np.ones((2, 1000), dtype=np.uint8)))
    with pytest.raises(TooFewReportsError):
        shuffler.close()


def test_one_batch_at_a_time() -> None:
    shuffler = Shuffler(bits=RandomBits.seeded(1))
    for call in (shuffler.close, lambda: shuffler.accept(reports(1)), lambda: shuffler.missing):
        with pytest.raises(ShufflerBusyError, match="no open batch"):
            call()
    shuffler.open(BatchSpec(1))
    with pytest.raises(ShufflerBusyError, match="already"):
        shuffler.open(BatchSpec(1))
    shuffler.accept(reports(1))
    shuffler.close()
    assert not shuffler.is_open


def test_what_does_not_fit_changes_nothing() -> None:
    shuffler = Shuffler(bits=RandomBits.seeded(1))
    shuffler.open(BatchSpec(2, messages_per_report=1))
    with pytest.raises(ParameterError, match="reports"):
        shuffler.accept(reports(1, 1, 1))
    with pytest.raises(ParameterError, match="messages in a report"):
        shuffler.accept(Reports.of_equal_size(np.ones((1, 2), dtype=np.uint8)))
    shuffler.accept(reports(1))
    with pytest.raises(ParameterError, match="labels"):
        shuffler.accept(Reports(np.ones(1, dtype=np.uint8), np.array([1]), np.ones(1, dtype=np.uint8)))
    shuffler.accept(reports(0))
    assert sorted(shuffler.close().payloads.tolist()) == [0, 1]


def test_bad_specs_are_named() -> None:
    with pytest.raises(ParameterError, match="reports"):
        BatchSpec(0)
