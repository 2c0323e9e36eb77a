"""The exponent of a running count's error: it should grow like n^(1/(2k+1)) with k shufflers.

The theory says so up to logarithms, from above ([000] section 3) and from below ([000] Theorem 4.1), and
logarithms bend the line at every n that can be run. With c batches an estimate and C(c + k, k) slots, the bound is

    a z sqrt(c) + n / (2 C(c + k, k)),    z ~ sqrt(2 log(C(c + k, k) / failure)) from the union over all prefixes,

least near c^(k + 1/2) ~ n / (a z), where it is n^(1/(2k+1)) (a z)^(2k/(2k+1)) up to constants. So z^(2k/(2k+1)) is
the logarithm's part. The bound divided by it has the theory's slope to within 0.01 already from 10^3 to 10^7, although
C(c + k, k) grows more slowly than c^k while c is small: few noises have heavier tails, which pulls the other way.

On the hard input the mean of the largest error is steeper than the bound: of more prefixes and more slots the worst
varies less, and comes nearer to what the bound allows. Nor is all of z there to divide by: with one shuffler the noise
is a walk, whose largest value has no logarithm; only the bound has one.

Theorem 4.1's proof asks for n c_eps^2 / Big_(n,k) > 200^2, at epsilon 1 for 8e7, 9e12 and 1e18 users with k = 1, 2
and 3: at the sizes here rep_(n, k) is a shape beside the errors, and no constant is claimed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.counter import Counter
from shuffledp.continual.noise import calibrate
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.planner import best_budget
from shuffledp.continual.request import CountRequest
from shuffledp.errors import ParameterError
from shuffledp.experiments.common import Slope as Slope
from shuffledp.experiments.common import along_decades, check_asked, check_seed, fitted_slope
from shuffledp.experiments.resumed import Measuring, RowTask, measured
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.continual.horizon import gaussian_factor
from shuffledp.simulation.environments.hard_streams import hard_stream, lower_shape

CONFIDENCE = 0.95
PRIVACY = Privacy(1.0, 1e-10)
# Times that are looked at together: they stay in the cache.
_AT_A_TIME = 1 << 16
"""Delta is below epsilon / (40 n (k + 1)), as Theorem 4.1 asks; the noise is pure and does not depend on it."""

SMALLEST, LARGEST_ALLOWED, A_DECADE = 1000, 10**8, 4
# Up to here discrete Laplace noise is calibrated by epsilon / k alone, one law for all n.
MOST_SHUFFLERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """The largest error over the horizon, on draws of Delta_(n, k) and on all ones, beside what is proved."""

    shufflers: int
    users: int
    bound: float
    error_mean: float
    error_quantile: float
    ones_error_mean: float
    ones_error_quantile: float
    within_bound: float  # the part of all runs, on both inputs
    lower_shape: float
    log_factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeRow:
    """Slopes for one number of shufflers beside the theory's 1 / (2k + 1)."""

    shufflers: int
    error: Slope
    ones_error: Slope
    bound: Slope
    without_log: Slope
    bound_without_log: Slope
    theory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterExponent:
    """The whole experiment."""

    rows: tuple[ErrorRow, ...]
    slopes: tuple[SlopeRow, ...]
    runs: int
    seed: int


def forced_plan(users: int, shufflers: int, privacy: Privacy = PRIVACY) -> CounterPlan:
    """The best plan that uses exactly so many shufflers, whether or not fewer would be better.

    >>> forced_plan(1000, 3).shufflers_used, forced_plan(1000, 3).error_bound > forced_plan(1000, 1).error_bound
    (3, True)
    """
    noise = calibrate("laplace", shufflers, privacy)
    asked = CountRequest(users=users, shufflers=shufflers, privacy=privacy, confidence=CONFIDENCE)
    return CounterPlan.of(asked, best_budget(asked, shufflers, noise))


def log_factor(plan: CounterPlan) -> float:
    """What the union over all prefixes adds to the smallest bound: see the top of this file."""
    power = 2 * plan.shufflers_used / (2 * plan.shufflers_used + 1)
    return math.pow(gaussian_factor(plan.schedule.slots, 1 - plan.confidence), power)


