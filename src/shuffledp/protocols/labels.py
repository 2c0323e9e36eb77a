"""Messages about many coordinates: each carries which one it is about, in the fewest bytes."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.messages import Batch, Payloads, Reports
from shuffledp.sampling.uniform import smallest_width


def label_bits(coordinates: int) -> int:
    """Bits that say which coordinate a message is about.

    >>> label_bits(1), label_bits(10)
    (0, 4)
    """
    return (coordinates - 1).bit_length()


def labelled_reports(messages: Payloads, coordinates: int, first: int = 0) -> Reports:
    """Reports from an array (users, some coordinates from `first` on, messages about each)."""
    users, count, length = messages.shape
    kind = f"u{smallest_width(max(1, label_bits(coordinates))) // 8}"
    labels = np.repeat(np.arange(first, first + count, dtype=kind), length)
    return Reports.of_equal_size(
        messages.reshape(users, -1), np.broadcast_to(labels, (users, labels.size)).reshape(users, -1)
    )


def labels_of(batch: Batch) -> NDArray[np.int64]:
    """The coordinate of every message."""
    if batch.labels is None:
        return np.zeros(len(batch), dtype=np.int64)
    return batch.labels.astype(np.int64)
