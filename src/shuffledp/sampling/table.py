"""Any law on the integers with known ratios of masses: a certified table of 128-bit cumulative weights."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import InfeasibleError
from shuffledp.randomness import RandomBits

Ratio = Callable[[int], tuple[int, int]]
"""Step number j >= 1 away from the mode -> mass(step j) / mass(step j-1) as numerator, denominator."""

# Masses are kept in units of 2^-192 of the mode's; a tail below 2^-136 of the whole is cut off.
_WEIGHT_BITS = 192
_TAIL_BITS = 136
LONGEST_TABLE = 1 << 21


def _walk(ratio: Ratio, limit: Fraction) -> tuple[list[int], int]:
    """Weights outward from the mode (mode excluded), and a bound on what was cut off behind them.

    The ratios must be <= 1 and monotone with the given limit, so that from any step on none exceeds
    max(ratio there, limit) and a geometric series bounds the tail. Every weight is rounded down; an
    error shrinks with the ratios, so the j-th weight is less than j + 1 units too small.
    """
    if limit and -math.log(limit) * LONGEST_TABLE < 60:  # e^-60 is far above 2^-136
        raise _too_long()
    weights: list[int] = []
    weight = 1 << _WEIGHT_BITS
    smallest = 1 << (_WEIGHT_BITS - _TAIL_BITS)
    while True:
        step = len(weights) + 1
        numerator, denominator = ratio(step)
        if numerator <= 0:
            return weights, 0
        if weight <= smallest:
            largest = max(Fraction(numerator, denominator), limit)
            if largest < 1:
                # One unit a step covers the rounding of the weight itself.
                tail = (weight + step) * largest / (1 - largest)
                if tail <= smallest:
                    return weights, int(tail) + 1
        if step > LONGEST_TABLE:
            raise _too_long()
        weight = weight * numerator // denominator
        weights.append(weight)


def _drop_zeros(weights: list[int]) -> int:
    """Drop weights at the end that were rounded to 0: how many, each short by less than the table's length."""
    length = len(weights)
    while weights and weights[-1] == 0:
        weights.pop()
    return (length - len(weights)) * (length + 1)


def _too_long() -> InfeasibleError:
    return InfeasibleError(
        "scale",
        f"more than {LONGEST_TABLE} values",
        "must give a table that fits into memory",
        "choose a larger epsilon or a coarser grid",
    )


@dataclass(frozen=True, slots=True, eq=False)
class TableLaw:
    """A law on consecutive integers, sampled by searching a 128-bit cumulative table.

    The high 64 bits of a uniform number decide nearly always; only where they tie with an entry are
    64 more drawn. `distance` bounds the total variation distance between the table's law and the
    ideal one: cut-off and rounding together. It is the number that reaches delta.
    """

    low: int
    high_words: NDArray[np.uint64]
    low_words: NDArray[np.uint64]
    distance: float

    @classmethod
    def from_ratios(
        cls, mode: int, *, up: Ratio, down: Ratio, up_limit: Fraction, down_limit: Fraction = Fraction(0)
    ) -> Self:
        """The law whose masses fall from `mode` by the exact ratios `up(1), up(2), ...` and `down(...)`."""
        above, cut_above = _walk(up, up_limit)
        below, cut_below = _walk(down, down_limit)
        cut_above += _drop_zeros(above)
        cut_below += _drop_zeros(below)
        weights = [*reversed(below), 1 << _WEIGHT_BITS, *above]
        total = sum(weights)
        cumulative = 0
        entries = []
        for weight in weights[:-1]:
            cumulative += weight
            entries.append((cumulative << 128) // total)
        # Rounding down: weight j is at most j+1 units short, the total at least 2^192 units; each
        # mass is then off by less than one unit of 2^-128, half of that in total variation.
        short = (len(above) + 1) ** 2 + (len(below) + 1) ** 2 + cut_above + cut_below
        distance = Fraction(short, 1 << _WEIGHT_BITS) + Fraction(len(weights), 1 << 129)
        return cls(
            low=mode - len(below),
            high_words=np.array([entry >> 64 for entry in entries], dtype=np.uint64),
            low_words=np.array([entry & (1 << 64) - 1 for entry in entries], dtype=np.uint64),
            distance=float(np.nextafter(float(distance), 1.0)),
        )

    @property
    def high(self) -> int:
        """The largest value."""
        return self.low + self.high_words.size

    def masses(self) -> list[Fraction]:
        """The exact probability of each value of the table, from `low` to `high`."""
        whole = 1 << 128
        entries = [int(h) << 64 | int(w) for h, w in zip(self.high_words, self.low_words, strict=True)]
        return [Fraction(b - a, whole) for a, b in zip([0, *entries], [*entries, whole], strict=True)]

    def sample(self, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """`count` independent draws."""
        words = bits.words(count)
        # The answer is the first entry above the uniform number; `right` skips entries that tie.
        index = np.searchsorted(self.high_words, words, side="right")
        if self.high_words.size:
            tied = np.flatnonzero((index > 0) & (self.high_words[index - 1] == words))
            if tied.size:
                index[tied] = self._refine(words[tied], bits)
        return index.astype(np.int64) + self.low

    def _refine(self, words: NDArray[np.uint64], bits: RandomBits) -> NDArray[Any]:
        """The first entry above the uniform number, by all its 128 bits."""
        answers = np.empty(words.size, dtype=np.int64)
        for position, (high, low) in enumerate(zip(words, bits.words(words.size), strict=True)):
            first = int(np.searchsorted(self.high_words, high, side="left"))
            last = int(np.searchsorted(self.high_words, high, side="right"))
            answers[position] = first + int(np.searchsorted(self.low_words[first:last], low, side="right"))
        return answers
