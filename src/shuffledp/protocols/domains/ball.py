"""Vectors of bounded length: checked, clipped and read in blocks."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import DataError, ParameterError

Floats = NDArray[np.float64]

LARGEST_DIMENSION = 1 << 24
# Numbers rounded at a time: they stay in the cache.
_AT_A_TIME = 1 << 18


@dataclass(frozen=True, slots=True)
class Ball:
    """All vectors of this many numbers that are at most as long as the radius.

    >>> Ball(2, 5.0).clip_values([[3.0, 4.0], [30.0, 40.0]])[0].round(6).tolist()
    [[3.0, 4.0], [3.0, 4.0]]
    """

    dimension: int
    radius: float

    def check_values(self, values: ArrayLike) -> Floats:
        """The vectors as a matrix of floats, a row a user, none longer than the radius."""
        array = self.matrix(values)
        for start, block in self.blocks(array):
            self.check_block(start, block)
        return array

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        """The vectors, longer ones shortened to the radius, and how many had to be."""
        array = self.matrix(values)
        largest = np.abs(array).max(axis=1)
        self._refuse_infinite(array, largest, 0)
        # Divided by its largest number, no vector's square overflows.
        scale = np.maximum(largest, self.radius)[:, np.newaxis]
        shape = array / scale
        lengths = np.linalg.norm(shape, axis=1, keepdims=True)
        long = (lengths * (scale / self.radius) > 1)[:, 0]
        if not long.any():
            return array, 0
        # A hair shorter than the radius, so that rounding cannot put it beyond.
        clipped = array.copy()
        clipped[long] = shape[long] * (self.radius * (1 - TOLERANCE / 4) / lengths[long])
        return clipped, int(np.count_nonzero(long))

    def matrix(self, values: ArrayLike) -> Floats:
        """The values as floats with a row a user, lengths unchecked."""
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] != self.dimension:
            raise DataError(
                "values",
                f"shape {array.shape}",
                f"must be a matrix with {self.dimension} columns and a row a user",
                "reshape it, or plan another dimension",
            )
        if array.dtype.kind not in "buif":
            raise DataError("values", f"dtype {array.dtype}", "must be numbers", "convert them, e.g. x.astype(float)")
        return array.astype(np.float64, copy=False)

    def blocks(self, array: Floats) -> Iterator[tuple[int, Floats]]:
        """Some rows at a time, with the number of the first."""
        rows = self.rows_at_a_time
        return ((start, array[start : start + rows]) for start in range(0, len(array), rows))

    @property
    def rows_at_a_time(self) -> int:
        """As many as stay in the cache."""
        return max(1, _AT_A_TIME // self.dimension)

    def check_block(self, start: int, block: Floats) -> float:
        """The length of the longest vector, which must not pass the radius."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", block, block)
            fine = squares <= (self.radius * (1 + TOLERANCE / 2)) ** 2
        if fine.all():
            return math.sqrt(float(squares.max()))
        self._refuse_infinite(block, squares, start)
        row = int(np.argmin(fine))
        raise DataError(
            "values",
            f"a vector of length {math.sqrt(squares[row]):.6g} in row {start + row + 1}",
            f"must be at most as long as the radius {self.radius:g}",
            "clip it first (simulate: --clip, clip=True) or plan a larger radius",
        )

    def _refuse_infinite(self, block: Floats, sizes: Floats, start: int) -> None:
        for row in np.flatnonzero(~np.isfinite(sizes)):
            bad = np.flatnonzero(~np.isfinite(block[row]))
            if bad.size:
                raise DataError(
                    "values",
                    f"{block[row, bad[0]]} in row {start + int(row) + 1}, column {int(bad[0]) + 1}",
                    "must be finite",
                    "drop or fill such values first",
                )


def check_ball(dimension: Any, radius: Any) -> None:
    """Refuse what is no ball."""
    if isinstance(dimension, bool) or not isinstance(dimension, int) or not 1 <= dimension <= LARGEST_DIMENSION:
        raise ParameterError(
            "dimension", dimension, f"must be a whole number in 1..{LARGEST_DIMENSION}", "count a vector's numbers"
        )
    if isinstance(radius, bool) or not isinstance(radius, int | float) or not 1e-150 < radius < 1e150:
        raise ParameterError("radius", radius, "must be a positive number", "say how long a vector can be")
