import sys
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


def test_nothing_of_a_batch_is_kept_once_it_was_handed_over() -> None:
    shuffler, sent = Shuffler(bits=RandomBits.seeded(1)), reports(1, 0, 1)
    before = sys.getrefcount(sent)
    shuffler.open(BatchSpec(3))
    shuffler.accept(sent)
    assert sys.getrefcount(sent) == before + 1
    shuffler.close()
    assert sys.getrefcount(sent) == before


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


# --- as large as batches are --------------------------------------------------------------------


def released(shuffler: Shuffler, messages: int, pieces: int) -> tuple[np.ndarray, np.ndarray]:
    """Payloads 0, 1, ... of one batch, sent in so many pieces of reports, in the order of release; and the labels."""
    reports = messages // 5
    shuffler.open(BatchSpec(reports, messages_per_report=5))
    payloads = np.arange(messages, dtype=np.uint64).reshape(reports, 5)
    for part in np.array_split(payloads, pieces):
        shuffler.accept(Reports.of_equal_size(part, (part % 251).astype(np.uint8)))
    batch = shuffler.close()
    assert batch.labels is not None and batch.reports == reports
    return batch.payloads.astype(np.int64), batch.labels.astype(np.int64)


@pytest.mark.parametrize(("messages", "pieces", "batches"), [(1500, 1, 100), (1500, 7, 100), (60_000, 20, 6)])
def test_large_batches_come_out_in_uniformly_random_orders(
    messages: int, pieces: int, batches: int, assert_uniform_orders
) -> None:
    """Each batch of one shuffler in an order of its own, labels with their payloads; false alarm 1e-9 each."""
    shuffler = Shuffler(bits=RandomBits.seeded(3))
    orders = []
    for _ in range(batches):
        payloads, labels = released(shuffler, messages, pieces)
        assert (labels == payloads % 251).all()
        orders.append(payloads)
    assert_uniform_orders(orders)


def test_two_shufflers_with_secure_bits_draw_different_orders(assert_uniform_orders) -> None:
    """False alarm 1e-9, and no seed: two runs of the program must not repeat each other's orders."""
    assert_uniform_orders([released(Shuffler(bits=RandomBits.secure()), 1500, 1)[0] for _ in range(40)])
