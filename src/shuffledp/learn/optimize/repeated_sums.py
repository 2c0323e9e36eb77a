"""A vector sum that the same users join several times: the plan of one round, calibrated for all rounds together.

Each round's view is dominated by one Gaussian pair whatever was released before (docs/theory/vector-sums.md), at every
real epsilon, so T rounds are dominated by the pair with sqrt(T) times the shift, adaptive choices of points included.
Cut-offs and rounding failures add up, and so do distances.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.gaussian import GaussianPair, gaussian_delta, gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import InfeasibleError
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.stages import GradientSum
from shuffledp.privacy import Privacy
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.base import VectorSumPlan

# What is not noise may take this part of delta.
_BESIDE_NOISE = 0.06
_MOST_TRIES = 40


@dataclass(frozen=True, slots=True)
class RepeatedSum:
    """One plan, so many rounds of the same users."""

    plan: GradientSum
    rounds: int

    def pair(self, honest: int) -> DominatingPair:
        """The pair that dominates all rounds' views together."""
        if self.rounds == 1:
            return self.plan.pair(honest)
        once = self.plan.gaussian(honest)
        return GaussianPair(math.sqrt(self.rounds) * once.shift) if isinstance(once, GaussianPair) else once

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta of all rounds together.

        >>> from shuffledp import Privacy
        >>> plan = VectorSum.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=3, radius=1)
        >>> RepeatedSum(plan, 1).delta_terms(1.0, 1000) == plan.delta_terms(1.0, 1000)
        True
        """
        if self.rounds == 1:
            return self.plan.delta_terms(epsilon, honest)
        words = f"the curve of the Gaussian pair that dominates {self.rounds:,} rounds"
        return tuple(
            DeltaTerm("noise", self.pair(honest).delta(epsilon), words)
            if term.name == "noise"
            else replace(term, value=self.rounds * term.value, why=f"{self.rounds:,} rounds: {term.why}")
            for term in self.plan.repeated_terms(epsilon, honest)
        )

    def delta(self, epsilon: float, honest: int) -> float:
        """All of delta."""
        return sum(term.value for term in self.delta_terms(epsilon, honest))


def plan_sum(problem: Problem, users: int, rounds: int) -> VectorSumPlan | None:
    """The plan of one round of a cohort that is asked so many times; None where nothing is private."""
    if problem.privacy is None:
        return None
    asked = ("honest_fraction", "method", "max_messages")
    limits = {name: getattr(problem, name) for name in asked}
    return plan_repeated(users, problem.privacy, problem.dimension, problem.lipschitz, rounds, **limits)


@lru_cache(maxsize=128)
def plan_repeated(
    users: int, privacy: Privacy, dimension: int, radius: float, rounds: int, *, method: str, **limits: Any
) -> VectorSumPlan:
    """The plan of one round's sum of vectors, so that all rounds that the same users join satisfy `privacy` together.

    Args:
        users: how many join a round.
        privacy: what holds for a user over all of its rounds.
        dimension: numbers of a vector.
        radius: no vector is longer.
        rounds: how many rounds a user joins at most.
        method: the method of the sum; "auto" takes the best.
        **limits: honest_fraction and max_messages.
    """

    def one_round(target: Privacy) -> VectorSumPlan:
        asked = {"users": users, "privacy": target, "dimension": dimension, "radius": radius, **limits}
        if method == "auto" and rounds > 1 and limits["max_messages"] is None:
            # Wide noise takes seconds to plan, and shares are the better for it wherever they can be had.
            with suppress(InfeasibleError):
                return VectorSum.plan(method="shares", **asked)
        return VectorSum.plan(method=method, **asked)

    if rounds == 1:
        return one_round(privacy)
    part = privacy.delta / rounds
    shift = _shift(privacy, (1 - _BESIDE_NOISE) * privacy.delta, rounds)
    for _ in range(_MOST_TRIES):
        target = _target(shift, part)
        if target is None:
            part /= 8
            continue
        plan = one_round(target)
        whole = RepeatedSum(plan, rounds)
        if whole.delta(privacy.epsilon, plan.honest_users) <= privacy.delta:
            return plan
        terms = whole.delta_terms(privacy.epsilon, plan.honest_users)
        beside = sum(term.value for term in terms if term.name != "noise")
        if beside > _BESIDE_NOISE * privacy.delta:
            part *= 0.9 * _BESIDE_NOISE * privacy.delta / beside
            continue
        pair = plan.gaussian(plan.honest_users)
        allowed = _shift(privacy, privacy.delta - beside, rounds)
        found = pair.shift if isinstance(pair, GaussianPair) else 2 * allowed
        shift *= min(allowed / found, 1.0) * (1 - 1e-6)
    raise InfeasibleError("rounds", rounds, "are too many for this epsilon and delta", "allow fewer")


def _shift(privacy: Privacy, delta: float, rounds: int) -> float:
    """One round's shift with which all rounds' noise leaves this delta."""
    return 1 / gaussian_standard_deviation(Privacy(privacy.epsilon, delta * (1 - 1e-9))) / math.sqrt(rounds)


def _target(shift: float, part: float) -> Privacy | None:
    """What one round with this shift satisfies at its part of delta; None where it needs no epsilon."""
    if gaussian_delta(1e-9, 1.0, shift) <= part:
        return None
    epsilon = smallest_real(lambda eps: gaussian_delta(eps, 1.0, shift) <= 0.955 * part, 1e-9, 1.0)
    return Privacy(epsilon, part)
