"""Several histograms of one user at once: a product of two-bin pairs, with as few atoms as matter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.laws import Binomial, Floats
from shuffledp.accounting.pairs import WINDOW_TAIL, Atoms, DominatingPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.accounting.visible_coins import MANY_COINS, fewest_coins, gaussian_atoms
from shuffledp.errors import ParameterError

# Totals with the same first binary digits, so many, are counted as the least of them.
_DIGITS = 9
_STEPS_PER_DEVIATION = 200


def _counted_as(total: int) -> int:
    """A total not above this one, from a list that all pairs share."""
    cut = max(0, total.bit_length() - _DIGITS)
    return total >> cut << cut


@lru_cache(maxsize=4096)
def _fair_coins(total: int) -> tuple[Floats, Floats, float]:
    """Log masses of Bin(total, 1/2) and of its shift by 1 on a window, and what it leaves out."""
    if total == 0:
        return np.array([0.0, -np.inf]), np.array([-np.inf, 0.0]), 0.0
    law = Binomial(total, 0.5)
    first, last = law.window(WINDOW_TAIL)
    masses = law.log_pmf(np.arange(first - 1, last + 2, dtype=np.float64))
    return masses[1:], masses[:-1], law.cdf(first - 1) + law.sf(last)


@dataclass(frozen=True, eq=False)
class FewerAtomsPair(DominatingPair):
    """A pair that dominates a `BallsPair` and has far fewer atoms, for compositions of many.

    The total T of balls in the two bins is seen, and T + 1 balls are a post-processing of T: throw one more, a fair
    coin. So totals in a group may all be counted as its smallest. Outcomes beyond a window are counted as outside.

    >>> balls = BallsPair(427_000, 1e-3)
    >>> 1 <= FewerAtomsPair(balls).delta(0.3) / balls.delta(0.3) < 1.05
    True
    """

    pair: BallsPair

    @cached_property
    def _atoms(self) -> Atoms:
        law = self.pair.total_law
        if fewest_coins(law) >= MANY_COINS:
            return gaussian_atoms(law, bins=1)
        if isinstance(law, int):
            starts, weights, outside = np.array([_counted_as(law)]), np.ones(1), 0.0
        else:
            low, high = law.window(WINDOW_TAIL)
            totals = np.arange(low, high + 1)
            starts, first = np.unique([_counted_as(total) for total in totals.tolist()], return_index=True)
            weights = np.add.reduceat(np.exp(law.log_pmf(totals.astype(np.float64))), first)
            outside = law.cdf(low - 1) + law.sf(high)
        log_p, log_q = [], []
        for total, weight in zip(starts.tolist(), weights.tolist(), strict=True):
            if weight == 0:
                continue
            fair_p, fair_q, beyond = _fair_coins(total)
            log_p.append(math.log(weight) + fair_p)
            log_q.append(math.log(weight) + fair_q)
            outside += weight * beyond
        return Atoms(np.concatenate(log_p), np.concatenate(log_q), outside, outside)

    def atoms(self) -> Atoms:
        return self._atoms

    def describe(self) -> str:
        return self.pair.describe()


@dataclass(frozen=True, eq=False)
class ProductPair(DominatingPair):
    """Independent views of one user's value, each with a pair of its own: what all of them show together.

    Composed exactly, never epsilon over their number.

    >>> one = BallsPair(85_400, 1e-3)
    >>> both = ProductPair((one, one))
    >>> one.delta(1.0) < both.delta(1.0) < 1e-6 < 2 * one.delta(0.5)
    True
    """

    factors: Sequence[BallsPair]

    def __post_init__(self) -> None:
        if not self.factors:
            raise ParameterError("factors", 0, "must be at least one", "compose what is there")

    @cached_property
    def _composition(self) -> Composition:
        times: dict[tuple[int, float], int] = {}
        for pair in self.factors:
            key = (pair.balls, pair.probability)
            times[key] = times.get(key, 0) + 1
        # A loss deviates by about 2 / sqrt(T), T = 2 balls p; connecting the dots is right on any grid.
        finest = math.sqrt(2 / max(1.0, *(balls * probability for balls, probability in times))) / _STEPS_PER_DEVIATION
        return Composition([(FewerAtomsPair(BallsPair(*key)), count) for key, count in times.items()], finest)

    def forward(self, epsilon: float) -> float:
        if len(self.factors) == 1:
            return self.factors[0].forward(epsilon)
        return self._composition.delta(epsilon)

    def reverse(self, epsilon: float) -> float:
        """Delta of Q against P, which is that of P against Q: swapping the two bins of every factor swaps them."""
        return self.forward(epsilon)

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.forward(epsilon))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at this delta, rounded up: from one transform, not from a search over many."""
        return epsilon_at(self, delta) if len(self.factors) == 1 else self._composition.epsilon(delta)

    def atoms(self) -> Atoms:
        """Those of a single factor; several have too many."""
        if len(self.factors) > 1:
            raise ParameterError("factors", len(self.factors), "must be 1 for atoms", "compose the factors' own pairs")
        return self.factors[0].atoms()

    def describe(self) -> str:
        return "a product of: " + "; ".join(pair.describe() for pair in self.factors)
