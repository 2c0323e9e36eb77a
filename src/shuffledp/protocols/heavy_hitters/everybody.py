"""Frequent strings, each level from everybody: several reports a person, composed exactly, and no sampling.

All levels' histograms have the same random messages, whatever was found before, so that one fixed pair dominates
each of them and their product dominates what a search shows of a person. Proofs: docs/theory/range-queries.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.products import ProductPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.fields import AGAIN, noise
from shuffledp.protocols.heavy_hitters.base import StringSearch
from shuffledp.protocols.heavy_hitters.found import HeavyHitter
from shuffledp.protocols.heavy_hitters.histograms import few_messages
from shuffledp.protocols.heavy_hitters.levels import Descent
from shuffledp.protocols.heavy_hitters.search import SearchState
from shuffledp.protocols.heavy_hitters.tree import Level
from shuffledp.protocols.histogram.blanket import LARGEST_COINS, BlanketPlan, smallest_blanket
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.plan import unchecked
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits

# Candidates of a level, at most: everybody's messages are read at every level, a few seconds for so many.
_MOST_BINS = 1 << 18


@lru_cache(maxsize=256)
def _product(balls: int, probability: float, levels: int) -> ProductPair:
    return ProductPair((BallsPair(balls, probability),) * levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class EverybodySearch(StringSearch):
    """Everybody is asked at every level, by histograms that share the privacy.

    The adversary sees every level's permuted histogram messages; a user's own are in each of them, and what is asked
    at a level may depend on everything that was seen before.

    Attributes:
        coins: how many decoys a user may send at each level.
        probability: of each of them.

    >>> from shuffledp.privacy import Privacy
    >>> search = EverybodySearch.plan(users=300_000, privacy=Privacy(1, 1e-6), length=4, top=3)
    >>> search.most_levels, search.keep, round(search.surely_found), search.messages_per_user_max
    (4, 8192, 190, 28)
    """

    method: ClassVar[str] = "everybody"
    asked: ClassVar[str] = "rounds of the same people"
    who_reports: ClassVar[str] = "everybody reports at every level, and it holds for all of a person's reports together"

    sets: int = noise("[2, inf)")
    """Disjoint sets of messages of a level's histogram: buckets, or categories where there are no more."""
    coins: int = noise(f"[1, {LARGEST_COINS}]")
    probability: float = noise("(0, 1]")

    @classmethod
    def _calibrated(cls, request: Request, bits: int, top: int) -> tuple[Descent, dict[str, Any]]:
        """The way that finds the rarest strings for sure, and the least noise for it."""
        way = _best_way(request, bits, top)
        sets, coins, probability = _least_noise(request, way)
        return way, {"sets": sets, "coins": coins, "probability": probability}

    def _check_noise(self) -> None:
        super(EverybodySearch, self)._check_noise()
        if self.sets > self.bins + 1:
            raise ParameterError("sets", self.sets, f"must be at most {self.bins + 1}, the categories", AGAIN)

    @property
    def groups(self) -> int:
        """One: everybody is asked at every level."""
        return 1

    @property
    def levels_in_words(self) -> str:
        return f"at most {self.most_levels}, each of everybody"

    @property
    def surely_found(self) -> float:
        return self.descent.passes_for_sure(self.users, self.error_bound)

    def level(self, state: SearchState) -> Level:
        # No more bits than later levels leave over: candidates cost the server time, levels are paid for.
        return Level.of(self.domain, self.descent, state.depth, state.prefixes, self.most_levels - 1 - state.parts)

    def _asked(self, state: SearchState, level: Level) -> BlanketPlan:
        if state.parts >= self.most_levels:
            raise ParameterError("state", state.parts, f"must be of one of {self.most_levels} levels", "begin again")
        return self._level(level.candidates + 1)

    def _after(self, state: SearchState, level: Level) -> tuple[int, int]:
        return state.parts + 1, 0

    def _level(self, categories: int) -> BlanketPlan:
        """A histogram of at least so many categories, always with the same pair."""
        # All levels are accounted for together: see `pair`.
        blanket: dict[str, Any] = {**self.common, "coins": self.coins, "probability": self.probability}
        if categories <= self.sets:
            return unchecked(Decoys, categories=as_categories(self.sets), **blanket)
        # So few sizes that the bound of each of them is known beforehand: see `error_bound`.
        size = (1 << (categories - 2).bit_length()) + 1
        return unchecked(Buckets, categories=as_categories(size), buckets=self.sets, **blanket)

    @property
    def _last_level(self) -> BlanketPlan:
        return self._level(self.bins + 1)

    def _found(self, string: str, count: float, plan: BlanketPlan) -> HeavyHitter:
        return HeavyHitter.among_all(string, count, self._level_bound(plan), self.users, self.users, 1.0)

    @property
    def standard_error(self) -> float:
        """The standard error of a count at the last level: everybody is counted, so that noise is all there is."""
        return self._last_level.standard_error

    @property
    def error_bound(self) -> float:
        """A bound for every level, whatever its candidates: the largest of all histograms that a level may be."""
        sizes = {self.sets} | {(self.bins >> less) + 1 for less in range(self.bins.bit_length())}
        return max(self._level_bound(self._level(size)) for size in sizes if size >= self.sets)

    @property
    def messages_per_user_mean(self) -> float:
        return self.most_levels * self._last_level.messages_per_user_mean

    @property
    def messages_per_user_max(self) -> int:
        return self.most_levels * self._last_level.messages_per_user_max

    @property
    def bits_per_message(self) -> int:
        return self._last_level.bits_per_message

    def pair(self, honest: int) -> ProductPair:
        return _product(honest * self.coins, self.probability / self.sets, self.most_levels)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        levels = f"the product of {self.most_levels} levels' curves: the balls in two bins, of each"
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), levels),
            DeltaTerm("sampling", 0.0, "coins and random messages are drawn exactly"),
        )

    @property
    def dominates_because(self) -> str:
        return (
            f"A person's string is in one category of each of at most {self.most_levels} histograms. Whatever was "
            "asked, each has the same number of random messages over as many sets, so that one pair dominates it, and "
            "adaptive composition gives the product. In one level: " + self._last_level.dominates_because
        )

    def audited_effort(self, honest: int) -> int:
        return self.most_levels * self._level(self.sets).audited_effort(honest)

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """How many messages name each of the two neighbours' categories, at all levels together.

        Of levels that do not hash: the two categories' messages have the same law where they are buckets.
        """
        level = self._level(self.sets)
        return np.asarray(sum(level.views(side, trials, honest, bits=bits) for _ in range(self.most_levels)))

    def quieter(self, part: float) -> dict[str, Any]:
        return {"probability": part * self.probability}


