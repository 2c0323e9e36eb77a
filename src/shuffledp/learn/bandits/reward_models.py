"""What arms would have paid, by a straight line for each: the model of the direct and the doubly robust method."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError

Floats = NDArray[np.float64]
Arms = NDArray[np.int64]

# Singular values below this part of the largest are rounding.
_SAME = 1e-12


def with_one(contexts: Floats) -> Floats:
    """Contexts with a 1 in front, for the height of a line.

    >>> with_one(np.array([[0.5], [2.0]])).tolist()
    [[1.0, 0.5], [1.0, 2.0]]
    """
    return np.hstack([np.ones((len(contexts), 1)), contexts])


def ridge_lines(contexts: Floats, taken: Arms, rewards: Floats, arms: int) -> Floats:
    """A row of coefficients for each arm, by least squares with a regularizer of 1 around the mean of all rewards.

    An arm that was never taken has that mean everywhere.
    """
    rows = with_one(contexts)
    mean = float(rewards.mean()) if len(rewards) else 0.0
    lines = np.zeros((arms, rows.shape[1]))
    for arm in np.unique(taken).tolist():
        mine = rows[taken == arm]
        matrix = mine.T @ mine + np.eye(rows.shape[1])
        lines[arm] = np.linalg.solve(matrix, mine.T @ (rewards[taken == arm] - mean))
    lines[:, 0] += mean
    return lines


@dataclass(frozen=True, slots=True)
class DirectValue:
    """The mean of what lines say of the arms that a policy takes, and how far rewards may have moved it."""

    value: float
    length: float
    """Rewards whose deviation is at most s move the value by a number of deviation s times this, at most."""

    def reach(self, span: float, rounds: int, failure: float) -> float:
        """How far the policy's value may be, but for the failure probability, if the lines are right.

        Half the failure is for rewards, which are sub-Gaussian of half their range, half for which contexts came.
        """
        cost = math.log(4 / failure)
        return span * (math.sqrt(cost / 2) * self.length + math.sqrt(cost / (2 * rounds)))


def direct_value(contexts: Floats, taken: Arms, rewards: Floats, chosen: Arms) -> DirectValue:
    """Fit a line to the rewards of each arm that the policy takes, by least squares, and average what it says.

    Raises:
        DataError: an arm was taken in too few rounds to fit its line, or in contexts that say nothing of those in which
            the policy takes it.
    """
    rows, value, squares = with_one(contexts), 0.0, 0.0
    for arm in np.unique(chosen).tolist():
        mine, asked = rows[taken == arm], rows[chosen == arm]
        wanted, gram = asked.sum(axis=0) / len(rows), mine.T @ mine
        # Features may hang together, as those do of which one in a group is always 1. Many lines fit then, and all say
        # the same of contexts within the span of those that were seen.
        along = np.linalg.lstsq(gram, wanted, rcond=_SAME)[0]
        rank = np.linalg.matrix_rank(mine)
        within = np.linalg.norm(gram @ along - wanted) <= math.sqrt(_SAME) * np.linalg.norm(wanted)
        if len(mine) <= rank or not within or np.linalg.matrix_rank(np.vstack((mine, asked))) > rank:
            seen = f"{len(mine)} rounds of arm {arm}"
            raise DataError(
                "log", seen, f"must fit a line of {rows.shape[1]} numbers", "log more, or use fewer features"
            )
        value += float(along @ (mine.T @ rewards[taken == arm]))
        squares += float(along @ wanted)
    return DirectValue(value, math.sqrt(squares))
