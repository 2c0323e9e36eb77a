"""Intervals of what was drawn: of root mean square errors, parts, means and ratios of CPU time."""

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evidence.claims import FALSE_ALARM, Measured, normal_quantile


def root_mean_square(errors: ArrayLike, note: str = "") -> Measured:
    """The root mean square of independent errors, by the normal law of the mean of their squares.

    >>> root_mean_square([1.0, -1.0] * 500).value
    1.0
    """
    squares = np.square(np.asarray(errors, dtype=np.float64).ravel())
    value = math.sqrt(float(squares.mean()))
    around = normal_quantile() * float(squares.std(ddof=1)) / math.sqrt(squares.size)
    low, high = (math.sqrt(max(0.0, value**2 + side)) for side in (-around, around))
    return Measured(value, low, high, note or f"{squares.size:,} runs")


def mean(values: ArrayLike, note: str = "") -> Measured:
    """The mean of independent values, by Student's law."""
    each = np.asarray(values, dtype=np.float64)
    around = float(special.stdtrit(each.size - 1, 1 - FALSE_ALARM / 2) * each.std(ddof=1)) / math.sqrt(each.size)
    middle = float(each.mean())
    return Measured(middle, middle - around, middle + around, note or f"{each.size:,} runs")


def part(hits: int, runs: int, note: str = "") -> Measured:
    """The part of runs that hit, by Clopper and Pearson: holds whatever the number of runs.

    >>> part(0, 10).low, part(10, 10).high
    (0.0, 1.0)
    """
    low = 0.0 if hits == 0 else float(special.betaincinv(hits, runs - hits + 1, FALSE_ALARM / 2))
    high = 1.0 if hits == runs else float(special.betaincinv(hits + 1, runs - hits, 1 - FALSE_ALARM / 2))
    return Measured(hits / runs, low, high, note or f"{hits:,} of {runs:,} runs")


def ratio(above: Measured, below: Measured) -> Measured:
    """The ratio of two measurements that know nothing of each other: each reaches as far as its own interval."""
    value = above.value / below.value

    def reach(upper: float, lower: float) -> float:
        return value * math.hypot(upper / above.value - 1, lower / below.value - 1)

    low, high = value - reach(above.low, below.high), value + reach(above.high, below.low)
    return Measured(value, low, high, f"{above.value:.4g} beside {below.value:.4g}; {above.note}")


def cpu_ratio(slow: Callable[[], object], quick: Callable[[], object], *, rounds: int, times: int = 1) -> Measured:
    """How often the CPU time of one call is in another's, taken in turn: the middle one of the rounds' ratios.

    Args:
        slow: is in the numerator.
        quick: is in the denominator, the mean of so many `times` in a row.
        rounds: pairs of calls; the interval holds the middle half of their ratios: what else runs moves the others.
        times: how often the quick one is called for one call of the slow one.
    """
    slow(), quick()
    found = sorted(_cpu(slow, 1) / _cpu(quick, times) for _ in range(rounds))
    middle = found[rounds // 2]
    return Measured(
        middle, found[rounds // 4], found[-1 - rounds // 4], f"{rounds} pairs in turn, CPU time of one core"
    )


def _cpu(call: Callable[[], object], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        call()
    return max(time.process_time() - started, 1e-9) / times
