"""Frequent strings of a domain nobody can list: prefixes, some bits at a time, each level from people of its own.

Each level is asked of a group of its own, by a histogram of the first bits of strings that continue a prefix which
survived. Which survive is decided by what earlier groups' histograms released, and nobody reports twice: each
histogram's guarantee is that of all together. Proofs: docs/theory/range-queries.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import AGAIN, domain, forwarded, noise, only_exact
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter, present_found
from shuffledp.protocols.heavy_hitters.histograms import level_bound, level_histogram
from shuffledp.protocols.heavy_hitters.levels import MOST_BINS, SAMPLING_FAILURE, Descent, best_descent
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.tree import Level, packed
from shuffledp.protocols.heavy_hitters.words import ANY_TEXT, UnlistedStrings
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.presentation import Presentation, View
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import InteractivePlan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation

# A string that must have more than this part of all users to be found for sure is found by looking.
_USELESS = 0.05


def _of_the_worse_level(name: str) -> Any:
    """The larger of the first and the last level's numbers of this name."""
    return property(lambda search: max(getattr(level, name) for level in (search.first_level, search._last_level)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(InteractivePlan):
    """Finds the strings that most users have.

    Strings are UTF-8, at most `length` bytes of them, longer ones cut on the device; a string with a byte that is not
    in `alphabet` is "other". At most `keep` prefixes survive a level, those whose estimates are at least the level's
    error bound. In 95% of runs all of this is true at once: nothing is found that nobody in the last group has, every
    string of at least `surely_found` users survives to the end, and all intervals hold.

    The adversary sees every level's permuted histogram messages; a user's own are in one of them.

    Reference: prefix trees as in Bassily, Nissim, Stemmer, Thakurta 2017, here with shuffled histograms.

    >>> from shuffledp.privacy import Privacy
    >>> search = HeavyHitters.plan(users=300_000, privacy=Privacy(1, 1e-6), length=8, top=3)
    >>> search.groups, search.keep, round(search.surely_found)
    (6, 2048, 1045)
    """

    protocol: ClassVar[str] = "heavy-hitters"
    file_command: ClassVar[str] = "heavy-hitters"
    method: ClassVar[str] = "prefixes"
    theory_page: ClassVar[str] = "docs/theory/range-queries.md"
    law: ClassVar[str] = "histograms"
    is_unbiased: ClassVar[bool] = False
    asked: ClassVar[str] = "rounds of different people"
    run_by: ClassVar[str] = "simulate, heavy-hitters"
    title: ClassVar[str] = "Frequent strings, privately"
    unit: ClassVar[str] = " users"

    length: int = domain(default=16)
    top: int = domain("[1, inf)", default=10)
    alphabet: bytes = domain(default=ANY_TEXT, write=lambda alphabet: alphabet.decode("latin-1"))
    max_messages: int | None = domain("[1, inf)", default=None)
    bins: int = noise(f"[2, {MOST_BINS}]")
    keep: int = noise("[1, inf)")
    noise_part: float = 1.0
    """The part of every level's noise variance that is left: 1, but in the quieter twins of an audit."""

    @classmethod
    def for_request(
        cls,
        request: Request,
        *,
        length: int = 16,
        top: int = 10,
        alphabet: bytes = ANY_TEXT,
        keep: int | None = None,
    ) -> Self:
        """The widths and numbers of prefixes that find the rarest strings for sure."""
        only_exact(request.constants)
        words = UnlistedStrings(length, alphabet)

        def bound(way: Descent) -> float:
            users = max(1, request.users // way.groups)
            level = level_histogram(users, request.privacy, way.bins + 1, request.honest_fraction, request.max_messages)
            return level.bound_at(way.fails_at_a_level())

        way = best_descent(request.users, words.bits, top, bound)
        plan = cls(
            **request.common,
            length=length,
            top=top,
            alphabet=alphabet,
            max_messages=request.max_messages,
            bins=way.bins,
            keep=way.keep if keep is None else keep,
        )
        plan._check_use()
        return plan

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        written = common.pop("alphabet", None)
        if not isinstance(written, str):
            raise DataError("plan.alphabet", written, "must be text", AGAIN)
        try:
            return super(HeavyHitters, cls).from_noise(noise, alphabet=written.encode("latin-1"), **common)
        except UnicodeEncodeError:
            raise DataError("plan.alphabet", written, "must be bytes", AGAIN) from None

    def _check_noise(self) -> None:
        super(HeavyHitters, self)._check_noise()
        bits = self.domain.bits
        if self.keep < self.top:
            raise ParameterError("keep", self.keep, f"must be at least the {self.top} asked for", "leave it out")
        if self.bins & (self.bins - 1) or self.bins > 1 << bits:
            raise ParameterError("bins", self.bins, f"must be a power of 2, at most 2^{bits}", AGAIN)
        if self.bins < min(2 * self.keep, 1 << bits):
            raise ParameterError("keep", self.keep, f"must be at most half of the {self.bins} bins", "keep fewer")
        if self.noise_part != 1:
            raise ParameterError("noise_part", self.noise_part, "must be 1 in a plan that protects", "leave it out")

    def _check_use(self) -> None:
        """Refuse a search that may find nothing at all."""
        if self.groups > self.users or not self.surely_found <= self.users:
            raise InfeasibleError(
                "users",
                self.users,
                f"are too few: not even a string that all of them have is sure to pass {self.groups} levels",
                "find more users, shorten length, name an alphabet, or choose a larger epsilon or delta",
            )

    @property
    def descent(self) -> Descent:
        """How the search goes down."""
        return Descent(self.domain.bits, self.bins, self.keep)

    @property
    def groups(self) -> int:
        """The equal parts that all users are split into: a level's group is one of them, or some where few are left."""
        return self.descent.groups

    @property
    def surely_found(self) -> float:
        """In 95% of runs every string of at least so many users survives every level."""
        return max(
            self.descent.surely_found(self.users, slots, self._bound_of(slots)) for slots in range(1, self.groups + 1)
        )

    def _bound_of(self, slots: int) -> float:
        """What a level's estimates are off by at most, where so many parts of the users are its group."""
        users = max(1, self.users * slots // self.groups)
        return self._level_bound(self._level(users, self.bins + 1))

    def _level_bound(self, level: BlanketPlan) -> float:
        """No estimate of the level is off by more, for all levels together in all but half of the failures."""
        return level_bound(level, self.descent.fails_at_a_level())

    def _place(self, part: int) -> int:
        """The users before this part of all users."""
        return self.users * part // self.groups

    def start(self) -> SearchState:
        """Before anybody reported: the empty prefix."""
        return SearchState()

    def level(self, state: SearchState) -> Level:
        """The candidates of the next level."""
        return Level.of(self.domain, self.descent, state.depth, state.prefixes)

    def _parts_of(self, level: Level, state: SearchState) -> int:
        """Parts of the users that are asked next: as many as every level that may still come can have."""
        left = self.descent.bits - level.depth - level.width
        return (self.groups - state.parts) // (1 + self.descent.most_after(left))

    def ask(self, state: SearchState) -> BlanketPlan:
        """What the next group must run: a histogram of the candidates and "other"."""
        if state.found is not None:
            raise ParameterError("state", "done", "has nothing more to ask", "read state.found")
        level = self.level(state)
        users = self._place(state.parts + self._parts_of(level, state)) - state.users
        return self._level(users, level.candidates + 1)

    def _level(self, users: int, categories: int) -> BlanketPlan:
        plan = level_histogram(users, self.privacy, categories, self.honest_fraction, self.max_messages)
        return plan if self.noise_part == 1 else plan.twin(self.noise_part)

    @property
    def first_level(self) -> BlanketPlan:
        """What the first group runs. Every level's histogram is planned for the same (epsilon, delta)."""
        return self.ask(self.start())

    @property
    def _last_level(self) -> BlanketPlan:
        """What the last group runs where as many prefixes as can be survived, and all parts are of one size."""
        return self._level(max(1, self.users // self.groups), self.bins + 1)

    def tell(self, state: SearchState, estimate: VectorEstimate) -> SearchState:
        """What the group's histogram says: which prefixes survive, or, after the last level, what was found."""
        plan, level = self.ask(state), self.level(state)
        counts, bound = np.asarray(estimate.value[:-1]), self._level_bound(plan)
        if counts.size != plan.bins - 1:
            raise ParameterError("estimate", counts.size, f"must have {plan.bins} bins", "run the plan of ask")
        depth = level.depth + level.width
        is_last = depth == self.descent.bits
        best = np.argsort(-counts, kind="stable")[: self.top if is_last else self.keep]
        best = best[counts[best] >= bound]
        survived = level.continued(best)
        if is_last:
            failure = self._sampling_failure
            found = [
                HeavyHitter.among_all(
                    self.domain.name(self.domain.string(bits)), count, bound, plan.users, self.users, failure
                )
                for bits, count in zip(survived, counts[best].tolist(), strict=True)
            ]
            return SearchState(depth, (), self.groups, self.users, tuple(found))
        prefixes, parts = tuple(sorted(packed(survived).tolist())), state.parts + self._parts_of(level, state)
        return SearchState(depth, prefixes, parts, self._place(parts), None if prefixes else ())

    @property
    def _sampling_failure(self) -> float:
        """For every string that somebody has, and every run of parts that may be the last group: chosen ones too."""
        return SAMPLING_FAILURE / (self.users * self.groups * (self.groups + 1) / 2)

    as_bytes = forwarded("domain.check_values")
    """Strings as the search sees them: UTF-8, cut after `length` bytes."""

    def codes(self, state: SearchState, strings: ArrayLike) -> NDArray[np.int64]:
        """Each string's candidate at this level; the last code is "other"."""
        return self.level(state).codes(self.as_bytes(strings))

    def searched(
        self,
        strings: ArrayLike,
        run: Callable[[BlanketPlan, NDArray[np.int64]], VectorEstimate],
        *,
        bits: RandomBits,
        progress: Callable[[SearchState], None] | None = None,
    ) -> SearchState:
        """The end of a search among these people, in groups drawn at random.

        Args:
            strings: a string a user.
            run: gets a level's histogram and its group's codes, and returns the estimate.
            bits: what groups are drawn from.
            progress: called before every level.
        """
        every = self.as_bytes(strings)
        if every.size != self.users:
            raise ParameterError("strings", every.size, f"must be the search's {self.users} users", "plan for as many")
        mixed = self.in_order(every, bits=bits)
        state = self.start()
        while state.found is None:
            if progress is not None:
                progress(state)
            plan = self.ask(state)
            group = mixed[state.users : state.users + plan.users]
            state = self.tell(state, run(plan, self.codes(state, group)))
        return state

    def in_order(self, values: Any, *, bits: RandomBits) -> Any:
        return values[np.asarray(uniform_permutation(len(values), bits=bits))]

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> FoundStrings:
        splitting, reporting = bits.spawn(2)
        state = self.searched(values, lambda plan, codes: plan.sample_estimate(codes, bits=reporting), bits=splitting)
        return self.estimate_of(state.found or (), simulated=not bits.is_secure)

    def estimate_of(self, found: Sequence[HeavyHitter], *, simulated: bool = False) -> FoundStrings:
        """What was found, with its errors."""
        bounds = tuple(max(each.upper - each.count, each.count - each.lower) for each in found)
        return FoundStrings(
            value=np.array([each.count for each in found]),
            standard_error=self.standard_error,
            bound=max(bounds, default=self.error_bound),
            confidence=CONFIDENCE,
            simulated=simulated,
            names=tuple(each.string for each in found),
            standard_errors=(self.standard_error,) * len(found),
            bounds=bounds,
            found=tuple(found),
        )

    def true_value(self, values: ArrayLike) -> dict[str, int]:
        """The most frequent strings and their counts, most frequent first."""
        names, counts = np.unique(self.as_bytes(values), return_counts=True)
        best = np.argsort(-counts, kind="stable")[: self.top]
        return {self.domain.name(names[place]): int(counts[place]) for place in best}

    def off_by(self, estimate: Any, truth: Any) -> float | None:
        """In root mean square over the truly frequent strings, of which one that is not found counts as 0."""
        counted = dict(zip(estimate.names, estimate.value.tolist(), strict=True))
        return math.sqrt(sum((counted.get(name, 0.0) - count) ** 2 for name, count in truth.items()) / len(truth))

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        """The strings that were found, each with its interval, and those that were missed where the truth is given.

        Args:
            estimate: an answer of this plan.
            truth: the most frequent strings and their counts, where they may be shown.
            view: not used: all strings that were found are shown.
        """
        return present_found(estimate, truth)

    @property
    def options(self) -> str:
        return f"{self.domain.options} --top {self.top}"

    @property
    def domain(self) -> UnlistedStrings:
        return UnlistedStrings(self.length, self.alphabet)

    def facts(self) -> list[tuple[str, str]]:
        least = self.surely_found
        promise = f"every string of at least {least:,.0f} users, {least / self.users:.2%} of all, in 95% of runs"
        if least > _USELESS * self.users:
            promise += "; to find rarer ones take more users, a shorter length, an alphabet, or a larger epsilon"
        levels = f"{self.groups} groups of users, at most {self.keep:,} prefixes after each"
        return [("finds", promise), ("levels", levels), *super(HeavyHitters, self).facts()]

    def further_numbers(self) -> dict[str, Any]:
        return {"groups": self.groups, "surely_found": self.surely_found}

    @property
    def question(self) -> str:
        return f"find the {self.top} most frequent of {self.users:,} users' strings"

    @property
    def scale(self) -> float:
        """How many users one user of the last group stands for."""
        return self.users / max(1, self.users // self.groups)

    @property
    def standard_error(self) -> float:
        """Of a count: the last level's noise, and a group that is drawn at random."""
        sampling = 0.0 if self.groups == 1 else math.sqrt(self.users * self.scale) / 2
        return math.hypot(self.scale * self._last_level.standard_error, sampling)

    @property
    def error_bound(self) -> float:
        noise = self.scale * self._level_bound(self._last_level)
        if self.groups == 1:
            return noise
        return noise + math.sqrt(self.users * self.scale * math.log(2 / self._sampling_failure) / 2)

    messages_per_user_mean = _of_the_worse_level("messages_per_user_mean")
    messages_per_user_max = _of_the_worse_level("messages_per_user_max")
    bits_per_message = _of_the_worse_level("bits_per_message")

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

    @property
    def dominates_because(self) -> str:
        return (
            "Everybody reports once, to one level's histogram, and every level's is planned for the same epsilon and "
            "delta; what is asked at a level depends on other people's reports only. At the first level: "
            + self.first_level.dominates_because
        )

    @property
    def influence(self) -> float | None:
        """What it adds to a count, or a string that it brings over a cut or takes from below it.

        A string that is passed over has at most the share of those that are kept, up to the noise.
        """
        last = self._last_level
        moved = last.influence
        return None if moved is None else self.users / self.top + self.scale * (2 * self._level_bound(last) + moved)

    @property
    def lying_client(self) -> str:
        moved = self._last_level.influence
        by = "as far as it likes" if moved is None else f"by at most {self.scale * moved:,.4g}"
        return f"moves the counts of its level {by}, and may decide whether a string near the cut is found"

    def learner(self) -> Search:
        return Search(self)

    def audited_effort(self, honest: int) -> int:
        return self.first_level.audited_effort(self._honest_of_level(honest))

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        return self.first_level.views(side, trials, self._honest_of_level(honest), bits=bits)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"noise_part": part}
