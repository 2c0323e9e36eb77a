"""One window: a user of its last slot sends the first of its numbers, one of the slot before the second."""

import numpy as np

from shuffledp.continual.carried.batches import WindowBatch
from shuffledp.messages import Batch
from shuffledp.protocols.splitting import Splitting
from shuffledp.randomness import RandomBits


def test_everybody_sends_the_number_of_this_window() -> None:
    batch = WindowBatch(6, (1, 2, 3), Splitting(4, 50, -(10**9), 10**9))
    prepared = np.array([[10**user, 2 * 10**user, 3 * 10**user] for user in range(6)])
    whole = batch.randomize(prepared, 0, bits=RandomBits.seeded(1))
    read, dropped = batch.read(batch.tally(Batch(whole.payloads, 6)))
    assert (read, dropped) == (3 + 20 + 200 + 1000 + 10_000 + 100_000, 0)
    # In parts, by their seats, out of order.
    parts = [
        batch.randomize(prepared[first:end], first, bits=RandomBits.seeded(first)) for first, end in ((4, 6), (0, 4))
    ]
    payloads = np.concatenate([part.payloads for part in parts])
    assert batch.read(batch.tally(Batch(payloads, 6)))[0] == read
    assert batch.messages_max == 4 and batch.bits_per_message == 50


def test_coordinates_are_added_up_by_themselves() -> None:
    batch = WindowBatch(2, (1, 1), Splitting(4, 50, -(10**9), 10**9), coordinates=3)
    prepared = np.array([[[1, 2, 3], [40, 50, 60]], [[100, 200, 300], [7, 7, 7]]])
    reports = batch.randomize(prepared, 0, bits=RandomBits.seeded(1))
    sums = batch.read(batch.tally(Batch(reports.payloads, 2, reports.labels)))[0]
    assert sums.tolist() == [140, 250, 360] and batch.messages_max == 12