def _about(request: Request, way: Descent) -> tuple[float, int]:
    """About how many random messages a level has in each set, and in how many sets.

    A composition of so many levels asks each for about as many times the noise of one; it is never asked for more.
    """
    mean = way.groups * smallest_blanket(request.privacy)
    extra = few_messages(request.max_messages) // way.groups - 1
    return mean, max(2, min(way.bins + 1, int(request.honest * extra / mean)))


def _best_way(request: Request, bits: int, least_kept: int) -> Descent:
    """The way that finds the rarest strings for sure, judged by normal errors."""
    few, users = few_messages(request.max_messages), request.users

    def found(way: Descent) -> tuple[float, int]:
        mean, sets = _about(request, way)
        shared = users / sets if sets <= way.bins else 0.0
        deviation = math.sqrt(mean * users / request.honest + shared)
        bound = deviation * math.sqrt(2 * math.log(2 * way.bins / way.fails_at_a_level()))
        return way.passes_for_sure(users, bound), way.groups

    every = Descent.ways(bits, _MOST_BINS)
    ways = [way for way in every if (way.groups == 1 or way.keep >= least_kept) and 2 * way.groups <= few]
    if not ways:
        raise InfeasibleError(
            "max_messages",
            few,
            "are too few for everybody to report at every level",
            "allow more, shorten length, name an alphabet, or use the method prefixes",
        )
    return min(ways, key=found)


def _least_noise(request: Request, way: Descent) -> tuple[int, int, float]:
    """Sets, coins and their probability: the fewest random messages that are private at all levels together."""
    epsilon, delta, most = request.privacy.epsilon, request.privacy.delta, few_messages(request.max_messages)
    mean, sets = _about(request, way)

    def thrown(messages: float) -> tuple[int, float]:
        coins = max(1, math.ceil(messages))
        return coins, min(1.0, messages / coins)

    def reached(messages: float) -> float:
        coins, probability = thrown(messages)
        return _product(request.honest * coins, probability / sets, way.groups).delta(epsilon)

    first, limit = mean * sets / request.honest, float(LARGEST_COINS)
    least = smallest_meeting(reached, delta, 0.0, first, relative=1e-4, limit=limit)
    coins, probability = thrown(least)
    if way.groups * (1 + coins) > most:
        problem = f"must be at least {way.groups * (1 + coins)}, what everybody would send"
        raise InfeasibleError("max_messages", most, problem, "allow more messages, or a larger epsilon or delta")
    return sets, coins, probability
