"""Vector sums that the same users join, one or several times each: plans of one round, calibrated for all together.

Each round's view is dominated by one Gaussian pair whatever was released before (docs/theory/vector-sums.md), at every
real epsilon, so rounds are dominated by the pair whose squared shift is the sum of theirs, adaptive choices of points
included. Cut-offs and rounding failures add up, and so do distances.
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.gaussian import GaussianPair, gaussian_delta, gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.stages import GradientSum
from shuffledp.privacy import LARGEST_EPSILON, Privacy
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.base import VectorSumPlan

# What is not noise may take this part of delta.
_BESIDE_NOISE = 0.06
_MOST_TRIES = 40


@dataclass(frozen=True, slots=True)
class RepeatedSum:
    """One plan, so many rounds of the same users; and `others`, other sums that they join besides.

    Attributes:
        plan: of one round.
        rounds: how many the same users are in.
        others: other sums that they join besides.
    """

    plan: GradientSum
    rounds: int
    others: "tuple[RepeatedSum, ...]" = ()

    @property
    def _all_rounds(self) -> int:
        return sum(sums.rounds for sums in self._all())

    def _all(self) -> "Iterator[RepeatedSum]":
        if self.rounds < 0:
            raise ParameterError("rounds", self.rounds, "must be a whole number >= 0", "plan it again")
        # One that is never joined shows nothing, and must not stand for the one that is.
        if self.rounds:
            yield self
        for other in self.others:
            yield from other._all()

    def pair(self, honest: int) -> DominatingPair:
        """The pair that dominates all rounds' views together."""
        if self._all_rounds == 1:
            (only,) = self._all()
            return only.plan.pair(honest)
        squares = 0.0
        for sums in self._all():
            once = sums.plan.gaussian(honest)
            if not isinstance(once, GaussianPair):
                return once
            squares += sums.rounds * once.shift**2
        return GaussianPair(math.sqrt(squares))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta of all rounds together.

        >>> from shuffledp import Privacy
        >>> plan = VectorSum.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=3, radius=1)
        >>> RepeatedSum(plan, 1).delta_terms(1.0, 1000) == plan.delta_terms(1.0, 1000)
        True
        """
        rounds = self._all_rounds
        if rounds == 1:
            (only,) = self._all()
            return only.plan.delta_terms(epsilon, honest)
        words = f"the curve of the Gaussian pair that dominates {rounds:,} rounds"
        noise = DeltaTerm("noise", self.pair(honest).delta(epsilon), words)
        return (noise, *(term for sums in self._all() for term in sums._beside_noise(epsilon, honest)))

    def _beside_noise(self, epsilon: float, honest: int) -> Iterator[DeltaTerm]:
        """What this sum's rounds add to delta beside the noise's part."""
        for term in self.plan.repeated_terms(epsilon, honest):
            if term.name != "noise":
                yield replace(term, value=self.rounds * term.value, why=f"{self.rounds:,} rounds: {term.why}")

    def delta(self, epsilon: float, honest: int) -> float:
        """All of delta."""
        return sum(term.value for term in self.delta_terms(epsilon, honest))


@dataclass(frozen=True, slots=True)
class AskedSum:
    """A sum that is to be planned: its vectors, how often its users join it, and its part of all squared shifts."""

    dimension: int
    radius: float
    rounds: int
    part: float = 1.0

    @property
    def shift(self) -> float:
        """One round's shift, as a part of that of all sums together."""
        return math.sqrt(self.part) / math.sqrt(self.rounds)


def plan_sum(problem: Problem, users: int, rounds: int) -> VectorSumPlan | None:
    """The plan of one round of a cohort that is asked so many times; None where nothing is private.

    Args:
        problem: what is minimized, by whom, and how privately.
        users: how many are in the cohort.
        rounds: how many times each is asked.

    Returns:
        The plan whose noise is enough for all rounds together.
    """
    plans = plan_sums(problem, users, (AskedSum(problem.dimension, problem.lipschitz, rounds),))
    return None if plans is None else plans[0]


def plan_sums(problem: Problem, users: int, asked: tuple[AskedSum, ...]) -> tuple[VectorSumPlan, ...] | None:
    """The plans of one round each of sums that the same users join; None where nothing is private."""
    if problem.privacy is None:
        return None
    names = ("honest_fraction", "method", "max_messages")
    return plan_together(users, problem.privacy, asked, **{name: getattr(problem, name) for name in names})


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
    return plan_together(users, privacy, (AskedSum(dimension, radius, rounds),), method=method, **limits)[0]


