"""How often each letter of an alphabet comes among many messages: exact, in pieces that stay in a core's cache."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.messages import Batch, Payloads
from shuffledp.protocols.tallies import Tally

# A piece, and the wide integers that counting makes of it, stay in a core's cache.
_PIECE = 1 << 18
# Fewer letters than this are counted sooner than all pairs of bytes are looked through.
_LEAST_FOR_PAIRS = 1 << 16


def letters_counted(payloads: Payloads, size: int) -> NDArray[np.int64]:
    """How often each of the letters 0..size-1 comes; what is no letter is not counted.

    Args:
        payloads: unsigned integers of any width.
        size: how many letters there are.

    >>> letters_counted(np.array([2, 0, 2, 9], dtype=np.uint8), 3).tolist()
    [1, 0, 2]
    """
    seen = np.zeros(size, dtype=np.int64)
    # A few letters are counted before so many pairs are made.
    pairs = np.zeros(1 << 16 if payloads.size >= _LEAST_FOR_PAIRS else 0, dtype=np.int64)
    for start in range(0, payloads.size, _PIECE):
        piece = payloads[start : start + _PIECE]
        if piece.size >= _LEAST_FOR_PAIRS and piece.max() < 256:
            # Two letters of a byte each are one of 65,536 pairs: half as many steps.
            letters = np.ascontiguousarray(piece, dtype=np.uint8)
            even = letters.size - letters.size % 2
            _add(pairs, np.bincount(letters[:even].view(np.uint16)))
            piece = piece[even:]
        if piece.itemsize > 2 and piece.size and piece.max() >= size:
            # A stray number would make as many counts as it is large.
            piece = piece[piece < size]
        _add(seen, np.bincount(piece.astype(np.int64, copy=False)))
    if pairs.size:
        both = pairs.reshape(256, 256)
        _add(seen, both.sum(axis=0) + both.sum(axis=1))
    return seen


def _add(seen: NDArray[np.int64], more: NDArray[Any]) -> None:
    """Add counts to those of the letters that there are."""
    seen[: more.size] += more[: seen.size]


@dataclass(frozen=True, slots=True)
class LettersTally:
    """Tallies messages that are letters: all that a process must know to count them for a plan.

    Attributes:
        size: how many letters there are.
    """

    size: int

    def __call__(self, batch: Batch, malformed: int = 0) -> Tally:
        """How often each letter came; what is none is malformed."""
        seen = letters_counted(batch.payloads, self.size)
        return Tally(seen, batch.reports, len(batch), malformed + len(batch) - int(seen.sum()))
