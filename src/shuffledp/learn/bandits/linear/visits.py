"""Noise for users who come back: every visit is another joint vector of the same person.

A user visits at most M times, never twice in one slot, as in [002] Assumption 4.1. A batch of the lowest level is one
slot and holds one visit; a larger one may hold them all. So of k levels the first shows M shifts of one vector's
length, each of the others at worst one shift of M lengths, and the squares add up to (M + (k - 1) M^2) lengths squared:
the Gaussian pair of all is that many times one batch's, adaptive choices included. Visits round anew: their failures
add up, as do transports.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.continual.domains import Vectors
from shuffledp.continual.noise import SkellamNoise
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.views import UserView
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True)
class Visits:
    """So many visits of a user to batches of so many levels."""

    count: int
    levels: int

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 1 <= self.count <= 10_000:
            raise ParameterError("visits", self.count, "must be a whole number in 1..10000", "1 if nobody returns")

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

    def view(self, domain: Vectors, privacy: Privacy) -> UserView:
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

    def noise(self, domain: Vectors, privacy: Privacy) -> SkellamNoise:
        """The least noise with which all visits together, and each one by itself, are private."""
        return _noise(self, domain, privacy)

    def delta_terms(self, plan: CounterPlan, privacy: Privacy) -> tuple[DeltaTerm, ...]:
        """Every summand of delta for all visits to this plan's batches."""
        if not isinstance(plan.domain, Vectors):
            raise ParameterError("plan", plan.domain.kind, "must be of vectors", "plan a running sum of vectors")
        noise = self.view(plan.domain, privacy).delta_terms(plan.noise, privacy.epsilon)
        carried = [term for term in plan.delta_terms(privacy.epsilon) if term.name in ("transport", "sampling")]
        return (*noise, *(replace(term, value=self.count * term.value) for term in carried))


@lru_cache(maxsize=64)
def _noise(visits: Visits, domain: Vectors, privacy: Privacy) -> SkellamNoise:
    found = [
        visits.view(domain, privacy).calibrate("skellam", privacy),
        UserView.of(domain, visits.levels, visits.each(privacy)).calibrate("skellam", visits.each(privacy)),
    ]
    return max((noise for noise in found if isinstance(noise, SkellamNoise)), key=lambda noise: noise.variance)


@lru_cache(maxsize=64)
def gaussian_offset(noise: SkellamNoise) -> float:
    """How far, in steps, the noise is from Gaussian of its deviation, coupled by quantiles, but for 3e-12.

    With h(z) = Phi^-1(P[Z <= z]), a standard normal g with h(z - 1) < g <= h(z) goes with z.

    >>> 0.5 < gaussian_offset(SkellamNoise(10_000.0)) < 0.75
    True
    """
    law, deviation = noise.law(), math.sqrt(noise.variance)
    reach = math.ceil(7.2 * deviation)
    masses = np.exp(law.log_pmf(np.arange(-reach, 1, dtype=np.float64)))
    below = law.cdf(-reach - 1) + np.cumsum(masses)
    # By symmetry the left half is enough; its last score, at 0, is that of P[Z <= 0] > 1/2.
    scores = deviation * special.ndtri(below)
    numbers = np.arange(-reach, 1)
    inside = numbers >= -math.ceil(7 * deviation)
    right = np.abs(numbers - scores)[inside]
    left = np.abs(numbers[1:] - scores[:-1])[inside[1:]]
    return float(max(right.max(), left.max())) + 1e-6
