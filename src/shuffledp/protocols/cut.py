"""Counts that are answered with 0 unless the messages prove that they are not: how far off, whatever they are."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from shuffledp.accounting.laws import Binomial, Floats
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy

# Messages a user on average, and at most.
LARGEST_MEAN, LARGEST_MOST = 1 << 20, 1 << 24
# Mass of a noise law that its table leaves out.
_LEFT_OUT = 1e-20
# The longest table that is made of one, and in how many groups a longer one is looked at.
_LONGEST_TABLE, _GROUPS = 1 << 22, 1 << 12


def check_messages(mean: float, most: int) -> None:
    """Refuse plans that ask too much of one user."""
    if mean > LARGEST_MEAN or most > LARGEST_MOST:
        raise InfeasibleError(
            "messages",
            f"{mean:.3g} on average and {most} at most",
            f"would be more than {LARGEST_MEAN} on average or {LARGEST_MOST} at most a user",
            "take fewer categories, or the method decoys, whose messages fall with the number of users",
        )


def delta_of_coins(
    pair: Callable[[float], DominatingPair],
    privacy: Privacy,
    honest: int,
    most: float,
    what: str = "for one coin a category each to hide a user's move",
) -> Callable[[float], float]:
    """The delta of coins of a probability; an InfeasibleError where not even those of the largest one are enough.

    Args:
        pair: what coins of a probability show.
        privacy: what must hold.
        honest: how many users toss them.
        most: the largest probability that there is.
        what: what so few users cannot do, in words.
    """

    def delta(probability: float) -> float:
        found = pair(min(most, probability)).delta(privacy.epsilon)
        if found <= privacy.delta or probability < most:
            return found
        way_out = "take more users, a larger epsilon or delta, or the method decoys"
        raise InfeasibleError("users", honest, f"are too few {what}", way_out)

    return delta


def table_of(law: Binomial) -> Floats:
    """Masses at 0, 1, ... as far as they matter."""
    _, high = law.window(_LEFT_OUT)
    return np.exp(law.log_pmf(np.arange(high + 1, dtype=np.float64)))


def mean_squares_when_cut(masses: Floats, squares: Floats) -> Floats:
    """E[error^2] for true counts 0, 1, ..., masses.size; larger ones are like the last.

    The noise takes S away, with these masses, and something is added again, so that the mean squared error given S is
    `squares`; but a count c with S >= c is answered with 0, and its error is c: E = sum over S < c of squares P[S] +
    c^2 P[S >= c].

    >>> mean_squares_when_cut(np.array([0.5, 0.5]), np.array([0.25, 0.25])).tolist()
    [0.0, 0.625, 0.25]
    """
    below = np.concatenate(([0.0], np.cumsum(squares * masses)))
    at_least = np.concatenate((np.cumsum(masses[::-1])[::-1], [0.0]))
    return np.asarray(below + np.arange(masses.size + 1, dtype=np.float64) ** 2 * at_least)


@lru_cache(maxsize=256)
def mean_squares_by_silence(users: int, silence: float) -> Floats:
    """`mean_squares_when_cut` where each of so many users stays silent with this probability, whose mean is added."""
    law = Binomial(users, silence)
    masses = table_of(law)
    return mean_squares_when_cut(masses, (law.mean - np.arange(masses.size, dtype=np.float64)) ** 2)


def worst_mean_square(law: Binomial, mean_squares: Callable[[], Floats]) -> float:
    """The largest of a plan's `mean_squares`, whose noise takes S of this law away; a bound where S is very large.

    E[error^2] of a count c is at most the variance of all noise, which is at most the mean of S, and c^2 P[S >= c]:
    largest within the window of S, where a group of counts is at most its last one's square times its first one's tail.

    >>> law = Binomial(10**9, 0.05)
    >>> 0.9 < worst_mean_square(law, lambda: np.zeros(1)) / law.mean**2 < 1
    True
    """
    low, high = law.window(_LEFT_OUT)
    if high < _LONGEST_TABLE:
        return float(mean_squares().max())
    ends = np.unique(np.linspace(low, high + 1, _GROUPS).astype(np.int64))
    tails = np.array([law.sf(int(first) - 1) for first in ends[:-1]])
    return law.mean + max(float(low) ** 2, float(np.max(ends[1:].astype(np.float64) ** 2 * tails)))


def deviations_at(counts: Floats, mean_squares: Floats) -> Floats:
    """The root mean square error of each of these counts."""
    return np.sqrt(mean_squares[np.minimum(counts.astype(np.int64), mean_squares.size - 1)])
