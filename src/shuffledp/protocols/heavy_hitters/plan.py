"""Frequent strings of a domain nobody can list: prefixes, symbol by symbol, each from people of its own.

Users are split into disjoint groups, one a level. The group of level l reports the first l symbols of its strings, if
they continue a prefix that survived, else "other", by a histogram. Which prefixes survive is decided by what earlier
groups' histograms released, and nobody reports twice: each histogram's guarantee is that of all together. The proof is
in docs/theory/range-queries.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.family import CATEGORIES, Family, worst_number
from shuffledp.protocols.fields import AGAIN, domain, forwarded, only_exact
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter, present_found, sampled_shares
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.words import PRINTABLE, UnlistedStrings
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.presentation import Presentation, View
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import InteractivePlan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation

LONGEST = 64
_FEW_MESSAGES: Family[HistogramPlan] = Family.of(
    "histogram", "Histograms of few messages.", Decoys, Buckets, domain=(CATEGORIES,), error=worst_number
)


@lru_cache(maxsize=256)
def _histogram(
    users: int, privacy: Privacy, categories: int, honest_fraction: float, max_messages: int | None
) -> HistogramPlan:
    """By the methods that send few messages whatever happens: a search asks for many histograms, one after another."""
    request = Request(users=users, privacy=privacy, honest_fraction=honest_fraction, max_messages=max_messages)
    return _FEW_MESSAGES.choice(request, categories=categories).plan


def _of_the_worse_level(name: str) -> Any:
    """The larger of the first and the last level's numbers of this name."""
    return property(lambda search: max(getattr(level, name) for level in (search.first_level, search._last_level)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(InteractivePlan):
    """Finds the strings that most users have.

    Strings are bytes (UTF-8), at most `length` of them, longer ones cut on the device; `alphabet` are the bytes that
    prefixes are continued by, and a string with others is "other". At most `keep` prefixes survive a level. A prefix
    survives if its estimate is at least the level's proved error bound, so at each level, with CONFIDENCE, none
    survives that nobody in the group has: this is the declared rate of false positives, 5% of runs, of the last level.

    The adversary sees every level's permuted histogram messages; a user's own are in one of them.

    Reference: prefix trees as in Bassily, Nissim, Stemmer, Thakurta 2017, here with shuffled histograms.

    >>> search = HeavyHitters(users=80_000, privacy=Privacy(1, 1e-6), length=4, top=3, alphabet=b"abc")
    >>> state = search.start()
    >>> len(state.candidates), search.ask(state).users
    (4, 20000)
    """

    protocol: ClassVar[str] = "heavy-hitters"
    method: ClassVar[str] = "prefixes"
    theory_page: ClassVar[str] = "docs/theory/range-queries.md"
    law: ClassVar[str] = "histograms"
    is_unbiased: ClassVar[bool] = False
    asked: ClassVar[str] = "rounds of different people"
    run_by: ClassVar[str] = "simulate, heavy-hitters"
    title: ClassVar[str] = "Frequent strings, privately"
    unit: ClassVar[str] = " users"

    length: int = domain(f"[1, {LONGEST}]", way_out="8 bytes tell most names apart", default=8)
    top: int = domain("[1, inf)", way_out="10 is a common choice", default=10)
    alphabet: bytes = domain(default=PRINTABLE, write=lambda alphabet: alphabet.decode("latin-1"))
    keep: int | None = domain("[1, inf)", way_out="leave it out", default=None)
    max_messages: int | None = domain("[1, inf)", way_out="leave it out for no limit", default=None)
    noise_part: float = 1.0
    """The part of every level's noise variance that is left: 1, but in the quieter twins of an audit."""

    @classmethod
    def for_request(cls, request: Request, **domain: Any) -> Self:
        """Groups and levels follow from the number of users and the length alone."""
        only_exact(request.constants)
        return cls(**request.common, max_messages=request.max_messages, **domain)

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        written = common.pop("alphabet", None)
        if not isinstance(written, str):
            raise DataError("plan.alphabet", written, "must be text", AGAIN)
        try:
            return cls(alphabet=written.encode("latin-1"), **common)
        except UnicodeEncodeError:
            raise DataError("plan.alphabet", written, "must be bytes", AGAIN) from None

    def _check_noise(self) -> None:
        super(HeavyHitters, self)._check_noise()
        if not isinstance(self.alphabet, bytes):
            raise ParameterError("alphabet", self.alphabet, "must be bytes", "encode it: text.encode()")
        symbols = set(self.alphabet)
        if not 1 <= len(symbols) <= 254 or 0 in symbols or len(symbols) != len(self.alphabet):
            raise ParameterError(
                "alphabet", self.alphabet, "must be different bytes, at most 254 and none 0", "list the symbols once"
            )
        if self.keep is not None and self.keep < self.top:
            raise ParameterError("keep", self.keep, f"must be at least the {self.top} asked for", "leave it out")
        if self.group_size(self.length) < 1:
            raise InfeasibleError("users", self.users, f"must be at least {self.length}", "one a level at least")
        if self.noise_part != 1:
            raise ParameterError("noise_part", self.noise_part, "must be 1 in a plan that protects", "leave it out")
        plan = self.first_level
        if 2 * plan.error_bound > plan.users:
            raise InfeasibleError(
                "users",
                self.users,
                f"are too few: {plan.users:,} report at a level, and noise alone can look like {plan.error_bound:,.0f}",
                "find more users, shorten length, or choose a larger epsilon or delta",
            )

    @property
    def survivors(self) -> int:
        """Prefixes that a level passes on, at most."""
        return self.keep or max(16, 2 * self.top)

    def group_size(self, level: int) -> int:
        """Users of a level's group."""
        return self.users // self.length + (1 if level <= self.users % self.length else 0)

    def start(self) -> SearchState:
        """Before anybody reported: every first symbol, and the empty string."""
        return SearchState(1, self._continued([b""], 1))

    def ask(self, state: SearchState) -> HistogramPlan:
        """What the next group must run: a histogram of the candidates and "other"."""
        if state.found is not None:
            raise ParameterError("state", "done", "has nothing more to ask", "read state.found")
        return self._level(self.group_size(state.level), len(state.candidates) + 1)

    def _level(self, users: int, categories: int) -> HistogramPlan:
        plan = _histogram(users, self.privacy, categories, self.honest_fraction, self.max_messages)
        return plan if self.noise_part == 1 else plan.twin(self.noise_part)

    @property
    def first_level(self) -> HistogramPlan:
        """What the first group runs. Every level's histogram is planned for the same (epsilon, delta)."""
        return self.ask(self.start())

    @property
    def _last_level(self) -> HistogramPlan:
        """What the last group runs where as many prefixes as can be survived."""
        return self._level(self.group_size(self.length), self.survivors * (len(self.alphabet) + 1) + 1)

    def tell(self, state: SearchState, estimate: VectorEstimate) -> SearchState:
        """What the group's histogram says: which prefixes survive, or, after the last level, what was found."""
        plan = self.ask(state)
        counts = np.asarray(estimate.value[:-1])
        if counts.size != len(state.candidates):
            raise ParameterError("estimate", counts.size, f"must have {plan.bins} bins", "run the plan of ask")
        last = state.level == self.length
        limit = self.top if last else self.survivors
        best = np.argsort(-counts, kind="stable")[:limit]
        chosen = [int(place) for place in best if counts[place] >= estimate.bound]
        if not last:
            survived = [state.candidates[place] for place in chosen]
            following = self._continued(survived, state.level + 1)
            return SearchState(state.level + 1, following, None if following else (), state.users + plan.users)
        found = [
            self._heavy(state.candidates[place], float(counts[place]), estimate.bound, counts.size) for place in chosen
        ]
        return SearchState(state.level + 1, (), tuple(found), state.users + plan.users)

    def _continued(self, prefixes: Sequence[bytes], level: int) -> tuple[bytes, ...]:
        """Prefixes of this length or strings that ended before, in the order of bytes."""
        found = set()
        for prefix in prefixes:
            found.add(prefix)
            if len(prefix) == level - 1:
                found |= {prefix + bytes([symbol]) for symbol in self.alphabet}
        return tuple(sorted(found))

    def _heavy(self, string: bytes, counted: float, bound: float, candidates: int) -> HeavyHitter:
        group = self.group_size(self.length)
        scale = self.users / group
        low, high = max(0.0, counted - bound) / group, min(float(group), counted + bound) / group
        failure = (1 - CONFIDENCE) / candidates
        lower, upper = sampled_shares(low, group, failure)[0], sampled_shares(high, group, failure)[1]
        count = counted * scale
        return HeavyHitter(
            string=string.decode(errors="replace"),
            count=count,
            lower=min(lower * self.users, count),
            upper=max(upper * self.users, count),
            noise_bound=bound * scale,
            sampling_bound=self.users * max(low - lower, upper - high),
        )

    as_bytes = forwarded("domain.check_values")
    """Strings as the search sees them: UTF-8, cut after `length` bytes."""

    def codes(self, state: SearchState, strings: ArrayLike) -> NDArray[np.int64]:
        """Each string's candidate at this level; the last code is "other"."""
        cut = self.as_bytes(strings).astype(f"S{state.level}")
        candidates = np.array(state.candidates, dtype=f"S{state.level}")
        places = np.minimum(np.searchsorted(candidates, cut), candidates.size - 1)
        return np.where(candidates[places] == cut, places, candidates.size).astype(np.int64)

    def searched(
        self,
        strings: ArrayLike,
        run: Callable[[HistogramPlan, NDArray[np.int64]], VectorEstimate],
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
            confidence=2 * CONFIDENCE - 1,
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
        return {names[place].decode(errors="replace"): int(counts[place]) for place in best}

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
    def domain(self) -> UnlistedStrings:
        return UnlistedStrings(self.length, self.alphabet)

    @property
    def question(self) -> str:
        return f"find the {self.top} most frequent of {self.users:,} users' strings"

    @property
    def scale(self) -> float:
        """How many users one user of the last group stands for."""
        return self.users / self.group_size(self.length)

    @property
    def standard_error(self) -> float:
        """Of a count: the last level's noise, and a group that is drawn at random."""
        sampling = self.users / (2 * math.sqrt(self.group_size(self.length)))
        return math.hypot(self.scale * self._last_level.standard_error, sampling)

    @property
    def error_bound(self) -> float:
        group, last = self.group_size(self.length), self._last_level
        sampling = math.sqrt(math.log(2 * last.bins / (1 - CONFIDENCE)) / (2 * group))
        return self.scale * last.error_bound + self.users * sampling

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
        return None if moved is None else self.users / self.top + self.scale * (2 * last.error_bound + moved)

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
