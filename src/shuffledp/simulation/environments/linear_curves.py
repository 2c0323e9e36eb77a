"""Cumulative regret of many instances of a linear bandit, kept at some times."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Progress = Callable[[int], None]
"""Called with the number of users who have come so far."""

# Times at which regret is kept.
POINTS = 200


class RegretCurves:
    """Cumulative regret, in means of rewards, of every instance (a row) after so many users (a column).

    It is kept at some times, on the line between two where slots do not end there.
    """

    def __init__(self, users: int, instances: int) -> None:
        self.times = np.unique(np.linspace(0, users, min(users, POINTS) + 1).astype(np.int64))
        self.regret = np.zeros((instances, self.times.size))
        self._before, self._filled = 0, 1

    def add(self, first: Floats, last: Floats, time: int) -> None:
        """Regret before and after the users up to this time."""
        while self._filled < self.times.size and self.times[self._filled] <= time:
            part = (self.times[self._filled] - self._before) / (time - self._before)
            self.regret[:, self._filled] = first + part * (last - first)
            self._filled += 1
        self._before = time

    @property
    def final(self) -> Floats:
        """The regret of every instance after all users."""
        return np.asarray(self.regret[:, -1])

    @property
    def mean(self) -> float:
        """Over instances."""
        return float(self.final.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean of all instances' final regret."""
        return float(self.final.std(ddof=1) / math.sqrt(len(self.final))) if len(self.final) > 1 else 0.0


def keep_block(kept: RegretCurves, before: Floats, lost: Floats, first: int) -> None:
    """Regret at the kept times of a block of rounds.

    Args:
        kept: the curves.
        before: regret of every instance when the block began.
        lost: what was lost in the block up to each of its rounds, a row each.
        first: how many users came before the block.
    """
    inside = kept.times[(kept.times > first) & (kept.times <= first + len(lost))]
    last = before
    for time in inside.tolist():
        now = before + lost[time - first - 1]
        kept.add(last, now, time)
        last = now
