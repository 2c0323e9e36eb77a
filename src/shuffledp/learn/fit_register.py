"""Which rows this process has learned from: a sketch a fit, so that what the same people pay again is counted.

Of every fit the smallest keyed hashes of its rows are kept. Two fits that share rows share small hashes: always where
both have at most `KEPT` rows, and else almost surely where they share a part in a few hundred of the larger one. The
key is drawn when the register is made and never leaves the process: a sketch tells nobody anything about a row.
"""

from collections import deque
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.ledger import Entry
from shuffledp.randomness import RandomBits

Hashes = NDArray[np.uint64]

KEPT = 4096
"""Hashes that are kept of a fit."""
_MOST_FITS = 256
# Numbers at a time.
_AT_A_TIME = 1 << 18
# Steele, Lea, Flood 2014: SplitMix64.
_GOLDEN, _FIRST, _SECOND = (np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class FitRegister:
    """Sketches and costs of the last fits.

    >>> from shuffledp import Privacy
    >>> register, rows = FitRegister(), np.arange(12.0).reshape(6, 2)
    >>> entry = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=4, description="a model",
    ...                        claim=Privacy(1, 1e-6))
    >>> register.add(register.sketch(rows[:4], np.zeros(4)), entry)
    >>> len(register.overlapping(register.sketch(rows[3:], np.zeros(3))))
    1
    >>> len(register.overlapping(register.sketch(rows[4:], np.zeros(2))))
    0
    """

    def __init__(self) -> None:
        self._key = RandomBits.secure().words(1)[0]
        self._fits: deque[tuple[Hashes, Entry]] = deque(maxlen=_MOST_FITS)
        self._lock = Lock()

    def sketch(self, rows: NDArray[np.float64], targets: NDArray[np.float64]) -> Hashes:
        """The smallest hashes of these people's rows with their targets, in order."""
        count, width = rows.shape
        with np.errstate(over="ignore"):
            keys = _mixed(np.arange(1, width + 2, dtype=np.uint64) * _GOLDEN + self._key)
        size = max(1, _AT_A_TIME // (width + 1))
        found = np.empty(count, dtype=np.uint64)
        for start in range(0, count, size):
            part = slice(start, start + size)
            words = np.column_stack((rows[part], targets[part])).view(np.uint64)
            found[part] = _mixed(_mixed(words + keys).sum(axis=1, dtype=np.uint64))
        if count > KEPT:
            found = np.partition(found, KEPT - 1)[:KEPT]
        return np.unique(found)

    def overlapping(self, sketch: Hashes) -> list[Entry]:
        """What fits cost that had some of these rows."""
        with self._lock:
            fits = list(self._fits)
        return [entry for other, entry in fits if np.intersect1d(other, sketch, assume_unique=True).size]

    def shared_part(self, sketch: Hashes) -> float:
        """About which part of these rows one fit had, the one that had most of them.

        >>> from shuffledp import Privacy
        >>> register, rows = FitRegister(), np.arange(20_000.0).reshape(-1, 2)
        >>> entry = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=4, description="a model",
        ...                        claim=Privacy(1, 1e-6))
        >>> register.add(register.sketch(rows, np.zeros(10_000)), entry)
        >>> register.shared_part(register.sketch(rows, np.zeros(10_000)))
        1.0
        >>> register.shared_part(register.sketch(rows, np.ones(10_000)))
        0.0
        """
        with self._lock:
            fits = [fit for fit, _ in self._fits]
        parts = [0.0]
        for fit in fits:
            # Beyond its largest hash a full sketch says nothing.
            known = sketch if fit.size < KEPT else sketch[sketch <= fit[-1]]
            if known.size:
                parts.append(np.intersect1d(fit, known, assume_unique=True).size / known.size)
        return max(parts)

    def add(self, sketch: Hashes, entry: Entry) -> None:
        """Keep a fit."""
        with self._lock:
            self._fits.append((sketch, entry))


def _mixed(words: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * _FIRST
        words = (words ^ (words >> np.uint64(27))) * _SECOND
        return np.asarray(words ^ (words >> np.uint64(31)))
