"""What users' rows may be, as declared: theirs are checked against it, and others like them are drawn from it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.spec import check_declared, in_row, positive, whole
from shuffledp.randomness import RandomBits

Floats = NDArray[np.float64]

LARGEST_WIDTH = 1 << 24


def uniform_numbers(shape: int | tuple[int, ...], *, bits: RandomBits) -> Floats:
    """Numbers uniform on [0, 1), of 53 bits each; they protect nobody.

    >>> 0.0 <= float(uniform_numbers(1000, bits=RandomBits.seeded(1)).min()) < 0.01
    True
    """
    words = bits.words(math.prod(np.atleast_1d(shape).tolist()))
    return np.asarray((words >> np.uint64(11)) * 2.0**-53).reshape(shape)


@dataclass(frozen=True, kw_only=True)
class RowShape:
    """One of the arrays of users' data: a vector or a number a user, within declared limits.

    Attributes:
        width: numbers of a user's vector; None where it is one number a user.
        low: no number is smaller.
        high: no number is larger.
        longest: no vector is longer; None where the limits of its numbers are all.
        values: the only numbers there are, such as labels; low and high are then not looked at.

    >>> RowShape(width=2, longest=1.0).draw(3, bits=RandomBits.seeded(1)).shape
    (3, 2)
    >>> RowShape(values=(-1, 1)).check("labels", np.array([1.0, 0.0]))
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: labels must be one of -1, 1, got something else in row 2: leave that user out, ...
    """

    width: int | None = whole(1, LARGEST_WIDTH, "count a vector's numbers", default=None)
    low: float = -1.0
    high: float = 1.0
    longest: float | None = positive("leave it out if only low and high limit it", default=None)
    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_declared(self)
        if not -math.inf < self.low < self.high < math.inf:
            raise ParameterError("low", self.low, f"must be finite and below high, {self.high}", "swap them")
        if self.values is not None:
            values = tuple(float(value) for value in self.values)
            if not values or not np.isfinite(values).all():
                raise ParameterError("values", self.values, "must be finite numbers", "list the labels there are")
            object.__setattr__(self, "values", values)

    def check(self, name: str, array: Floats) -> Floats:
        """The array, or an error that names the first row that is not as declared."""
        wanted = () if self.width is None else (self.width,)
        if array.shape[1:] != wanted:
            described = "a number a user" if self.width is None else f"{self.width} numbers a user"
            raise DataError(
                name, f"shape {array.shape}", f"must be {described}", "declare their shape, or reshape them"
            )
        each = array.reshape(len(array), -1)
        self._refuse(name, each, ~np.isfinite(each), "be finite")
        with np.errstate(over="ignore"):
            if self.values is not None:
                bad, problem = ~np.isin(each, self.values), f"be one of {', '.join(f'{v:g}' for v in self.values)}"
            else:
                bad, problem = ~((each >= self.low) & (each <= self.high)), f"lie in {self.low:g}..{self.high:g}"
            self._refuse(name, each, bad, problem)
            if self.longest is not None:
                long = ~(np.linalg.norm(each, axis=1) <= self.longest * (1 + 1e-12))
                self._refuse(name, each, long[:, np.newaxis], f"be at most {self.longest:g} long")
        return array

    @staticmethod
    def _refuse(name: str, each: Floats, bad: NDArray[np.bool_], problem: str) -> None:
        for row in np.nonzero(bad)[0][:1].tolist():
            wrong = each[row][np.broadcast_to(bad[row], each[row].shape)][0]
            raise DataError(name, in_row(row, wrong), f"must {problem}", "leave that user out, or declare it")

    def draw(self, count: int, *, bits: RandomBits) -> Floats:
        """Rows of this shape, a third of them with all numbers at a limit and a third as long as may be."""
        width = 1 if self.width is None else self.width
        parts = uniform_numbers((count, width), bits=bits)
        if self.values is not None:
            rows = np.array(self.values)[(parts * len(self.values)).astype(np.intp)]
        else:
            kinds = uniform_numbers(count, bits=bits)
            parts = np.where((kinds < 1 / 3)[:, np.newaxis], np.round(parts), parts)
            rows = self.low + (self.high - self.low) * parts
            if self.longest is not None:
                lengths = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
                wanted = np.where(kinds > 2 / 3, self.longest, np.minimum(lengths, self.longest))
                # Lengthened rows may pass a limit of their numbers: then they are cut off, and only shorter.
                rows = np.clip(rows * (wanted / lengths)[:, np.newaxis], self.low, self.high)
        return rows[:, 0] if self.width is None else rows
