"""Frequent strings of a domain nobody can list: prefixes, some bits at a time.

Each level is a histogram of the first bits of strings that continue a prefix which survived. Who is asked at which
level, and with which noise, is a method's own: see `groups` and `everybody`. Proofs: docs/theory/range-queries.md.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import AGAIN, domain, forwarded, noise, only_exact
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter, present_found
from shuffledp.protocols.heavy_hitters.histograms import level_bound
from shuffledp.protocols.heavy_hitters.levels import MOST_BINS, Descent
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.tree import Level, packed
from shuffledp.protocols.heavy_hitters.words import ANY_TEXT, UnlistedStrings
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.presentation import APART, Listing, Presentation, View, beside_others
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import InteractivePlan
from shuffledp.randomness import RandomBits

# A string that must have more than this part of all users to be found for sure is found by looking.
_USELESS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class StringSearch(InteractivePlan):
    """Finds the strings that most users have.

    Strings are UTF-8, at most `length` bytes of them, longer ones cut on the device; a string with a byte that is not
    in `alphabet` is "other". At most `keep` prefixes survive a level, those whose estimates are at least the level's
    error bound. In 95% of runs nothing is found that nobody of the last level has and every string of at least
    `surely_found` users survives to the end, of which the `top` with the largest estimates are told; in 95% of runs all
    intervals hold.

    Reference: prefix trees as in Bassily, Nissim, Stemmer, Thakurta 2017, here with shuffled histograms.

    Attributes:
        length: how many bytes of a string are looked at.
        top: how many strings are told at most.
        alphabet: the bytes that a string may have.
        max_messages: how many messages a user may send at most; None for no limit.
        bins: into how many cells a level's prefixes are hashed at most.
        keep: how many prefixes survive a level at most.
    """

    protocol: ClassVar[str] = "heavy-hitters"
    file_command: ClassVar[str] = "heavy-hitters"
    in_pieces: ClassVar[bool] = True
    theory_page: ClassVar[str] = "docs/theory/range-queries.md"
    law: ClassVar[str] = "histograms"
    is_unbiased: ClassVar[bool] = False
    run_by: ClassVar[str] = "simulate, heavy-hitters"
    title: ClassVar[str] = "Frequent strings, privately"
    unit: ClassVar[str] = " users"
    who_reports: ClassVar[str]
    """How often a person reports, in words."""

    length: int = domain(default=16)
    top: int = domain("[1, inf)", default=10)
    alphabet: bytes = domain(default=ANY_TEXT, write=lambda alphabet: alphabet.decode("latin-1"))
    max_messages: int | None = domain("[1, inf)", default=None)
    bins: int = noise(f"[2, {MOST_BINS}]")
    keep: int = noise("[1, inf)")

    @classmethod
    @abstractmethod
    def _calibrated(cls, request: Request, bits: int, top: int) -> tuple[Descent, dict[str, Any]]:
        """The widths and numbers of prefixes that meet a request, and fields of the method's own noise.

        Args:
            request: what is asked for.
            bits: how many a string has.
            top: how many strings are asked for.
        """

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
        """The widths and numbers of prefixes that find the rarest strings for sure, and the least noise for them."""
        only_exact(request.constants)
        for name, asked in (("top", top), ("keep", keep)):
            if asked is not None and asked < 1:
                raise ParameterError(name, asked, "must be >= 1", "ask for one or more, or leave it out")
        way, noise = cls._calibrated(request, UnlistedStrings(length, alphabet).bits, top)
        plan = cls(
            **request.common,
            length=length,
            top=top,
            alphabet=alphabet,
            max_messages=request.max_messages,
            bins=way.bins,
            keep=way.kept(top) if keep is None else keep,
            **noise,
        )
        plan._check_use()
        return plan

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        written = common.pop("alphabet", None)
        if not isinstance(written, str):
            raise DataError("plan.alphabet", written, "must be text", AGAIN)
        try:
            return super(StringSearch, cls).from_noise(noise, alphabet=written.encode("latin-1"), **common)
        except UnicodeEncodeError:
            raise DataError("plan.alphabet", written, "must be bytes", AGAIN) from None

    def _check_noise(self) -> None:
        super(StringSearch, self)._check_noise()
        bits = self.domain.bits
        if self.top > 1 << bits:
            raise ParameterError(
                "top", self.top, f"must be at most the {1 << bits} strings there can be", "ask for fewer"
            )
        if self.keep < self.top:
            raise ParameterError("keep", self.keep, f"must be at least the {self.top} asked for", "leave it out")
        if self.bins & (self.bins - 1) or self.bins > 1 << bits:
            raise ParameterError("bins", self.bins, f"must be a power of 2, at most 2^{bits}", AGAIN)
        if self.bins < min(2 * self.keep, 1 << bits):
            raise ParameterError("keep", self.keep, f"must be at most half of the {self.bins} bins", "keep fewer")

    def _check_use(self) -> None:
        """Refuse a search that may find nothing at all."""
        if self.groups > self.users or not self.surely_found <= self.users:
            raise InfeasibleError(
                "users",
                self.users,
                f"are too few: not even a string that all of them have is sure to pass {self.most_levels} levels",
                "find more users, shorten length, name an alphabet, or choose a larger epsilon or delta",
            )

    # --- the way down ------------------------------------------------------------------------

    @property
    def descent(self) -> Descent:
        """How the search goes down."""
        return Descent(self.domain.bits, self.bins, self.keep)

    @property
    def most_levels(self) -> int:
        """Levels of a whole search, at most."""
        return self.descent.groups

    @property
    @abstractmethod
    def groups(self) -> int:
        """The equal parts that all users are split into."""

    @property
    @abstractmethod
    def surely_found(self) -> float:
        """In 95% of runs every string of at least so many users survives every level."""

    @abstractmethod
    def level(self, state: SearchState) -> Level:
        """The candidates of the next level."""

    @abstractmethod
    def _asked(self, state: SearchState, level: Level) -> BlanketPlan:
        """What the next users run: a histogram of at least the candidates and "other"."""

    @abstractmethod
    def _after(self, state: SearchState, level: Level) -> tuple[int, int]:
        """Parts of all users that have been asked after this level, and users whom nobody asks again."""

    @abstractmethod
    def _found(self, string: str, count: float, plan: BlanketPlan) -> HeavyHitter:
        """A string that the last level's histogram counted, among all users."""

    def _level_bound(self, plan: BlanketPlan) -> float:
        """No estimate of the level is off by more, for all levels together in all but half of the failures."""
        return level_bound(plan, self.descent.fails_at_a_level())

    def start(self) -> SearchState:
        """Before anybody reported: the empty prefix."""
        return SearchState()

    def ask(self, state: SearchState) -> BlanketPlan:
        """What the next users must run: a histogram of the candidates and "other"."""
        if state.found is not None:
            raise ParameterError("state", "done", "has nothing more to ask", "read state.found")
        return self._asked(state, self.level(state))

    def tell(self, state: SearchState, estimate: VectorEstimate) -> SearchState:
        """What the level's histogram says: which prefixes survive, or, after the last level, what was found."""
        plan, level = self.ask(state), self.level(state)
        if estimate.value.size != plan.bins:
            raise ParameterError("estimate", estimate.value.size, f"must have {plan.bins} bins", "run the plan of ask")
        counts, bound = np.asarray(estimate.value[: level.candidates]), self._level_bound(plan)
        depth = level.depth + level.width
        is_last = depth == self.descent.bits
        best = np.argsort(-counts, kind="stable")[: self.top if is_last else self.keep]
        best = best[counts[best] >= bound]
        survived = level.continued(best)
        if is_last:
            names = (self.domain.name(self.domain.string(bits)) for bits in survived)
            found = [self._found(name, count, plan) for name, count in zip(names, counts[best].tolist(), strict=True)]
            return SearchState(depth, (), self.groups, self.users, tuple(found))
        prefixes, (parts, users) = tuple(sorted(packed(survived).tolist())), self._after(state, level)
        return SearchState(depth, prefixes, parts, users, None if prefixes else ())

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
        """The end of a search among these people.

        Args:
            strings: a string a user.
            run: gets a level's histogram and its users' codes, and returns the estimate.
            bits: what groups are drawn from, where there are any.
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

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> FoundStrings:
        splitting, reporting = bits.spawn(2)
        state = self.searched(values, lambda plan, codes: plan.sample_estimate(codes, bits=reporting), bits=splitting)
        return self.estimate_of(state.found or (), simulated=not bits.is_secure)

    def learner(self) -> Search:
        return Search(self)

    @property
    def tally_bytes(self) -> int:
        return 8 * (self.bins + 2)

    # --- what was found ----------------------------------------------------------------------

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
        """The most frequent strings that can be found and their counts, most frequent first."""
        strings = self.as_bytes(values)
        names, counts = np.unique(strings[self.domain.can_spell(strings)], return_counts=True)
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

    def compared(self) -> Listing:
        """The plan's error alone: of no other way to search is an error proved here."""
        rows = [(f"this plan ({self.method})", self.standard_error, APART)]
        title = "The error of a count; no other model's is proved here"
        return beside_others(title, ("who adds it", "standard error"), self.standard_error, rows)

    @property
    def options(self) -> str:
        return f"{self.domain.options} --top {self.top}"

    @property
    def domain(self) -> UnlistedStrings:
        return UnlistedStrings(self.length, self.alphabet)

    @property
    @abstractmethod
    def levels_in_words(self) -> str:
        """Who is asked at how many levels."""

    def facts(self) -> list[tuple[str, str]]:
        least = math.ceil(self.surely_found)
        promise = f"every string of at least {least:,} users, {least / self.users:.2%} of all, in 95% of runs"
        promise += f", if it is among the top {self.top} of the estimates"
        if least > _USELESS * self.users:
            promise += "; to find rarer ones take more users, a shorter length, an alphabet, or a larger epsilon"
        levels = f"{self.levels_in_words}, at most {self.keep:,} prefixes after each"
        return [("finds", promise), ("levels", levels), *super(StringSearch, self).facts()]

    def further_numbers(self) -> dict[str, Any]:
        return {"groups": self.groups, "surely_found": self.surely_found}

    @property
    def question(self) -> str:
        return f"find the {self.top} most frequent of {self.users:,} users' strings"

    # --- one level ---------------------------------------------------------------------------

    @property
    def first_level(self) -> BlanketPlan:
        """What the first users run."""
        return self.ask(self.start())

    @property
    @abstractmethod
    def _last_level(self) -> BlanketPlan:
        """What the last level runs where as many prefixes as can be survived."""

    @property
    def scale(self) -> float:
        """How many users one user of the last level stands for."""
        return self.users / max(1, self.users // self.groups)

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
        return f"moves the counts of a level {by}, and may decide whether a string near the cut is found"
