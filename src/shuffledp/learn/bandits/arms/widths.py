"""How far apart two arms' noisy means can be by chance: rewards by Hoeffding, noise by its own law.

Let two arms have N rewards each, S the error of the difference of their sums and W the difference of their noises.
S and W are independent, so with s the sum of squared ranges of one arm's rewards (N for bits)

    P[S + W > a] = E P[S > a - W | W] <= E min(1, exp(-max(a - W, 0)^2 / s)),

which is never more than what any split of the failure into Hoeffding's bound and the noise's exact quantile gives:
a split replaces the expectation by two of its cases. Sums of very many noises have no table, and tables of wide noises
are off by more than the smallest failures: there Chernoff's bound with the moments of both,
log E e^(t(S + W)) <= s t^2 / 4 + log E e^(tW).

No step takes noise to be sub-Gaussian, as [003] Theorem C.1 does: rare coins are not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import optimize

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw
from shuffledp.errors import ParameterError
from shuffledp.protocols.binary_sum.base import BinarySumPlan

Floats = NDArray[np.float64]

# Tables leave out this much on each side, and transforms are off by less than the other.
_OUTSIDE, _TRANSFORM = 1e-26, 1e-13
# Convolved one by one up to here.
_DIRECT = 1 << 13
# More Polya variables than this, or a wider table, and Chernoff's bound takes over.
_LARGEST_SHAPE, _WIDEST = 400.0, 1 << 14


@dataclass(frozen=True, slots=True)
class ArmError:
    """One arm's sum: the squared ranges of its rewards, added up, and the noises of its batches."""

    spread: float
    noises: tuple[Any, ...] = ()
    """What is added to the sum, less its mean: one law for all batches of a kind together, Polya or binomial."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noises", _merged([_summed(law, 1) for law in self.noises]))

    def plus(self, spread: float, law: IntegerLaw | None, batches: int) -> "ArmError":
        """With so many batches more, each with this noise and all rewards together with this spread."""
        if law is None:
            return ArmError(self.spread + spread, self.noises)
        return ArmError(self.spread + spread, (*self.noises, _summed(law, batches)))

    def plus_batches(self, plan: BinarySumPlan, batches: int = 1) -> "ArmError":
        """With so many batches more by this plan."""
        return self.plus(batches * plan.spread, plan.added_noise, batches)


def difference_quantile(error: ArmError, failure: float) -> float:
    """An a that the error of the difference of two such arms' sums passes with at most this probability.

    >>> round(difference_quantile(ArmError(400.0), 1e-6), 1)  # no noise: sqrt(400 log 1e6), Hoeffding's bound
    74.3
    >>> round(difference_quantile(ArmError(400.0, (DiscreteLaplace(math.exp(-1)),)), 1e-6), 1)
    75.0
    """
    if not error.noises:
        return math.sqrt(error.spread * -math.log(failure))
    # Of a table whose own error is of the failure's size nothing is learned.
    masses = _difference_masses(error.noises, failure / 2)
    return _chernoff(error, failure) if masses is None else _mixed(masses, error.spread, failure)


def _mixed(law: tuple[Floats, float], spread: float, failure: float) -> float:
    masses, slack = law
    places = np.arange(masses.size, dtype=np.float64) - masses.size // 2

    def passed(a: float) -> float:
        exponents = np.square(np.maximum(a - places, 0.0)) / spread
        return float(masses @ np.exp(-exponents)) + slack

    return smallest_meeting(passed, failure, 0.0, math.sqrt(spread), relative=1e-6)


def _chernoff(error: ArmError, failure: float) -> float:
    """The least of (log moment + log 1/failure) / t over t; every t gives a bound."""
    needed = -math.log(failure)
    largest = min((_largest_tilt(law) for law in error.noises), default=math.inf)
    middle = math.sqrt(needed / (error.spread / 4 + sum(law.variance for law in error.noises)))

    def bound(log_t: float) -> float:
        t = math.exp(log_t)
        moment = error.spread * t * t / 4 + sum(_log_moment(law, t) for law in error.noises)
        return float((moment + needed) / t)

    top = math.log(min(20 * middle, 0.999999 * largest))
    return float(optimize.minimize_scalar(bound, bounds=(top - 8, top), method="bounded").fun)


def _summed(law: IntegerLaw, times: int) -> PolyaDifference | Binomial:
    """The sum of so many independent ones; discrete Laplace is a difference of Polya variables of shape 1."""
    if isinstance(law, Binomial):
        return Binomial(times * law.trials, law.p)
    if isinstance(law, PolyaDifference | DiscreteLaplace):
        return PolyaDifference(times * (law.shape if isinstance(law, PolyaDifference) else 1.0), law.p)
    raise ParameterError("noise", str(law), "must be binomial or discrete Laplace", "choose another method")


def _merged(laws: Sequence[PolyaDifference | Binomial]) -> tuple[PolyaDifference | Binomial, ...]:
    """Sums of one kind as one law."""
    amounts: dict[tuple[Any, float], Any] = {}
    for law in laws:
        more = law.trials if isinstance(law, Binomial) else law.shape
        amounts[type(law), law.p] = amounts.get((type(law), law.p), 0) + more
    return tuple(kind(amount, p) for (kind, p), amount in amounts.items())


@lru_cache(maxsize=256)
def _difference_masses(noises: tuple[PolyaDifference | Binomial, ...], most: float) -> tuple[Floats, float] | None:
    """Masses of X - X' on -n..n and what they may lack, or None where that would be more, or too much work."""
    total, slack = np.ones(1), 0.0
    for law in noises:
        if isinstance(law, PolyaDifference):
            if 2 * law.shape > _LARGEST_SHAPE:
                return None
            difference = PolyaDifference(2 * law.shape, law.p)
            _, end = difference.window(_OUTSIDE)
            if end > _WIDEST:
                return None
            masses = np.exp(difference.log_pmf(np.arange(-end, end + 1, dtype=np.float64)))
            slack += 2 * _OUTSIDE + difference.numerical_error
        else:
            start, end = law.window(_OUTSIDE)
            if end - start > _WIDEST:
                return None
            one = np.exp(law.log_pmf(np.arange(start, end + 1, dtype=np.float64)))
            masses, error = _convolved(one, one[::-1])
            slack += 4 * _OUTSIDE + error
        if slack > most:
            return None
        total, error = _convolved(total, masses)
        slack += error
    return (total, slack) if slack <= most else None


def _convolved(first: Floats, second: Floats) -> tuple[Floats, float]:
    if min(first.size, second.size) <= _DIRECT:
        return np.convolve(first, second), 0.0
    return np.maximum(scipy.signal.fftconvolve(first, second), 0.0), _TRANSFORM


def _largest_tilt(law: PolyaDifference | Binomial) -> float:
    return -math.log(law.p) if isinstance(law, PolyaDifference) else math.inf


def _log_moment(law: PolyaDifference | Binomial, t: float) -> float:
    """Log E e^(t(X - X'))."""
    if isinstance(law, Binomial):
        return law.trials * sum(math.log1p(law.p * math.expm1(sign * t)) for sign in (1, -1))
    up, down = (math.log1p(-law.p) - math.log1p(-law.p * math.exp(sign * t)) for sign in (1, -1))
    return 2 * law.shape * (up + down)
