"""The smallest noise for given relative shares of it, exactly accounted for; and which shares to try."""

import math
from collections.abc import Sequence

from shuffledp.accounting.products import ProductPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.ranges.base import LARGEST_COINS

# How much less noise large levels get, where decoys are dear: 0 is the same in each node of every level.
SPLITS = (0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
# Without a limit on messages: the fewest among plans with at most this part more than the least error.
TOLERANCE = 1.5
# The log of delta may stay so far below its target: a tenth of a percent of noise.
_CLOSE = 0.01


def shares_for(sizes: Sequence[int], split: float) -> tuple[float, ...]:
    """Relative blankets of levels: what minimises the sum of variances plus `split` messages, to first order.

    >>> shares_for((16, 256), 0.0)
    (1.0, 1.0)
    """
    return tuple(1 / math.sqrt(1 + split * size / max(sizes)) for size in sizes)


def first_guess(privacy: Privacy, shares: Sequence[float]) -> float:
    """A scale that is about enough: losses' variances, one over the blanket each, add up."""
    return smallest_blanket(privacy) * sum(1 / share for share in shares)


def thrown(honest: int, sizes: Sequence[int], means: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Coins and their probabilities, level by level, that put these means into each node."""
    expected = [mean * size / honest for mean, size in zip(means, sizes, strict=True)]
    coins = tuple(max(1, math.ceil(each)) for each in expected)
    if max(coins) > LARGEST_COINS:
        raise InfeasibleError(
            "messages",
            max(coins),
            f"would be more than {LARGEST_COINS} a user",
            "take more users, fewer values, or a larger epsilon or delta",
        )
    return coins, tuple(min(1.0, each / count) for each, count in zip(expected, coins, strict=True))


def calibrated(
    privacy: Privacy, honest: int, sizes: Sequence[int], shares: Sequence[float]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The coins of the smallest blankets with these relative sizes whose exact composition meets the target."""

    def at(scale: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
        return thrown(honest, sizes, [scale * share for share in shares])

    def excess(scale: float) -> float:
        pairs = [BallsPair(honest * c, p / size) for c, p, size in zip(*at(scale), sizes, strict=True)]
        delta = ProductPair(pairs).delta(privacy.epsilon)
        return math.log(max(delta, 1e-300) / privacy.delta)

    low, high = 0.8 * first_guess(privacy, shares), first_guess(privacy, shares)
    below, above = excess(low), excess(high)
    while above > 0:
        low, below, high = high, above, 1.2 * high
        above = excess(high)
    # Log delta is almost linear in the scale; whatever is returned was seen to be enough.
    while below > 0 and above < -_CLOSE and high - low > 1e-6 * high:
        part = min(0.95, max(0.05, (below + _CLOSE / 2) / (below - above)))
        middle = low + part * (high - low)
        there = excess(middle)
        low, below, high, above = (middle, there, high, above) if there > 0 else (low, below, middle, there)
    return at(high if below > 0 else low)
