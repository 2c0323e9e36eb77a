"""Intervals for means of bounded numbers that hold at every size, also where all numbers seen are alike.

Three of them: Clopper and Pearson's for independent numbers that are 0 or 1; a bettor's for independent numbers, also
weighed ones; and a mixture of exponentials for numbers whose means may depend on those before, as with a policy that
learns. None is asymptotic: each misses with at most the failure probability that is named, whatever the law.

Proofs: docs/theory/002-linear-bandits.md.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

Floats = NDArray[np.float64]

# A bettor never stakes more than this part of what a round can lose: one bad round must not end the game.
_STAKE = 0.9
# Exponents that are mixed grow by this factor.
_GROWTH = 1.4


def clopper_pearson(successes: int, trials: int, failure: float) -> tuple[float, float]:
    """An interval for the probability of a success in independent trials.

    Args:
        successes: how many trials succeeded.
        trials: how many there were.
        failure: the probability with which the interval may miss.

    Returns:
        Its lower and upper end.

    >>> low, high = clopper_pearson(0, 57, 0.05)
    >>> low, round(high, 3)
    (0.0, 0.063)
    """
    half, failures = failure / 2, trials - successes
    low = 0.0 if successes == 0 else float(stats.beta.ppf(half, successes, failures + 1))
    high = 1.0 if failures == 0 else float(stats.beta.isf(half, successes + 1, failures))
    return low, high


def betting_lower_end(
    numbers: Floats, *, most: float, failure: float, weights: Floats | None = None, heaviest: float = 1.0
) -> float:
    """A number below the mean of independent numbers >= 0, but for the failure probability.

    Whoever bets that the mean is larger than v, a stake s a round known before it, has the wealth
    prod(1 + s (x - v w)), which is 1 on average where v is the mean: it passes 1/failure with at most that probability
    (Markov). So every v that would have made the bettor so rich in the end is below the mean.

    Args:
        numbers: x >= 0, a round each, in the order in which they came.
        most: the mean is no larger.
        failure: the probability with which the end may be above the mean.
        weights: w >= 0 of mean 1, with which x - v w has mean 0 at the true v; 1 where left out.
        heaviest: no x - v w can be below -v times this.

    Reference: Waudby-Smith, Ramdas 2024; with weights Waudby-Smith, Wu, Ramdas, Karampatziakis, Mineiro 2022.

    Returns:
        The end, or 0 where the numbers say nothing.

    >>> round(betting_lower_end(np.ones(57), most=1.0, failure=0.025), 2)
    0.93
    """
    count = len(numbers)
    each = np.ones(count) if weights is None else weights
    goal = math.log(1 / failure)
    # Before a round its stake is known: means and spreads of the earlier ones, and of one more that is made up.
    totals, heavy = np.cumsum(numbers), np.cumsum(each)
    means = np.concatenate(([most / 2], (most / 2 + totals) / (1 + heavy)))
    squares = np.cumsum(np.square(numbers - means[:-1] * each))
    spread = (most * most / 4 + np.concatenate(([0.0], squares[:-1]))) / np.arange(1, count + 1)
    wanted = np.sqrt(2 * goal / (count * np.maximum(spread, 1e-300)))

    def wealth(value: float) -> float:
        stakes = np.minimum(wanted, _STAKE / (heaviest * value))
        return float(np.log1p(stakes * (numbers - value * each)).sum()) - goal

    # The wealth falls as v grows.
    least = most * 1e-9
    # Numbers that no mean explains, weights that are far too large by chance, say nothing about it.
    if wealth(least) < 0 or wealth(most) >= 0:
        return 0.0
    found = float(optimize.brentq(wealth, least, most, xtol=most * 1e-9))
    return max(0.0, found - most * 1e-8)


def changing_interval(total: float, count: int, failure: float) -> tuple[float, float]:
    """An interval for the mean of the expectations that numbers in [0, 1] had, each given those before it.

    E[exp(l x)] <= 1 + p (e^l - 1) for a number of mean p, and ln(1 + p (e^l - 1)) is concave in p. So, with s the sum
    and m the mean of all p, exp(l s) / (1 + m (e^l - 1))^n is at most 1 on average for every l > 0 fixed beforehand,
    and so is a mixture over some of them; where it passes 2/failure, m is refused.

    Args:
        total: the sum of the numbers.
        count: how many there are.
        failure: the probability with which the interval may miss.

    Returns:
        Its lower and upper end.

    >>> [round(end, 3) for end in changing_interval(0, 57, 0.05)]
    [0.0, 0.073]
    """
    return _changing_lower(total, count, failure / 2), 1 - _changing_lower(count - total, count, failure / 2)


def _changing_lower(total: float, count: int, failure: float) -> float:
    goal = math.log(1 / failure)
    first, last = math.sqrt(2 * goal / count), math.log(4 * count) + goal
    steps = max(1, math.ceil(math.log(last / first) / math.log(_GROWTH)))
    exponents = np.geomspace(first, max(first, last), steps + 1)

    def evidence(mean: float) -> float:
        logs = exponents * total - count * np.log1p(mean * np.expm1(exponents))
        return float(special.logsumexp(logs)) - math.log(len(exponents)) - goal

    if evidence(0.0) <= 0:
        return 0.0
    # At the mean that was seen every term is at most 1.
    return max(0.0, float(optimize.brentq(evidence, 0.0, total / count, xtol=1e-12)) - 1e-9)
