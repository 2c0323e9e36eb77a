"""The smallest noise for given relative shares of it, exactly accounted for; and which shares to try."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.accounting.products import ProductPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.choosing import FEW_MESSAGES
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.ranges.base import LARGEST_COINS
from shuffledp.protocols.request import Request

# How much less noise large levels get, where decoys are dear: 0 is the same in each node of every level.
SPLITS = (0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
# Of those that look best, so many are calibrated at most.
_CALIBRATED = 8
# The log of delta may stay so far below its target: a tenth of a percent of noise.
_CLOSE = 0.01
# Of a coin's probability: rounding it up adds at most 1/4096 of noise.
_BINARY_DIGITS = 13


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
    return coins, tuple(_short(each / count) for each, count in zip(expected, coins, strict=True))


def _short(probability: float) -> float:
    """The least number not below it with few binary digits, so that coins are drawn from few random bits."""
    scale = 2.0 ** (_BINARY_DIGITS - math.frexp(probability)[1])
    return min(1.0, math.ceil(probability * scale) / scale)


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


@dataclass(frozen=True, slots=True, order=True)
class Considered:
    """Trees with one split of the noise, by a first guess at it: error, messages, and what to calibrate."""

    error: float
    sent: float
    most: int
    branching: tuple[int, ...]
    sizes: tuple[int, ...]
    shares: tuple[float, ...]

    @classmethod
    def all_of(
        cls,
        request: Request,
        branching: tuple[int, ...],
        sizes: tuple[int, ...],
        shares: tuple[float, ...],
        error: Callable[[float], float],
    ) -> "list[Considered]":
        """One, with the error of its guessed scale; none where it would take too many messages."""
        guess = first_guess(request.privacy, shares)
        try:
            coins, probabilities = thrown(request.honest, sizes, [guess * share for share in shares])
        except InfeasibleError:
            return []
        sent = len(sizes) + float(np.dot(coins, probabilities))
        return [cls(error(guess), sent, len(sizes) + sum(coins), branching, sizes, shares)]


def _in_steps(row: "Considered") -> tuple[int, float]:
    """A rank by error in steps of 2%, then by messages."""
    return round(math.log(row.error) / math.log(1.02)) if row.error > 0 else -1 << 60, row.sent


def best_of(rows: "list[Considered]", request: Request, tolerance: float) -> dict[str, Any]:
    """Branching, coins and probabilities of the least error within the messages allowed.

    Without a limit on messages few are allowed for each axis; where there is nothing with so few, the fewest among
    those with at most `tolerance` times the least error.
    """
    limit = request.max_messages
    if limit is None and rows:
        few = FEW_MESSAGES * len(rows[0].branching)
        limit = few if any(row.most <= few for row in rows) else None
    if not rows:
        way_out = "take more users, fewer values, or a larger epsilon"
        raise InfeasibleError("messages", None, "would be too many for this domain", way_out)
    if limit is None:
        least = min(row.error for row in rows)
        rows = sorted((row for row in rows if row.error <= tolerance * least), key=lambda row: row.sent)
    else:
        fewest = min(row.most for row in rows)
        # The guess is a little high: what just misses the limit is calibrated, too. Where no limit was asked for, the
        # fewest messages among equals.
        fitting = [row for row in rows if row.most <= limit + 1]
        rows = sorted(fitting, key=_in_steps) if request.max_messages is None else sorted(fitting)
        if not rows:
            way_out = "allow more, take wider steps, or a larger epsilon or delta"
            raise InfeasibleError("max_messages", limit, f"must be about {fewest} for this domain", way_out)
    refusal = InfeasibleError("max_messages", limit, "is too few for this domain", "allow more, or take wider steps")
    for row in rows[:_CALIBRATED]:
        try:
            coins, probabilities = calibrated(request.privacy, request.honest, row.sizes, row.shares)
        except InfeasibleError as error:
            refusal = error
            continue
        if limit is None or len(row.sizes) + sum(coins) <= limit:
            return {"branching": row.branching, "coins": coins, "probabilities": probabilities}
    raise refusal
