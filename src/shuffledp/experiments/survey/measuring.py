"""How the tables are measured: efforts, means and quantiles with intervals, the fewest users that are enough."""

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.experiments.survey.results import Line, Measured, Model
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits

T = TypeVar("T")

_NORMAL = 1.959963984540054
# Intervals of sample sizes end so many doublings from the value, at the latest.
_WIDEST = 1.5


class Effort(StrEnum):
    """How long a table may take: seconds, a minute or two for all, or as long as a benchmark."""

    quick = "quick"
    normal = "normal"
    full = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every row of every table is measured at.

    Attributes:
        privacy: of every model and method.
        effort: how many runs, and of how many users.
        seed: with which everything can be measured again.
    """

    privacy: Privacy
    effort: Effort
    seed: int

    def pick(self, quick: T, normal: T, full: T) -> T:
        """What this effort takes."""
        return {Effort.quick: quick, Effort.normal: normal, Effort.full: full}[self.effort]

    @property
    def steps(self) -> int:
        """How many sample sizes of the grid there are for every doubling."""
        return self.pick(1, 4, 4)

    def generator(self, *words: object) -> np.random.Generator:
        """For data and for references, which protect nobody: one for each purpose."""
        return np.random.default_rng((self.seed, _number(words)))

    def bits(self, *words: object) -> RandomBits:
        """For protocols: seeded, so that a run can be repeated."""
        return RandomBits.seeded(self.number(*words))

    def number(self, *words: object) -> int:
        """A seed for one purpose."""
        return self.seed * 1_000_003 + _number(words)


def _number(words: tuple[object, ...]) -> int:
    return zlib.crc32(repr(words).encode())


def root_mean_square(errors: ArrayLike) -> Measured:
    """The root mean square of independent errors, with the interval that the variance of their squares gives.

    >>> root_mean_square([3.0, -3.0, 3.0, -3.0]).value
    3.0
    """
    squares = np.asarray(errors, dtype=np.float64) ** 2
    value = math.sqrt(float(squares.mean()))
    if value == 0:
        return Measured(value=0.0, low=0.0, high=0.0, runs=squares.size)
    width = _NORMAL * float(squares.std(ddof=1)) / math.sqrt(squares.size) / (2 * value)
    return Measured(value=value, low=max(0.0, value - width), high=value + width, runs=squares.size)


def mean_of(values: ArrayLike) -> Measured:
    """The average, with Student's interval."""
    array = np.asarray(values, dtype=np.float64)
    width = float(stats.t.ppf(0.975, array.size - 1) * array.std(ddof=1)) / math.sqrt(array.size)
    value = float(array.mean())
    return Measured(value=value, low=value - width, high=value + width, runs=array.size)


def sampled_error(plan: Any, values: ArrayLike, truth: float, runs: int, **coins: Any) -> Measured:
    """The root mean square error of so many estimates that are drawn from a plan's own law, with these coins."""
    return root_mean_square([plan.sample_estimate(values, **coins).value - truth for _ in range(runs)])


Arm = tuple[Model, str, float | None]
"""What a line is drawn of: the model, the protocol's name, and the survey's exponent."""


def lines_of(
    against: str, x: Sequence[float], found: Iterable[Iterable[Measured]], arms: Sequence[Arm], measures: str = "error"
) -> tuple[Line, ...]:
    """A line an arm, from what was found at each x: a number an arm, in the arms' order."""
    return tuple(
        Line(model, name, against, x, points, measures, claimed=claimed)
        for (model, name, claimed), points in zip(arms, zip(*found, strict=True), strict=True)
    )


def fewest_users(
    successes: Callable[[int], int],
    runs: int,
    *,
    target: float,
    start: int,
    smallest: int = 2,
    most: int = 10**9,
    steps: int = 4,
) -> Measured:
    """The fewest users with which at least `target` of the runs succeed, where `successes(users)` counts them.

    Sizes are on a grid of so many steps a doubling. The interval ends where Wilson's 95% interval of the success rate
    leaves the target out; the value is interpolated between the two sizes where the measured rate crosses it.
    """
    known: dict[int, float] = {}

    def size_at(step: int) -> int:
        return max(smallest, round(start * 2 ** (step / steps)))

    def rate(step: int) -> float:
        if step not in known:
            if size_at(step) > most:
                raise ParameterError("users", size_at(step), f"must be at most {most:,}", "ask for less")
            known[step] = successes(size_at(step)) / runs
        return known[step]

    # Doubling, up or down, until the rate crosses; then bisection on the grid.
    low = high = 0
    while rate(high) < target:
        low, high = high, high + steps
    while rate(low) >= target and size_at(low) > smallest:
        low, high = low - steps, min(low, high)
    if rate(low) >= target:
        return Measured(value=float(size_at(low)), low=float(smallest), high=float(size_at(low)), runs=runs)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rate(middle) < target else (low, middle)
    part = (target - rate(low)) / (rate(high) - rate(low))
    value = size_at(low) * (size_at(high) / size_at(low)) ** part
    below, above = low, high
    while _wilson(rate(below), runs)[1] >= target and low - below < _WIDEST * steps and size_at(below) > smallest:
        below -= 1
    while _wilson(rate(above), runs)[0] <= target and above - high < _WIDEST * steps:
        above += 1
    return Measured(value=value, low=float(size_at(below)), high=float(size_at(above)), runs=runs)


def users_at(
    setting: Setting, places: Iterable[int], successes: Callable[..., int], runs: int, target: float
) -> list[Measured]:
    """The fewest users at each place, where `successes(place, users, runs)` counts the runs that end right."""
    asked: dict[str, Any] = {"target": target, "start": 50, "steps": setting.steps}
    return [fewest_users(partial(successes, place, runs=runs), runs, **asked) for place in places]


def _wilson(rate: float, runs: int) -> tuple[float, float]:
    z2 = _NORMAL**2 / runs
    middle, width = rate + z2 / 2, _NORMAL * math.sqrt(rate * (1 - rate) / runs + z2 / 4 / runs)
    return (middle - width) / (1 + z2), (middle + width) / (1 + z2)


def shares_of(users: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole counts that add up to the users, in these proportions: data with nothing random in it.

    >>> shares_of(10, np.array([1.0, 1.0, 2.0])).tolist()
    [2, 3, 5]
    """
    edges = np.rint(np.cumsum(weights) / weights.sum() * users).astype(np.int64)
    return np.asarray(np.diff(edges, prepend=0))
