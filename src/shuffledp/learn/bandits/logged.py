"""Rounds of an older policy: contexts, the arms that were taken, rewards, and how likely those arms were."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.spec import as_floats, check_number, check_whole, refuse_first
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.missing import EVERY_ROW
from shuffledp.tables.reading import Reading

Floats = NDArray[np.float64]
Arms = NDArray[np.int64]

MOST_ARMS = 1_000_000
LEAST_PROPENSITY, LARGEST_REWARD = 1e-9, 1e100
"""No estimate can be made of a round with a smaller probability, or a larger reward."""


@dataclass(frozen=True, eq=False)
class LoggedData:
    """Contexts, arms 0..arms-1 that were taken, rewards in [lowest, highest], and propensities.

    A propensity is the probability with which the arm that was taken was taken, given the context and all before it.

    Attributes:
        contexts: a row of features a round.
        taken: the arm that was taken in each round.
        rewards: what it paid.
        propensities: the probability with which it was taken.
        arms: how many arms there are.
        lowest: no reward is smaller.
        highest: no reward is larger.
    """

    contexts: Floats
    taken: Arms
    rewards: Floats
    propensities: Floats
    arms: int
    lowest: float = 0.0
    highest: float = 1.0

    @property
    def rounds(self) -> int:
        """How many rounds were logged."""
        return len(self.taken)

    @property
    def span(self) -> float:
        """The length of the rewards' declared range."""
        return self.highest - self.lowest

    @classmethod
    def of(
        cls,
        contexts: ArrayLike,
        taken: ArrayLike,
        rewards: ArrayLike,
        propensities: ArrayLike,
        *,
        arms: int,
        lowest: float = 0.0,
        highest: float = 1.0,
    ) -> Self:
        """Rounds that are checked.

        Args:
            contexts: a row of numbers a round.
            taken: the arm of each round, from 0.
            rewards: what it paid.
            propensities: the probability with which it was taken.
            arms: how many arms there were to choose among.
            lowest: no reward can be smaller, whatever the log shows: intervals rest on it.
            highest: no reward can be larger.

        Raises:
            DataError: a row is not of this kind; the first one is named.

        >>> LoggedData.of([[0.1], [0.2]], [0, 2], [1, 0], [0.5, 0.5], arms=2)
        Traceback (most recent call last):
            ...
        shuffledp.errors.DataError: arm must be one of 0..1, got something else in row 2: name the number of arms, ...
        """
        arms = check_whole("arms", arms, 1, MOST_ARMS, "count the arms")
        lowest = check_number("lowest", lowest, -LARGEST_REWARD, LARGEST_REWARD, "0 suits clicks")
        highest = check_number("highest", highest, -LARGEST_REWARD, LARGEST_REWARD, "1 suits clicks")
        if not lowest < highest:
            raise ParameterError("highest", highest, f"must be above lowest, {lowest:g}", "declare the rewards' range")
        if propensities is None:
            raise _no_propensities("none")
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
        inside = (reward >= lowest) & (reward <= highest)
        range_words = f"must lie in [{lowest:g}, {highest:g}], the declared range"
        refuse_first("reward", reward, ~inside, range_words, "declare lowest and highest, or mend the log")
        likely = (propensity >= LEAST_PROPENSITY) & (propensity <= 1)
        limits = f"must lie in [{LEAST_PROPENSITY:g}, 1]"
        refuse_first("propensity", propensity, ~likely, limits, "mend the log")
        return cls(rows, arm.astype(np.int64), reward, propensity, arms, lowest, highest)

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
        **declared: Any,
    ) -> Self:
        """Rounds from a CSV or Parquet file with a column for each feature, one for arms, rewards and propensities.

        Args:
            path: the file.
            features: the columns of a context.
            arms: how many arms there were to choose among.
            arm: the column of arms.
            reward: the column of rewards.
            propensity: the column of propensities.
            **declared: the rewards' range, `lowest` and `highest`.

        Raises:
            DataError: a column is missing, or a row is not of this kind.
        """
        names = Reading().open(path).names
        if propensity not in names:
            raise _no_propensities(f"no column {propensity} in {path.name}")
        table = read_rounds(path, [*features, arm, reward, propensity])
        size = len(features)
        columns = (table[:, place] for place in (size, size + 1, size + 2))
        return cls.of(table[:, :size], *columns, arms=arms, **declared)


def read_rounds(path: Path, columns: Sequence[str]) -> Floats:
    """A log's columns as numbers; a round without a value is nobody who could report something else instead.

    Raises:
        DataError: a column is missing, or somebody's value in it.
    """
    try:
        return read_matrix(path, columns)
    except DataError as refused:
        if not refused.problem.endswith(EVERY_ROW):
            raise
        raise DataError("log", refused.value, refused.problem, "leave those rounds out") from None


def _no_propensities(seen: str) -> DataError:
    problem = "must say with which probability each arm was taken"
    return DataError("propensity", seen, problem, "log it when choosing: nothing can be estimated without")
