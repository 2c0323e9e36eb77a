"""What a policy would have earned: estimates from logged rounds whose arms were chosen with known probabilities.

Rejection sampling (Li et al. 2011) keeps the rounds in which the policy agrees with the log, each with a probability
that makes all agreements equally likely: an honest sample of the policy's own rewards, also for policies that learn, as
long as no arm's probability was ever below the `smallest` that is named. Inverse propensities (Horvitz, Thompson 1952)
use every round of a policy that is fixed beforehand. Both are for data that may be seen: logs are not private.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.spec import as_floats, check_number, check_whole, refuse_first
from shuffledp.randomness import RandomBits
from shuffledp.tables.matrices import read_matrix

Floats = NDArray[np.float64]
Arms = NDArray[np.int64]
Choose = Callable[[Floats], ArrayLike]
"""The arms that a policy takes for contexts, a row each."""

MOST_ARMS = 1_000_000
LEAST_PROPENSITY, LARGEST_REWARD = 1e-9, 1e100
"""Of one round with a smaller probability, or a larger reward, no estimate can be made."""


@dataclass(frozen=True, slots=True)
class ReplayEstimate:
    """A mean reward a round, its standard error, and from how many rounds."""

    method: str
    value: float
    standard_error: float
    rounds: int
    used: int


@dataclass(frozen=True, eq=False)
class LoggedRounds:
    """Contexts, arms 0..arms-1 that were taken, rewards, and the probabilities with which those arms were taken."""

    contexts: Floats
    taken: Arms
    rewards: Floats
    propensities: Floats
    arms: int

    @classmethod
    def of(
        cls, contexts: ArrayLike, taken: ArrayLike, rewards: ArrayLike, propensities: ArrayLike, *, arms: int
    ) -> "LoggedRounds":
        """Checked; an error names the first bad row.

        >>> LoggedRounds.of([[0.1], [0.2]], [0, 2], [1, 0], [0.5, 0.5], arms=2)
        Traceback (most recent call last):
            ...
        shuffledp.errors.DataError: arm must be one of 0..1, got 2 in row 2: name the number of arms, or mend the log.
        """
        arms = check_whole("arms", arms, 1, MOST_ARMS, "count the arms")
        named = {"arm": taken, "reward": rewards, "propensity": propensities}
        columns = [as_floats(name, column) for name, column in named.items()]
        rows = as_floats("context", contexts)
        if rows.ndim != 2 or not all(column.shape == rows.shape[:1] for column in columns) or not len(rows):
            shapes = ", ".join(str(column.shape) for column in (rows, *columns))
            raise DataError("log", f"shapes {shapes}", "must have as many of each as rounds", "pass a row a round")
        arm, reward, propensity = columns
        unknown = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if unknown.size:
            where = f"a number in row {int(unknown[0]) + 1} that is not"
            raise DataError("context", where, "must be finite", "leave that round out")
        known = (arm >= 0) & (arm < arms) & (arm == np.floor(arm))
        wanted = f"must be one of 0..{arms - 1}"
        refuse_first("arm", arm, ~known, wanted, "name the number of arms, or mend the log")
        small = np.abs(reward) <= LARGEST_REWARD
        refuse_first("reward", reward, ~small, "must be finite, and no larger than 1e+100", "mend the log")
        likely = (propensity >= LEAST_PROPENSITY) & (propensity <= 1)
        limits = f"must lie in [{LEAST_PROPENSITY:g}, 1]"
        refuse_first("propensity", propensity, ~likely, limits, "mend the log")
        return cls(rows, arm.astype(np.int64), reward, propensity, arms)

    @classmethod
    def read(
        cls,
        path: Path,
        features: Sequence[str],
        *,
        arms: int,
        arm: str = "arm",
        reward: str = "reward",
        propensity: str = "propensity",
    ) -> "LoggedRounds":
        """From a CSV or Parquet file with a column for each feature, one for arms, rewards and propensities."""
        table = read_matrix(path, [*features, arm, reward, propensity])
        size = len(features)
        return cls.of(table[:, :size], table[:, size], table[:, size + 1], table[:, size + 2], arms=arms)

    def by_rejection(
        self,
        choose: Choose,
        *,
        bits: RandomBits,
        smallest: float,
        learn: Callable[..., Any] | None = None,
    ) -> ReplayEstimate:
        """Of the rounds in which the policy takes the logged arm, those that a coin keeps.

        `smallest` is the least probability that any arm ever had while the log was written. The least that is seen in
        the log is no substitute: where a rare arm happens not to have been taken it is larger, common arms are kept
        too often, and the estimate leans towards them.
        A policy that learns is asked round by round, and `learn(context, arm, reward)` is called for each kept one.
        """
        seen = float(self.propensities.min())
        least = check_number("smallest", smallest, LEAST_PROPENSITY, seen, "name the least that any arm ever had")
        coins = bits.words(len(self.taken)) >> np.uint64(11)
        # P[agree and kept] = propensity * least / propensity, whatever the arm: kept rounds are the policy's own.
        kept = coins.astype(np.float64) * 2.0**-53 < least / self.propensities
        if learn is None:
            kept &= self._chosen(choose, self.contexts) == self.taken
        else:
            for row in range(len(self.taken)):
                if kept[row]:
                    agrees = int(self._chosen(choose, self.contexts[row : row + 1])[0]) == self.taken[row]
                    kept[row] = agrees
                    if agrees:
                        learn(self.contexts[row], int(self.taken[row]), float(self.rewards[row]))
        return self._estimate("rejection", self.rewards[kept])

    def by_inverse_propensity(self, choose: Choose, *, normalized: bool = False) -> ReplayEstimate:
        """Every agreement counts as 1/propensity rounds.

        `normalized` divides by the sum of these numbers, for less variance and a small bias.
        """
        agree = self._chosen(choose, self.contexts) == self.taken
        weights = np.where(agree, 1 / self.propensities, 0.0)
        if not normalized:
            return self._estimate("inverse propensity", weights * self.rewards, int(agree.sum()))
        if not agree.any():
            raise DataError("log", "none", "must have a round in which the policy agrees", "log more rounds")
        value = float(weights @ self.rewards / weights.sum())
        # By linearization: the ratio's error is the mean of weight * (reward - value), over the mean weight.
        errors = weights * (self.rewards - value) / weights.mean()
        error = _mean_error(errors) if len(errors) > 1 else 0.0
        return ReplayEstimate("normalized inverse propensity", value, error, len(agree), int(agree.sum()))

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

    def _estimate(self, method: str, rewards: Floats, used: int | None = None) -> ReplayEstimate:
        count = len(rewards)
        if count < 2:
            raise DataError("log", f"{count} rounds", "must agree with the policy in two rounds", "log more rounds")
        kept = count if used is None else used
        return ReplayEstimate(method, float(rewards.mean()), _mean_error(rewards), len(self.taken), kept)


def _mean_error(numbers: Floats) -> float:
    """The standard error of their mean."""
    return float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
