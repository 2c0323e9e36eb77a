"""Which rows this process has asked: a sketch a question, so that what the same people pay again is counted.

A sketch is made of rows as they came, before bounds, norms or categories change anything, so that another preparation
does not hide who was asked before; and without targets, as another question about the same people is still theirs. Of
every question the smallest keyed hashes of its rows are kept. Two questions that share rows share small hashes: always
where both have at most `KEPT` different rows, and else almost surely where they share a part in a few hundred of the
larger one. The key is drawn when the register is made and never leaves the process: a sketch tells nobody anything
about a row.
"""

from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from shuffledp.accounting.ledger import Entry
from shuffledp.randomness import RandomBits

Hashes = NDArray[np.uint64]

KEPT = 4096
"""Hashes that are kept of a question."""
_MOST_ASKED = 256
# Numbers at a time.
_AT_A_TIME = 1 << 18
# Where fewer rows of a fit are one of a kind, rows of others are often like its own.
_ALL_ALIKE = 0.05
# Steele, Lea, Flood 2014: SplitMix64.
_GOLDEN, _FIRST, _SECOND = (np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True, slots=True, eq=False)
class RowSketch:
    """The smallest hashes of some people's rows, in order, and how many of the people have each."""

    hashes: Hashes
    people: NDArray[np.int64]

    @property
    def reach(self) -> np.uint64:
        """The largest hash that the sample knows all smaller ones of."""
        return self.hashes[-1] if self.hashes.size == KEPT else np.uint64(np.iinfo(np.uint64).max)

    @property
    def alike(self) -> float:
        """About how likely somebody who was not among them has a row like one of theirs: Good and Turing's estimate."""
        return 1 - float(np.count_nonzero(self.people == 1)) / max(1, int(self.people.sum()))


class FitRegister:
    """Sketches and costs of the last questions, of which some taught a model.

    >>> from shuffledp import Privacy
    >>> register, rows = FitRegister(), np.arange(12.0).reshape(6, 2)
    >>> entry = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=4, description="a model",
    ...                        claim=Privacy(1, 1e-6))
    >>> register.add(register.sketch(rows[:4]), entry)
    >>> len(register.overlapping(register.sketch(rows[3:])))
    1
    >>> len(register.overlapping(register.sketch(rows[4:])))
    0
    """

    def __init__(self) -> None:
        self._key = RandomBits.secure().words(1)[0]
        self._asked: deque[tuple[RowSketch, Entry, bool]] = deque(maxlen=_MOST_ASKED)
        self._lock = Lock()

    def sketch(self, people: Any) -> RowSketch:
        """The smallest hashes of these people's rows.

        Args:
            people: a row a person, as it came: numbers, words or both, dense or sparse. Equal numbers are equal rows,
                however they are kept.
        """
        is_sparse = sparse.issparse(people)
        rows: Any = people.tocsr() if is_sparse else _rows(people)
        count, width = rows.shape
        with np.errstate(over="ignore"):
            keys = _mixed(np.arange(1, width + 1, dtype=np.uint64) * _GOLDEN + self._key)
        size = max(1, _AT_A_TIME // max(1, width))
        found = np.empty(count, dtype=np.uint64)
        for start in range(0, count, size):
            part = rows[start : start + size]
            words = self._words(part.toarray() if is_sparse else part)
            found[start : start + size] = _mixed(_mixed(words + keys).sum(axis=1, dtype=np.uint64))
        hashes, counts = np.unique(found, return_counts=True)
        return RowSketch(hashes[:KEPT].copy(), counts[:KEPT].astype(np.int64))

    def _words(self, rows: NDArray[Any]) -> Hashes:
        """A word for each value: a number's bits, or a keyed hash of what is no number."""
        if rows.dtype.kind in "buif":
            # 0 and -0 are one number.
            return np.ascontiguousarray(rows.astype(np.float64) + 0.0).view(np.uint64)
        found = np.empty(rows.shape, dtype=np.uint64)
        for place, column in enumerate(rows.T):
            try:
                found[:, place] = (column.astype(np.float64) + 0.0).view(np.uint64)
            except (TypeError, ValueError):
                texts, places = np.unique(column.astype(str), return_inverse=True)
                found[:, place] = np.array([self._word(text) for text in texts.tolist()], dtype=np.uint64)[places]
        return found

    def _word(self, text: str) -> int:
        try:
            return int((np.array([float(text)]) + 0.0).view(np.uint64)[0])
        except ValueError:
            digest = blake2b(text.encode(), digest_size=8, key=int(self._key).to_bytes(8, "big")).digest()
            return int.from_bytes(digest, "big")

    def overlapping(self, sketch: RowSketch) -> list[Entry]:
        """What questions cost that had some of these rows."""
        with self._lock:
            asked = list(self._asked)
        return [
            entry for other, entry, _ in asked if np.intersect1d(other.hashes, sketch.hashes, assume_unique=True).size
        ]

    def part_learned_from(self, sketch: RowSketch) -> float:
        """About which part of these people one fit learned from, the one that had most of them.

        Rows that are alike by chance, as those of a few categories are, are not counted: how many there would be is
        estimated from how many of the fit's rows are one of a kind.

        >>> from shuffledp import Privacy
        >>> register, rows = FitRegister(), np.arange(20_000.0).reshape(-1, 2)
        >>> entry = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=4, description="a model",
        ...                        claim=Privacy(1, 1e-6))
        >>> register.add(register.sketch(rows), entry)
        >>> register.part_learned_from(register.sketch(rows))
        1.0
        >>> register.part_learned_from(register.sketch(rows + 0.5))
        0.0
        """
        with self._lock:
            fits = [fit for fit, _, learned in self._asked if learned]
        parts = [0.0]
        for fit in fits:
            known = sketch.hashes <= min(fit.reach, sketch.reach)
            people = sketch.people[known]
            alike = fit.alike
            if people.size and alike < 1 - _ALL_ALIKE:
                seen = people[np.isin(sketch.hashes[known], fit.hashes)].sum() / people.sum()
                parts.append((float(seen) - alike) / (1 - alike))
        return max(parts)

    def add(self, sketch: RowSketch, entry: Entry, *, learned: bool = True) -> None:
        """Keep a question, and whether a model learned from its answers."""
        with self._lock:
            self._asked.append((sketch, entry, learned))


REGISTER = FitRegister()
"""The register of this process: clones of an estimator share it, as they learn from the same people."""


def _rows(people: Any) -> NDArray[Any]:
    """An array of rows, whatever they came as."""
    rows = np.asarray(people)
    return rows.reshape(len(rows), -1) if rows.ndim != 1 else rows[:, np.newaxis]


def _mixed(words: Hashes) -> Hashes:
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * _FIRST
        words = (words ^ (words >> np.uint64(27))) * _SECOND
        return np.asarray(words ^ (words >> np.uint64(31)))