def largest_error(counter: Counter, values: NDArray[np.uint8], *, bits: RandomBits) -> float:
    """Over all times of one run, some at a time."""
    estimates = counter.run(values, bits=bits)
    counted, largest = 0, 0.0
    for first in range(0, values.size, _AT_A_TIME):
        counts = counted + np.cumsum(values[first : first + _AT_A_TIME], dtype=np.int64)
        times = np.arange(first + 1, first + counts.size + 1)
        largest = max(largest, float(np.abs(estimates.at_times(times) - counts).max()))
        counted = int(counts[-1])
    return largest


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTask(RowTask):
    """One number of shufflers at one number of users."""

    row = ErrorRow

    shufflers: int
    users: int
    runs: int
    seed: int

    @property
    def weight(self) -> int:
        """Users of all runs."""
        return self.users * self.runs

    def run(self) -> ErrorRow:
        """Measure one point."""
        return measure(self.users, self.shufflers, runs=self.runs, seed=self.seed)


def measure(users: int, shufflers: int, *, runs: int, seed: int) -> ErrorRow:
    """One point: so many runs on fresh draws of Delta_(n, k), and as many on all ones."""
    plan = forced_plan(users, shufflers)
    counter = Counter(plan)
    # A point is the same whichever others are asked for with it.
    first, *streams = np.random.SeedSequence((seed, users, shufflers)).generate_state(1 + runs, np.uint64).tolist()
    bits = RandomBits.seeded(first)
    ones = np.ones(users, dtype=np.uint8)
    found = np.empty((runs, 2))
    for run, stream in enumerate(streams):
        hard = hard_stream(users, shufflers, plan.privacy.epsilon, seed=stream)
        found[run] = [largest_error(counter, values, bits=bits) for values in (hard, ones)]
    means, quantiles = found.mean(axis=0), np.quantile(found, CONFIDENCE, axis=0)
    return ErrorRow(
        shufflers=shufflers,
        users=users,
        bound=plan.error_bound,
        error_mean=float(means[0]),
        error_quantile=float(quantiles[0]),
        ones_error_mean=float(means[1]),
        ones_error_quantile=float(quantiles[1]),
        within_bound=float((found <= plan.error_bound).mean()),
        lower_shape=lower_shape(users, shufflers, plan.privacy.epsilon),
        log_factor=log_factor(plan),
    )


def counter_exponent(
    *,
    shufflers: Sequence[int] = (1, 2, 3),
    largest: int = 10**7,
    runs: int = 100,
    seed: int = 1,
    **measuring: Unpack[Measuring],
) -> CounterExponent:
    """Errors for n from 1000 up to the largest, four a decade, and the slopes through them.

    Reference: [000] Theorems 3.4 and 4.1.
    """
    _check(shufflers, largest, runs, seed)
    sizes = along_decades(SMALLEST, largest, A_DECADE)
    tasks = [ErrorTask(shufflers=used, users=users, runs=runs, seed=seed) for used in shufflers for users in sizes]
    rows, slopes = measured(tasks, **measuring), []
    for place, used in enumerate(shufflers):
        points = rows[place * len(sizes) : (place + 1) * len(sizes)]
        of = {
            "error": [row.error_mean for row in points],
            "ones_error": [row.ones_error_mean for row in points],
            "bound": [row.bound for row in points],
            "bound_without_log": [row.bound / row.log_factor for row in points],
            "without_log": [row.error_mean / row.log_factor for row in points],
        }
        fitted = {name: fitted_slope(sizes, values) for name, values in of.items()}
        slopes.append(SlopeRow(shufflers=used, theory=1 / (2 * used + 1), **fitted))
    return CounterExponent(rows=tuple(rows), slopes=tuple(slopes), runs=runs, seed=seed)


def _check(shufflers: Sequence[int], largest: int, runs: int, seed: int) -> None:
    if not shufflers or len(set(shufflers)) < len(shufflers) or not all(1 <= k <= MOST_SHUFFLERS for k in shufflers):
        listed = ",".join(map(str, shufflers))
        raise ParameterError("shufflers", listed, f"must be different numbers in 1..{MOST_SHUFFLERS}", "try 1,2,3")
    way_out = "a slope needs a decade, and memory ends"
    check_asked("largest", largest, 10 * SMALLEST, LARGEST_ALLOWED, way_out=way_out)
    check_asked("runs", runs, 2, way_out="100 are enough for a slope")
    check_seed(seed)
