"""What a population was asked, and what all of it together costs.

One user may have taken part in everything, so the user's answers to all questions are replaced at once,
and what was asked composes. Why `Spending.delta` is an upper bound:

1. Adaptive composition (Zhu, Dong, Wang 2022, Thm 10): if question i is dominated by (P_i, Q_i) whatever
   was answered before, the product of the pairs dominates everything together. The noise of a question
   must not depend on earlier answers; which question it is, and whom it asks, may.
2. Orders. Replaced answers may rise in one question and fall in the next, so that the shifts have not one
   sign. Each pair is therefore taken as `EitherOrder`, the larger of its two directions at every epsilon;
   its two directions are equal, and `Composition`, which takes the worse of both, is exact for them. For
   symmetric noise this changes nothing; for rare coins it costs less than a hundredth of epsilon.
3. Delta outside the pair. Views P, Q within a distance d of views P', Q' that the pair dominates: let
   f = min(1, Q/Q') and G = f min(P, P'). Then G <= f P' and Q >= f Q', so that G and Q are no easier to
   tell apart than P' and Q', also inside a product; and P - G has mass at most
   d + sum P' (1 - f) <= d + e^eps d + H_eps(P'||Q') for any eps. So (1 + e^eps) d adds up, at each
   question's own epsilon, where the pair is pure at that epsilon; else the pair's own delta there, too.
4. Sums: epsilons and deltas of the claims add up. Where that is smaller (a few pure questions, whose
   exact composition is off by its rounding) it is taken, as every bound is an upper one. The decimals of
   the claims are added exactly: three questions of 0.1 spend 0.3.

One question by itself has the curve of its pair, without the composition's grid: a plan for exactly the
budget is within it.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from functools import cached_property

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.recorded import pair_document
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.worst_case import ClaimPair, EitherOrder
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy

# A pair's curve may be evaluated on another machine than the one that claimed it.
_ROUNDING = 1e-9
# What a further question may spend is searched in this many steps of the budget, and rounded down.
_STEPS = 128
_SHORT = Context(prec=3, rounding=ROUND_DOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One question that was put to a population: when, which plan, and what it may cost a user.

    `pair` is a shift of one of the laws in `laws`, and `extra_delta` what has to be added to its delta (see
    the module, point 3). Any other pair cannot be written down, and the entry keeps the bare claim.

    Attributes:
        time: when it was asked, in ISO form with a time zone.
        fingerprint: of the plan that was run.
        users: how many people it was planned for.
        description: the question in words.
        claim: the plan's (epsilon, delta).
        pair: what is composed; the bare claim as a pair where the plan's own cannot be written down.
        extra_delta: what is added to the pair's delta: transport, rounding and other failures.

    >>> entry = Entry.of_claim(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=100,
    ...                        description="how many", claim=Privacy(0.5, 1e-7))
    >>> entry.pair.describe()
    'any mechanism that is private for epsilon 0.5 and delta 1e-07'
    """

    time: str
    fingerprint: str
    users: int
    description: str
    claim: Privacy
    pair: DominatingPair
    extra_delta: float = 0.0

    @classmethod
    def of_claim(cls, *, time: str, fingerprint: str, users: int, description: str, claim: Privacy) -> "Entry":
        """An entry of which nothing but the claim is used."""
        return cls(
            time=time,
            fingerprint=fingerprint,
            users=users,
            description=description,
            claim=claim,
            pair=ClaimPair(claim),
        )

    def claim_only(self) -> "Entry":
        """Nothing but the claim of this question."""
        return replace(self, pair=ClaimPair(self.claim), extra_delta=0.0)

    def __post_init__(self) -> None:
        if pair_document(self.pair) is None:
            object.__setattr__(self, "pair", ClaimPair(self.claim))
            object.__setattr__(self, "extra_delta", 0.0)
        if not _is_utc(self.time):
            raise ParameterError("time", self.time, "must be ISO-8601 in UTC", "such as 2026-01-31T12:00:00Z")
        if not isinstance(self.fingerprint, str) or not re.fullmatch("[0-9a-f]{64}", self.fingerprint):
            raise ParameterError("fingerprint", self.fingerprint, "must be 64 hex digits", "pass the plan's own")
        if isinstance(self.users, bool) or not isinstance(self.users, int) or self.users < 1:
            raise ParameterError("users", self.users, "must be a whole number >= 1", "pass the plan's own")
        if not isinstance(self.description, str):
            raise ParameterError("description", self.description, "must be text", "say what was asked")
        if isinstance(self.extra_delta, bool) or not isinstance(self.extra_delta, int | float):
            raise ParameterError("extra_delta", self.extra_delta, "must be a number", "0 where nothing is added")
        if not 0 <= self.extra_delta <= self.claim.delta:
            raise ParameterError(
                "extra_delta",
                self.extra_delta,
                f"must lie between 0 and the claim's delta {self.claim.delta:g}",
                "it is a part of what was claimed",
            )
        claimed = self.pair.delta(self.claim.epsilon)
        if claimed > self.claim.delta * (1 + _ROUNDING):
            raise ParameterError(
                "delta",
                self.claim.delta,
                f"must be at least the pair's own {claimed:.3g} at epsilon {self.claim.epsilon:g}",
                "claim what is proved",
            )


def _is_utc(time: object) -> bool:
    if not isinstance(time, str):
        return False
    try:
        return datetime.fromisoformat(time).utcoffset() == timedelta(0)
    except ValueError:
        return False


