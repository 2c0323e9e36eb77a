"""Frequent strings, each level from people of its own, who report once.

Which prefixes survive is decided by what earlier groups' histograms released, and nobody reports twice: each
histogram's guarantee is that of all together. Proofs: docs/theory/range-queries.md.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.errors import ParameterError
from shuffledp.protocols.heavy_hitters.base import StringSearch
from shuffledp.protocols.heavy_hitters.found import HeavyHitter
from shuffledp.protocols.heavy_hitters.histograms import level_histogram
from shuffledp.protocols.heavy_hitters.levels import SAMPLING_FAILURE, Descent, best_descent
from shuffledp.protocols.heavy_hitters.search import SearchState
from shuffledp.protocols.heavy_hitters.tree import Level
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation


def _of_the_worse_level(name: str) -> Any:
    """The larger of the first and the last level's numbers of this name."""
    return property(lambda search: max(getattr(level, name) for level in (search.first_level, search._last_level)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSearch(StringSearch):
    """Each level of the tree is asked of a group of its own, drawn at random.

    The adversary sees every level's permuted histogram messages; a user's own are in one of them.

    >>> from shuffledp.privacy import Privacy
    >>> search = GroupSearch.plan(users=300_000, privacy=Privacy(1, 1e-6), length=8, top=3)
    >>> search.groups, search.keep, round(search.surely_found)
    (6, 2048, 1045)
    """

    method: ClassVar[str] = "prefixes"
    asked: ClassVar[str] = "rounds of different people"
    who_reports: ClassVar[str] = "everybody reports once, at one level"

    noise_part: float = 1.0
    """The part of every level's noise variance that is left: 1, but in the quieter twins of an audit."""

    @classmethod
    def _calibrated(cls, request: Request, bits: int, top: int) -> tuple[Descent, dict[str, Any]]:
        """The way that finds the rarest strings for sure; every level's histogram has the noise of its own plan."""

        def bound(way: Descent) -> float:
            users = max(1, request.users // way.groups)
            level = level_histogram(users, request.privacy, way.bins + 1, request.honest_fraction, request.max_messages)
            return level.bound_at(way.fails_at_a_level())

        return best_descent(request.users, bits, top, bound), {}

    def _check_noise(self) -> None:
        super(GroupSearch, self)._check_noise()
        if self.noise_part != 1:
            raise ParameterError("noise_part", self.noise_part, "must be 1 in a plan that protects", "leave it out")

    @property
    def groups(self) -> int:
        """The equal parts that all users are split into: a level's group is one of them, or some where few are left."""
        return self.most_levels

    @property
    def levels_in_words(self) -> str:
        return f"{self.groups} groups of users"

    @property
    def surely_found(self) -> float:
        return max(
            self.descent.surely_found(self.users, slots, self._bound_of(slots)) for slots in range(1, self.groups + 1)
        )

    def _bound_of(self, slots: int) -> float:
        """What a level's estimates are off by at most, where so many parts of the users are its group."""
        users = max(1, self.users * slots // self.groups)
        return self._level_bound(self._level(users, self.bins + 1))

    def _place(self, part: int) -> int:
        """The users before this part of all users."""
        return self.users * part // self.groups

    def level(self, state: SearchState) -> Level:
        return Level.of(self.domain, self.descent, state.depth, state.prefixes)

    def _parts_of(self, level: Level, state: SearchState) -> int:
        """Parts of the users that are asked next: as many as every level that may still come can have."""
        left = self.descent.bits - level.depth - level.width
        return (self.groups - state.parts) // (1 + self.descent.most_after(left))

    def _asked(self, state: SearchState, level: Level) -> BlanketPlan:
        users = self._place(state.parts + self._parts_of(level, state)) - state.users
        return self._level(users, level.candidates + 1)

    def _after(self, state: SearchState, level: Level) -> tuple[int, int]:
        parts = state.parts + self._parts_of(level, state)
        return parts, self._place(parts)

    def _level(self, users: int, categories: int) -> BlanketPlan:
        """Every level's histogram is planned for the same (epsilon, delta)."""
        plan = level_histogram(users, self.privacy, categories, self.honest_fraction, self.max_messages)
        return plan if self.noise_part == 1 else plan.twin(self.noise_part)

    @property
    def _last_level(self) -> BlanketPlan:
        """Where all parts are of one size."""
        return self._level(max(1, self.users // self.groups), self.bins + 1)

    def _found(self, string: str, count: float, plan: BlanketPlan) -> HeavyHitter:
        bound, failure = self._level_bound(plan), self._sampling_failure
        return HeavyHitter.among_all(string, count, bound, plan.users, self.users, failure)

    @property
    def _sampling_failure(self) -> float:
        """For every string that somebody has, and every run of parts that may be the last group: chosen ones too."""
        return SAMPLING_FAILURE / (self.users * self.groups * (self.groups + 1) / 2)

    is_mixed: ClassVar[bool] = True

    def in_order(self, values: Any, *, bits: RandomBits) -> Any:
        return values[np.asarray(uniform_permutation(len(values), bits=bits))]

    @property
    def standard_error(self) -> float:
        """The standard error of a count: the last level's noise, and that of a group that is drawn at random."""
        sampling = 0.0 if self.groups == 1 else math.sqrt(self.users * self.scale) / 2
        return math.hypot(self.scale * self._last_level.standard_error, sampling)

    @property
    def error_bound(self) -> float:
        noise = self.scale * self._level_bound(self._last_level)
        if self.groups == 1:
            return noise
        return noise + math.sqrt(self.users * self.scale * math.log(2 / self._sampling_failure) / 2)

    messages_per_user_mean = _of_the_worse_level("messages_per_user_mean")
    """Messages that a user sends on average, at the level that has more."""
    messages_per_user_max = _of_the_worse_level("messages_per_user_max")
    """Messages that a user sends at most, at the level that has more."""
    bits_per_message = _of_the_worse_level("bits_per_message")
    """Bits of a message, at the level that has more."""

    def _honest_of_level(self, honest: int) -> int:
        """The honest users of the first group when this many of all users are, in every group alike."""
        first = self.first_level
        return first.honest_users if honest == self.honest_users else honest_users(first.users, honest / self.users)

    def pair(self, honest: int) -> DominatingPair:
        return self.first_level.pair(self._honest_of_level(honest))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return self.first_level.delta_terms(epsilon, self._honest_of_level(honest))

    @property
    def charged_pair(self) -> DominatingPair:
        """A claim: later levels' pairs depend on what earlier ones found."""
        return ClaimPair(self.privacy)

    def _noise_left(self, fraction: float) -> str:
        honest = honest_users(self.first_level.users, fraction)
        return f"the noise of {honest:,} users of one's own group is left, if as large a part of every group is honest"

    @property
    def dominates_because(self) -> str:
        return (
            "Everybody reports once, to one level's histogram, and every level's is planned for the same epsilon and "
            "delta; what is asked at a level depends on other people's reports only. At the first level: "
            + self.first_level.dominates_because
        )

    def audited_effort(self, honest: int) -> int:
        return self.first_level.audited_effort(self._honest_of_level(honest))

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        return self.first_level.views(side, trials, self._honest_of_level(honest), bits=bits)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"noise_part": part}
