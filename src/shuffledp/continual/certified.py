"""The bound by simulation: the noise does not depend on the data, so its largest value can be measured.

Of R independent runs, the r-th smallest maximum is above the true quantile unless r or more of R runs fell
below that quantile: with r chosen by the binomial law, that is as unlikely as one likes.
"""

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import scipy

from shuffledp.continual.running import RunningPlan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.randomness import RandomBits

# The measured quantile is too small with at most this probability.
_DOUBT = 1e-3
_AT_A_TIME = 1 << 22
_MOST_DRAWS = 5e9


P = TypeVar("P", bound=RunningPlan)


def certify(plan: P, *, runs: int = 10_000, seed: int = 1) -> P:
    """The plan with a bound from so many runs of its own noise; the seed makes the certificate repeatable.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.continual.plan import CounterPlan
    >>> plan = CounterPlan.plan(users=2000, shufflers=2, privacy=Privacy(1, 1e-6))
    >>> certify(plan, runs=1000).error_bound <= plan.error_bound
    True
    """
    rank = certified_rank(runs, plan.confidence)
    draws = runs * plan.draws_a_run
    if draws > _MOST_DRAWS:
        raise InfeasibleError(
            "runs", runs, f"would draw {draws:.1e} noises, more than {_MOST_DRAWS:.0e}", "take the proved bound"
        )
    bits = RandomBits.seeded(seed)
    each = max(1, _AT_A_TIME // plan.draws_a_run)
    maxima = np.concatenate([plan.noise_maxima(min(each, runs - start), bits=bits) for start in range(0, runs, each)])
    bound = np.partition(maxima, rank - 1)[rank - 1].item()
    # Where few runs say less than the proof, the proof stands.
    changes: dict[str, Any] = {"certified_noise_bound": min(bound, plan.proved_noise_bound)}
    return replace(plan, **changes)


def certified_rank(runs: int, confidence: float) -> int:
    """The rank of the run whose maximum is above the quantile, but for _DOUBT.

    >>> certified_rank(10_000, 0.95)
    9567
    """
    # P[Bin(runs, confidence) >= rank] is the probability that the rank-th maximum lies below the quantile.
    rank = int(scipy.stats.binom.isf(_DOUBT, runs, confidence)) + 1
    if rank > runs:
        least = math.ceil(math.log(_DOUBT) / math.log(confidence))
        raise ParameterError("runs", runs, f"must be at least {least}", "10,000 are enough for most")
    return rank