@dataclass(frozen=True)
class Spending:
    """Everything a population was asked, as one curve.

    >>> from shuffledp.accounting.laws import Binomial
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> coins = Entry(time="2026-01-31T12:00:00Z", fingerprint="0" * 64, users=300, description="how many",
    ...               claim=Privacy(0.5, 1e-6), pair=ShiftPair(Binomial(300, 0.5)))
    >>> [round(Spending([coins] * times).epsilon(1e-6), 3) for times in (1, 2, 4)]
    [0.469, 0.676, 0.977]
    """

    entries: Sequence[Entry]

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon that is proved of everything together, rounded up."""
        if not self.entries:
            return 0.0
        exact = min(1.0, self._curve_delta(epsilon) + self.extra_delta)
        return min(exact, float(self._delta_sum)) if _decimal(epsilon) >= self._epsilon_sum else exact

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta that is proved of everything together; infinite if none."""
        if not self.entries:
            return 0.0
        left = delta - self.extra_delta
        exact = self._curve_epsilon(left) if left > 0 else math.inf
        return min(exact, float(self._epsilon_sum)) if self._delta_sum <= _decimal(delta) else exact

    def fits(self, budget: Privacy) -> bool:
        """Whether everything together is private for the budget."""
        if self._delta_sum <= _decimal(budget.delta) and self._epsilon_sum <= _decimal(budget.epsilon):
            return True
        return self.delta(budget.epsilon) <= budget.delta

    @property
    def extra_delta(self) -> float:
        """What is added to the composition of the pairs."""
        return math.fsum(entry.extra_delta for entry in self.entries)

    @cached_property
    def _epsilon_sum(self) -> Fraction:
        return sum((_decimal(entry.claim.epsilon) for entry in self.entries), Fraction(0))

    @cached_property
    def _delta_sum(self) -> Fraction:
        return sum((_decimal(entry.claim.delta) for entry in self.entries), Fraction(0))

    def _curve_delta(self, epsilon: float) -> float:
        return self.entries[0].pair.delta(epsilon) if len(self.entries) == 1 else self._composition.delta(epsilon)

    def _curve_epsilon(self, delta: float) -> float:
        if len(self.entries) == 1:
            return epsilon_at(self.entries[0].pair, delta)
        return self._composition.epsilon(delta)

    @cached_property
    def _composition(self) -> Composition:
        return Composition(grouped(entry.pair for entry in self.entries))


def grouped(pairs: Iterable[DominatingPair]) -> list[tuple[EitherOrder, int]]:
    """Each different pair, in either order, with the number of times that it is there."""
    counts: dict[str, tuple[DominatingPair, int]] = {}
    for each in pairs:
        pair, more = (each.pair, each.times) if isinstance(each, RepeatedPair) else (each, 1)
        name = repr(pair_document(pair))
        first, times = counts.get(name, (pair, 0))
        counts[name] = first, times + more
    return [(EitherOrder(pair), times) for pair, times in counts.values()]


@dataclass(frozen=True, slots=True)
class Left:
    """What a budget still allows.

    `epsilon_spent` is at the budget's delta, `delta_spent` at the budget's epsilon; `epsilon` is the
    budget's less what is spent. `question` is what one more question may claim and is sure to be
    accepted, whatever its noise: half of the delta that is left, and the largest epsilon with it; it is
    None where nothing more can be asked.

    Attributes:
        epsilon_spent: what was spent, at the budget's delta.
        delta_spent: what was spent, at the budget's epsilon.
        epsilon: the budget's epsilon less what is spent.
        question: what one more question may claim; None where nothing more can be asked.

    >>> Left(epsilon_spent=0.4, delta_spent=4e-7, epsilon=0.6, question=Privacy(0.5, 1e-7)).question.epsilon
    0.5
    """

    epsilon_spent: float
    delta_spent: float
    epsilon: float
    question: Privacy | None

    def in_words(self) -> str:
        """One clause for a refusal."""
        if self.question is None:
            return "nothing is left"
        return f"left is a question of epsilon {self.question.epsilon:g} and delta {self.question.delta:g}"


def what_is_left(entries: Sequence[Entry], budget: Privacy) -> Left:
    """What the budget still allows after these entries, by exact composition."""
    if not entries:
        return Left(0.0, 0.0, budget.epsilon, budget)
    epsilon_spent, delta_spent = spent(entries, budget)
    return Left(
        epsilon_spent,
        delta_spent,
        max(0.0, budget.epsilon - epsilon_spent),
        _largest_question(entries, budget, (budget.delta - delta_spent) / 2),
    )


def spent(entries: Sequence[Entry], budget: Privacy) -> tuple[float, float]:
    """Epsilon at the budget's delta, and delta at the budget's epsilon."""
    spending = Spending(entries)
    delta = spending.delta(budget.epsilon)
    epsilon = spending.epsilon(budget.delta)
    # The search for epsilon rounds up; what delta has proved need not be found again.
    return min(epsilon, budget.epsilon) if delta <= budget.delta else epsilon, delta


def _largest_question(entries: Sequence[Entry], budget: Privacy, delta: float) -> Privacy | None:
    """The largest claim with this delta that still fits, in few digits; None where there is none."""
    if _short(delta) <= 0:
        return None

    def claim(steps: int) -> Privacy:
        return Privacy(_short(steps * budget.epsilon / _STEPS), _short(delta))

    def fits(steps: int) -> bool:
        more = Entry.of_claim(
            time=entries[0].time, fingerprint=entries[0].fingerprint, users=1, description="", claim=claim(steps)
        )
        return Spending([*entries, more]).fits(budget)

    low, high = 0, _STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return claim(low) if low else None


def _short(number: float) -> float:
    """Three digits, rounded down: what is printed is what is meant."""
    return float(_SHORT.create_decimal_from_float(number))


def _decimal(number: float) -> Fraction:
    """The decimal that a person wrote: a double misses it by less than its own rounding."""
    return Fraction(repr(float(number)))
