"""What experiments share: what may be asked, numbers of users along decades, means with their errors, and slopes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from shuffledp.errors import ParameterError

Progress = Callable[[int, int], None]
"""How much is done, and of how much."""


def check_asked(name: str, value: int, least: int, most: int | None = None, *, way_out: str) -> None:
    """Refuse a number that the experiment cannot be run with."""
    if not least <= value <= (math.inf if most is None else most):
        limits = f"must be >= {least}" if most is None else f"must lie in {least:,}..{most:,}"
        raise ParameterError(name, value, limits, way_out)


def check_seed(seed: int) -> None:
    """Refuse what NumPy's generators are not seeded by."""
    check_asked("seed", seed, 0, way_out="pass for instance 1")


def along_decades(smallest: int, largest: int, a_decade: int) -> list[int]:
    """So many numbers a decade, from the smallest up to the largest.

    >>> along_decades(10_000, 100_000, 2)
    [10000, 31623, 100000]
    """
    steps = math.floor(a_decade * math.log10(largest / smallest) + 1e-9)
    return [round(smallest * 10 ** (step / a_decade)) for step in range(steps + 1)]


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """The mean of independent runs, and its standard error."""
    array = np.asarray(values)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """The slope of a logarithm against another by least squares, with the 95% interval of a straight line's Student t.

    The interval says how straight the points are, no more: a bent line's residuals are not independent.
    """

    slope: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """The slope and half of its interval, each in that format."""
        return f"{self.slope:{spec}} ± {self.high - self.slope:{spec}}"


def fitted_slope(x: Sequence[float], values: Sequence[float]) -> Slope:
    """The slope of log value against log x.

    >>> fitted_slope([10, 100, 1000], [2.0, 4.0, 8.0]).slope.__round__(4)
    0.301
    """
    line = stats.linregress(np.log(x), np.log(values))
    width = float(stats.t.ppf(0.975, len(x) - 2) * line.stderr)
    return Slope(slope=float(line.slope), low=float(line.slope) - width, high=float(line.slope) + width)
