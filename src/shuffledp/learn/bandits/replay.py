"""What a policy would have earned: estimates from logged rounds whose arms were chosen with known probabilities.

Rejection sampling (Li et al. 2011) keeps the rounds in which the policy agrees with the log, each with a probability
that makes all agreements equally likely: an honest sample of the policy's own rewards, also for policies that learn, as
long as no arm's probability was ever below the `smallest` that is named. Inverse propensities (Horvitz, Thompson 1952)
use every round of a policy that is fixed beforehand; the doubly robust estimate (Dudik, Langford, Li 2011) takes off
them what a model explains, and the direct method believes the model. All are for data that may be seen: logs are not
private. Every estimate has an interval that holds at every size (`intervals`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.continual.request import check_confidence
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.intervals import betting_lower_end, changing_interval, clopper_pearson
from shuffledp.learn.bandits.logged import LEAST_PROPENSITY, Arms, Floats, LoggedData
from shuffledp.learn.bandits.reward_models import direct_value, ridge_lines, with_one
from shuffledp.learn.spec import check_number
from shuffledp.randomness import RandomBits

Choose = Callable[[Floats], ArrayLike]
"""The arms that a policy takes for contexts, a row each."""

CONFIDENCE = 0.95
# A model of rewards is fitted to the rounds before each of so many pieces of the log.
_PIECES = 8
# What an interval rests on.
_PROPENSITIES = "propensities are right, and contexts independent draws of one law"
_LINES = f"{_PROPENSITIES}; every arm's mean reward is a straight line in the context"
_THIS_RUN = "propensities are right; it is for what the arms that this run took paid on average"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEstimate:
    """A mean reward a round, with an interval that misses with probability 1 - confidence at most.

    The standard error is that of the sample, or a quarter of the interval where all of a sample is alike, which says
    nothing of its error.
    """

    method: str
    value: float
    standard_error: float
    low: float
    high: float
    confidence: float
    rounds: int
    used: int
    assumes: str

    def __str__(self) -> str:
        return f"{self.value:.4g} in [{self.low:.4g}, {self.high:.4g}]"


@dataclass(frozen=True, eq=False)
class LoggedRounds(LoggedData):
    """Logged rounds, and what another policy would have earned in them.

    >>> import numpy as np
    >>> log = LoggedRounds.of(np.zeros((57, 1)), np.zeros(57, int), np.zeros(57), np.ones(57), arms=2)
    >>> estimate = log.by_rejection(lambda rows: np.zeros(len(rows), int), bits=RandomBits.seeded(1), smallest=1.0)
    >>> print(estimate, "from", estimate.used, "rounds")
    0 in [0, 0.06267] from 57 rounds
    """

    def by_rejection(
        self,
        choose: Choose,
        *,
        bits: RandomBits,
        smallest: float,
        learn: Callable[..., Any] | None = None,
        confidence: float = CONFIDENCE,
    ) -> ReplayEstimate:
        """The policy's value from the rounds in which it takes the logged arm and a coin keeps them.

        Args:
            choose: the policy.
            bits: where coins come from.
            smallest: the least probability that any arm ever had while the log was written. The least that is seen in
                the log is no substitute: where a rare arm happens not to have been taken it is larger, common arms are
                kept too often, and the estimate leans towards them.
            learn: of a policy that learns, called as learn(context, arm, reward) for each kept round; it is then asked
                round by round. The interval is for the mean reward that the arms of this run had, as it was taken.
            confidence: of the interval.

        Raises:
            DataError: fewer than two rounds are kept.
        """
        kept = self.fair_rounds(bits=bits, smallest=smallest)
        if learn is None:
            kept &= self._chosen(choose, self.contexts) == self.taken
        else:
            for row in np.flatnonzero(kept).tolist():
                agrees = int(self._chosen(choose, self.contexts[row : row + 1])[0]) == self.taken[row]
                kept[row] = agrees
                if agrees:
                    learn(self.contexts[row], int(self.taken[row]), float(self.rewards[row]))
        return self.mean_of_kept(self.rewards[kept], learns=learn is not None, confidence=confidence)

    def fair_rounds(self, *, bits: RandomBits, smallest: float) -> Any:
        """Whether each round is kept if a policy agrees with it: then every policy agrees with equally many.

        P[agree and kept] = propensity * smallest / propensity, whatever the arm: kept rounds are the policy's own.
        """
        least = self._checked_smallest(smallest)
        coins = bits.words(self.rounds) >> np.uint64(11)
        return coins.astype(np.float64) * 2.0**-53 < least / self.propensities

    def mean_of_kept(self, rewards: Floats, *, learns: bool, confidence: float = CONFIDENCE) -> ReplayEstimate:
        """The mean of rewards that rejection kept, in the order in which they came.

        Args:
            rewards: of the kept rounds.
            learns: whether the policy changed with what it was told.
            confidence: of the interval.
        """
        count = len(rewards)
        if count < 2:
            raise DataError("log", f"{count} rounds", "must agree with the policy in two rounds", "log more rounds")
        failure, scaled = _failure(confidence), (rewards - self.lowest) / self.span
        if learns:
            ends = changing_interval(float(scaled.sum()), count, failure)
        elif np.isin(scaled, (0.0, 1.0)).all():
            ends = clopper_pearson(round(float(scaled.sum())), count, failure)
        else:
            ends = _between(scaled, 1 - scaled, failure)
        low, high = (self.lowest + self.span * end for end in ends)
        rests = _THIS_RUN if learns else _PROPENSITIES
        return self._told("rejection", float(rewards.mean()), rewards, (low, high), count, confidence, rests)

    def by_inverse_propensity(
        self,
        choose: Choose,
        *,
        normalized: bool = False,
        smallest: float | None = None,
        confidence: float = CONFIDENCE,
    ) -> ReplayEstimate:
        """Every agreement counts as 1/propensity rounds.

        Args:
            choose: the policy, fixed beforehand.
            normalized: divide by the sum of these numbers, for less variance and a small bias.
            smallest: the least probability that any arm ever had, for an interval that is mostly shorter, above all
                where rewards are rare.
            confidence: of the interval.

        Raises:
            DataError: the policy agrees with no round.
        """
        agree = self._agreements(choose)
        weights = np.where(agree, 1 / self.propensities, 0.0)
        heaviest = None if smallest is None else 1 / self._checked_smallest(smallest)
        low, high = (self.lowest + end for end in self._weighed_ends(weights, heaviest, normalized, confidence))
        used = int(agree.sum())
        if not normalized:
            name, each = "inverse propensity", weights * self.rewards
            return self._told(name, float(each.mean()), each, (low, high), used, confidence, _PROPENSITIES)
        value = float(weights @ self.rewards / weights.sum())
        # By linearization: the ratio's error is the mean of weight * (reward - value), over the mean weight.
        errors = weights * (self.rewards - value) / weights.mean()
        name = "normalized inverse propensity"
        return self._told(name, value, errors, (low, high), used, confidence, _PROPENSITIES)

    def _weighed_ends(
        self, weights: Floats, heaviest: float | None, normalized: bool, confidence: float
    ) -> tuple[float, float]:
        """The ends of the interval by inverse propensities, above the lowest reward."""
        # Weights have mean 1, so that those of what rewards lack say how far the value is below the highest.
        above, below = weights * (self.rewards - self.lowest), weights * (self.highest - self.rewards)
        failure = _failure(confidence)
        if heaviest is None:
            return _between(above, below, failure, most=self.span)
        if normalized:
            return _between(above, below, failure, most=self.span, weights=weights, heaviest=heaviest)
        low = betting_lower_end(above, most=self.span, failure=failure / 2)
        # And the value is below the largest number there can be, which says more where rewards are rare.
        furthest = heaviest * self.span
        lack = betting_lower_end(below, most=self.span, failure=failure / 4)
        beyond = betting_lower_end(furthest - above, most=furthest, failure=failure / 4)
        return low, min(self.span - lack, furthest - beyond)

    def by_doubly_robust(self, choose: Choose, *, smallest: float, confidence: float = CONFIDENCE) -> ReplayEstimate:
        """What a line for each arm says of the policy's arms, plus inverse propensities of what it does not explain.

        Every piece of the log is explained by lines through the rounds before it, so that the interval holds however
        wrong the lines are; the better they are, the shorter it is.

        Args:
            choose: the policy, fixed beforehand.
            smallest: the least probability that any arm ever had.
            confidence: of the interval.
        """
        heaviest = 1 / self._checked_smallest(smallest)
        agree = self._agreements(choose)
        chosen, rows = self._chosen(choose, self.contexts), with_one(self.contexts)
        explained = np.full(self.rounds, (self.lowest + self.highest) / 2)
        ends = np.unique(np.geomspace(max(1, self.rounds >> _PIECES), self.rounds, _PIECES + 1).astype(np.int64))
        for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            lines = ridge_lines(self.contexts[:first], self.taken[:first], self.rewards[:first], self.arms)
            explained[first:last] = np.einsum("nd,nd->n", rows[first:last], lines[chosen[first:last]])
        explained = np.clip(explained, self.lowest, self.highest)
        each = explained + np.where(agree, (self.rewards - explained) / self.propensities, 0.0)
        # A reward at one end that was expected at the other, with the largest weight, is the furthest.
        beyond = (heaviest - 1) * self.span
        above, below = each - (self.lowest - beyond), (self.highest + beyond) - each
        failure = _failure(confidence)
        low, high = _between(above, below, failure, most=self.span + 2 * beyond)
        low, high = self.lowest - beyond + low, self.lowest - beyond + high
        name, used = "doubly robust", int(agree.sum())
        return self._told(name, float(each.mean()), each, (low, high), used, confidence, _PROPENSITIES)

    def by_direct_method(self, choose: Choose, *, confidence: float = CONFIDENCE) -> ReplayEstimate:
        """What a line for each arm, fitted to that arm's rewards, says of the arms that the policy takes.

        Its interval is for lines that are right: where rewards are no straight lines in the context, it is around
        another number than the policy's value, and no more rounds mend that. The doubly robust one needs no such faith.

        Args:
            choose: the policy, fixed beforehand.
            confidence: of the interval.

        Raises:
            DataError: an arm that the policy takes was logged too rarely to fit its line.
        """
        chosen = self._chosen(choose, self.contexts)
        found = direct_value(self.contexts, self.taken, self.rewards, chosen)
        reach = found.reach(self.span, self.rounds, _failure(confidence))
        ends, used = (found.value - reach, found.value + reach), int(np.isin(self.taken, np.unique(chosen)).sum())
        error = self.span / 2 * math.hypot(found.length, 1 / math.sqrt(self.rounds))
        return self._told("direct method", found.value, error, ends, used, confidence, _LINES)

    def _agreements(self, choose: Choose) -> Any:
        agree = self._chosen(choose, self.contexts) == self.taken
        if not agree.any():
            raise DataError("log", "none", "must have a round in which the policy agrees", "log more rounds")
        return agree

    def _checked_smallest(self, smallest: float) -> float:
        seen = float(self.propensities.min())
        return check_number("smallest", smallest, LEAST_PROPENSITY, seen, "name the least that any arm ever had")

    def _chosen(self, choose: Choose, contexts: Floats) -> Arms:
        chosen = np.asarray(choose(contexts))
        if chosen.shape != contexts.shape[:1] or chosen.dtype.kind not in "iu":
            raise ParameterError(
                "choose", f"shape {chosen.shape}", "must give one arm a context", "return whole numbers"
            )
        bad = np.flatnonzero((chosen < 0) | (chosen >= self.arms))
        if bad.size:
            raise ParameterError(
                "choose", int(chosen[bad[0]]), f"must give arms 0..{self.arms - 1}", "check the policy"
            )
        return chosen.astype(np.int64)

    def _told(
        self,
        method: str,
        value: float,
        sample: Floats | float,
        ends: tuple[float, float],
        used: int,
        confidence: float,
        assumes: str,
    ) -> ReplayEstimate:
        """The estimate, its interval cut to the rewards' range and around it; `sample` has its error, or is it."""
        inside = min(max(value, self.lowest), self.highest)
        low, high = max(min(ends[0], inside), self.lowest), min(max(ends[1], inside), self.highest)
        error = sample if isinstance(sample, float) else float(sample.std(ddof=1)) / math.sqrt(len(sample))
        return ReplayEstimate(
            method=method,
            value=value,
            standard_error=error if error > 0 else (high - low) / 4,
            low=low,
            high=high,
            confidence=confidence,
            rounds=self.rounds,
            used=used,
            assumes=assumes,
        )


def _failure(confidence: float) -> float:
    check_confidence(confidence)
    return 1 - confidence


def _between(above: Floats, below: Floats, failure: float, *, most: float = 1.0, **weighed: Any) -> tuple[float, float]:
    """An interval for the mean of numbers, from what they are above the lowest and below the highest, `most` apart."""
    low, lack = (betting_lower_end(x, most=most, failure=failure / 2, **weighed) for x in (above, below))
    return low, most - lack