@lru_cache(maxsize=128)
def plan_together(
    users: int, privacy: Privacy, asked: tuple[AskedSum, ...], *, method: str, **limits: Any
) -> tuple[VectorSumPlan, ...]:
    """The plans of one round each of several sums, so that all rounds of all of them satisfy `privacy` together.

    Args:
        users: how many join every round: the same people.
        privacy: what holds for a user over all of its rounds.
        asked: the sums, whose parts of the squared shift add up to 1.
        method: the method of the sums; "auto" takes the best.
        **limits: honest_fraction and max_messages.

    Raises:
        InfeasibleError: no noise is known with which so many rounds satisfy it.

    >>> sums = (AskedSum(6, 1.0, 1, 0.2), AskedSum(3, 1.0, 10, 0.8))
    >>> limits = {"method": "auto", "honest_fraction": 1.0, "max_messages": None}
    >>> once, often = plan_together(1000, Privacy(1, 1e-6), sums, **limits)
    >>> round(often.standard_error / once.standard_error, 2)  # sqrt(10 * 0.2 / 0.8)
    1.58
    >>> RepeatedSum(often, 10, (RepeatedSum(once, 1),)).delta(1.0, 1000) <= 1e-6
    True
    """
    rounds = sum(one.rounds for one in asked)

    def one_round(one: AskedSum, target: Privacy) -> VectorSumPlan:
        domain = {"dimension": one.dimension, "radius": one.radius}
        wanted = {"users": users, "privacy": target, **domain, **limits}
        if method == "auto" and rounds > 1 and limits["max_messages"] is None:
            # Wide noise takes seconds to plan, and shares are the better for it wherever they can be had.
            with suppress(InfeasibleError):
                return VectorSum.plan(method="shares", **wanted)
        return VectorSum.plan(method=method, **wanted)

    if rounds == 1:
        return (one_round(asked[0], privacy),)
    part = privacy.delta / rounds
    shift = _shift(privacy, (1 - _BESIDE_NOISE) * privacy.delta)
    for _ in range(_MOST_TRIES):
        targets = [_target(shift * one.shift, part) for one in asked]
        plans = tuple(one_round(one, target) for one, target in zip(asked, targets, strict=True) if target is not None)
        if len(plans) < len(asked):
            part /= 8
            continue
        whole = _together(plans, asked)
        honest = plans[0].honest_users
        terms = whole.delta_terms(privacy.epsilon, honest)
        if sum(term.value for term in terms) <= privacy.delta:
            return plans
        beside = sum(term.value for term in terms if term.name != "noise")
        if beside > _BESIDE_NOISE * privacy.delta:
            part *= 0.9 * _BESIDE_NOISE * privacy.delta / beside
            continue
        allowed, pair = _shift(privacy, privacy.delta - beside), whole.pair(honest)
        found = pair.shift if isinstance(pair, GaussianPair) else 2 * allowed
        shift *= min(allowed / found, 1.0) * (1 - 1e-6)
    raise InfeasibleError("rounds", rounds, "are too many for this epsilon and delta", "allow fewer")


def _together(plans: tuple[VectorSumPlan, ...], asked: tuple[AskedSum, ...]) -> RepeatedSum:
    first, *others = (RepeatedSum(plan, one.rounds) for plan, one in zip(plans, asked, strict=True))
    return replace(first, others=tuple(others))


def _shift(privacy: Privacy, delta: float) -> float:
    """The shift of all rounds together with which their noise leaves this delta."""
    return 1 / gaussian_standard_deviation(Privacy(privacy.epsilon, delta * (1 - 1e-9)))


def _target(shift: float, part: float) -> Privacy | None:
    """What one round with this shift satisfies at its part of delta; None where it needs no epsilon."""
    if gaussian_delta(1e-9, 1.0, shift) <= part:
        return None
    epsilon = smallest_meeting(lambda eps: gaussian_delta(eps, 1.0, shift), 0.955 * part, 1e-9, 1.0)
    # Beyond the largest epsilon one round's noise is more than it needs, which harms nobody.
    return Privacy(min(epsilon, LARGEST_EPSILON), part)
