"""Noise for users who come back: every visit is another joint vector of the same person.

A user visits at most M times, never twice in one slot, as in [002] Assumption 4.1. A batch of the lowest level is one
slot and holds one visit; a larger one may hold them all. So of k levels the first shows M shifts of one vector's
length, each of the others at worst one shift of M lengths, and the squares add up to (M + (k - 1) M^2) lengths squared:
the Gaussian pair of all is that many times one batch's, adaptive choices included. Visits round anew: their failures
add up, as do transports.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.views import UserView
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.setting import check_visits
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import SummedDomain
from shuffledp.protocols.sums.noise import BatchNoise

LEAST_OFFSET_FAILURE = 1e-28


@dataclass(frozen=True, slots=True)
class Visits:
    """So many visits of a user to batches of so many levels."""

    count: int
    levels: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", check_visits("visits", self.count))

    @property
    def squares(self) -> int:
        """How many single shifts tell as much together.

        >>> Visits(1, 4).squares, Visits(5, 1).squares, Visits(5, 2).squares
        (4, 5, 30)
        """
        return self.count + (self.levels - 1) * self.count**2

    def each(self, privacy: Privacy) -> Privacy:
        """The target of a plan that one visit joins: its part of what does not come from noise."""
        return Privacy(privacy.epsilon, privacy.delta / self.count)

    def view(self, domain: SummedDomain, privacy: Privacy) -> UserView:
        """All a user's batches."""
        once = UserView.of(domain, self.levels, self.each(privacy))
        together = self.count if self.levels > 1 else 1
        return replace(
            once,
            batches=self.squares,
            largest_shift=once.largest_shift * together,
            rounding_failure=once.rounding_failure * self.count,
            outside=once.outside * self.levels / self.squares,
        )

    def noise(self, domain: SummedDomain, privacy: Privacy) -> BatchNoise:
        """The least noise with which all visits together, and each one by itself, are private."""
        return _noise(self, domain, privacy)

    def delta_terms(self, plan: CounterPlan, privacy: Privacy) -> tuple[DeltaTerm, ...]:
        """Every summand of delta for all visits to this plan's batches."""
        noise = self.view(plan.domain, privacy).delta_terms(plan.batch_noise, privacy.epsilon)
        carried = [
            term
            for term in plan.delta_terms(privacy.epsilon, plan.honest_users)
            if term.name in ("transport", "sampling")
        ]
        return (*noise, *(replace(term, value=self.count * term.value) for term in carried))


@lru_cache(maxsize=64)
def _noise(visits: Visits, domain: SummedDomain, privacy: Privacy) -> BatchNoise:
    found = [
        visits.view(domain, privacy).calibrate("skellam", privacy),
        UserView.of(domain, visits.levels, visits.each(privacy)).calibrate("skellam", visits.each(privacy)),
    ]
    return max(found, key=lambda noise: noise.law().variance)


@lru_cache(maxsize=64)
def gaussian_offset(noise: BatchNoise, failure: float) -> float:
    """How far, in steps, the noise is from Gaussian of its deviation, coupled by quantiles, but for `failure` a draw.

    With h(z) = Phi^-1(P[Z <= z]), a standard normal g with h(z - 1) < g <= h(z) goes with z. The distance is bounded
    at every z up to the least r with P[|Z| > r] <= failure.

    >>> from shuffledp.continual.noise import SkellamNoise
    >>> 0.5 < gaussian_offset(SkellamNoise(10_000.0), 3e-12) < 0.75
    True
    """
    if not LEAST_OFFSET_FAILURE <= failure < 1:
        limits = f"must lie in [{LEAST_OFFSET_FAILURE:g}, 1)"
        raise ParameterError("failure", failure, limits, "ask for less confidence, or fewer releases")
    law = noise.law()
    deviation = law.standard_deviation
    outside = failure * 1e-3
    start, _ = law.window(outside)
    numbers = np.arange(start - 1, 1)
    # By symmetry the left half is enough; its last score, at 0, is that of P[Z <= 0] > 1/2.
    below = np.cumsum(np.exp(law.log_pmf(numbers.astype(np.float64)))) + outside
    # What the window leaves out is at most that: the true score is between two. What is rarer than `first` has failed.
    first = int(np.searchsorted(below, 0.49 * failure, side="right"))
    scores, less = (deviation * special.ndtri(np.maximum(each, outside)) for each in (below, below - outside))
    # The one at `first` begins at the score before it.
    right = np.maximum(np.abs(numbers - scores), np.abs(numbers - less))[first:]
    left = np.maximum(np.abs(numbers[1:] - scores[:-1]), np.abs(numbers[1:] - less[:-1]))[first - 1 :]
    return float(max(right.max(), left.max(initial=0.0))) + 1e-6
