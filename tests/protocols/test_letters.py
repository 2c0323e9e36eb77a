"""Letters are counted exactly, whatever their width, their number and what is no letter."""

import numpy as np
import pytest

from shuffledp.protocols.letters import letters_counted


@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "u8"])
@pytest.mark.parametrize("count", [0, 1, 65_535, 65_537, 200_001])
def test_every_letter_is_counted_once(kind: str, count: int) -> None:
    payloads = (np.arange(count, dtype=np.uint64) ** 2 % 251).astype(kind)
    payloads[-1:] = np.iinfo(kind).max
    for size in (2, 100, 256, 70_000):
        found = letters_counted(payloads, size)
        whole = np.bincount(payloads[payloads < size].astype(np.int64), minlength=size)
        assert found.dtype == np.int64 and found.shape == (size,) and np.array_equal(found, whole)


def test_rows_that_lie_apart_are_counted_as_they_are() -> None:
    payloads = np.tile(np.array([3, 9], dtype=np.uint8), 100_000)[::2]
    assert letters_counted(payloads, 10).tolist() == [0, 0, 0, 100_000, 0, 0, 0, 0, 0, 0]
