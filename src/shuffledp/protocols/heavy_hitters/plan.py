"""Frequent strings of a domain nobody can list: prefixes, some bits at a time, each level from people of its own.

Users are split at random into disjoint groups, one a level. A level's group reports the first bits of its strings, if
they continue a prefix that survived, else "other", by a histogram. Which prefixes survive is decided by what earlier
groups' histograms released, and nobody reports twice: each histogram's guarantee is that of all together. How many bits
a level adds and how many prefixes survive is planned so that the rarest strings are sure to be found. The proofs are in
docs/theory/range-queries.md.
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
from shuffledp.protocols.fields import AGAIN, domain, noise, only_exact
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter, present_found, sampled_shares
from shuffledp.protocols.heavy_hitters.levels import MOST_BINS, SAMPLING_FAILURE, Descent, best_descent
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.words import ANY_TEXT, Bits, Strings, UnlistedStrings
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.presentation import Presentation, View
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import InteractivePlan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation

# Strings that are spelled at a time, when a group's places in the tree are looked up.
_BLOCK = 1 << 16
# Messages that a user sends at most where no limit is given.
_MOST_MESSAGES = 32
# A string that must have more than this part of all users to be found is found by looking.
_USELESS = 0.05
_FEW_MESSAGES: Family[BlanketPlan] = Family.of(
    "histogram", "Histograms of few messages.", Decoys, Buckets, domain=(CATEGORIES,), error=worst_number
)


@lru_cache(maxsize=256)
def _histogram(
    users: int, privacy: Privacy, categories: int, honest_fraction: float, max_messages: int | None
) -> BlanketPlan:
    """By the methods that send few messages whatever happens: a search asks for many histograms, one after another."""
    few = _MOST_MESSAGES if max_messages is None else max_messages
    request = Request(users=users, privacy=privacy, honest_fraction=honest_fraction, max_messages=few)
    return _FEW_MESSAGES.choice(request, categories=categories).plan


@lru_cache(maxsize=256)
def _bound(level: BlanketPlan, failure: float) -> float:
    return level.bound_at(failure)


def _of_the_worse_level(name: str) -> Any:
    """The larger of the first and the last level's numbers of this name."""
    return property(lambda search: max(getattr(level, name) for level in (search.first_level, search._last_level)))


def _packed(bits: Bits) -> Strings:
    """Rows of bits as strings of bytes, which sort alike."""
    packed = np.packbits(bits, axis=1) if bits.shape[1] else np.zeros((len(bits), 1), dtype=np.uint8)
    return np.ascontiguousarray(packed).view(f"S{packed.shape[1]}")[:, 0]


def _unpacked(prefixes: Sequence[bytes], depth: int) -> Bits:
    """The first bits of each prefix, a row each."""
    width = max(1, math.ceil(depth / 8))
    rows = np.frombuffer(b"".join(prefix.ljust(width, b"\0") for prefix in prefixes), dtype=np.uint8)
    return np.unpackbits(rows.reshape(len(prefixes), width), axis=1)[:, :depth]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters(InteractivePlan):
    """Finds the strings that most users have.

    Strings are UTF-8, at most `length` bytes of them, longer ones cut on the device; a string with a byte that is not
    in `alphabet` is "other". At most `keep` prefixes survive a level, those whose estimates are at least the level's
    error bound. In 95% of runs all of this is true at once: nothing is found that nobody in the last group has, every
    string of at least `surely_found` users survives to the end, and all intervals hold.

    The adversary sees every level's permuted histogram messages; a user's own are in one of them.

    Reference: prefix trees as in Bassily, Nissim, Stemmer, Thakurta 2017, here with shuffled histograms.

    >>> search = HeavyHitters.plan(users=300_000, privacy=Privacy(1, 1e-6), length=8, top=3)
    >>> search.groups, search.keep, round(search.surely_found)
    (6, 2048, 950)
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
            level = _histogram(users, request.privacy, way.bins + 1, request.honest_fraction, request.max_messages)
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
        return _bound(level, self.descent.fails_at_a_level())

    def _place(self, part: int) -> int:
        """The users before this part of all users."""
        return self.users * part // self.groups

    def start(self) -> SearchState:
        """Before anybody reported: the empty prefix."""
        return SearchState()

    def _next(self, state: SearchState) -> tuple[int, int, NDArray[np.bool_]]:
        """The next level: the bits that it adds, the parts of the users that are asked, and which prefixes ended."""
        ended = self.domain.have_ended(_unpacked(state.prefixes, state.depth))
        left, parts = self.descent.bits - state.depth, self.groups - state.parts
        width = self.descent.width(int((~ended).sum()), int(ended.sum()), left)
        return width, parts // (1 + self.descent.most_after(left - width)), ended

    def _first_bins(self, width: int, ended: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The first bin of each prefix, and the number of all: a string that ended has one, a prefix 2^width."""
        sizes = np.ones(ended.size, dtype=np.int64)
        sizes[~ended] = 1 << width if not ended.all() else 0
        return np.concatenate(([0], np.cumsum(sizes)))

    def ask(self, state: SearchState) -> BlanketPlan:
        """What the next group must run: a histogram of the candidates and "other"."""
        if state.found is not None:
            raise ParameterError("state", "done", "has nothing more to ask", "read state.found")
        width, parts, ended = self._next(state)
        users = self._place(state.parts + parts) - state.users
        return self._level(users, int(self._first_bins(width, ended)[-1]) + 1)

    def _level(self, users: int, categories: int) -> BlanketPlan:
        plan = _histogram(users, self.privacy, categories, self.honest_fraction, self.max_messages)
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
        plan = self.ask(state)
        width, parts, ended = self._next(state)
        counts, bound = np.asarray(estimate.value[:-1]), self._level_bound(plan)
        if counts.size != plan.bins - 1:
            raise ParameterError("estimate", counts.size, f"must have {plan.bins} bins", "run the plan of ask")
        depth = state.depth + width
        is_last = depth == self.descent.bits
        best = np.argsort(-counts, kind="stable")[: self.top if is_last else self.keep]
        best = best[counts[best] >= bound]
        survived = self._continued(state, width, ended, best)
        if is_last:
            found = [
                self._heavy(self.domain.string(bits), float(counts[place]), bound, plan.users)
                for bits, place in zip(survived, best, strict=True)
            ]
            return SearchState(depth, (), self.groups, self.users, tuple(found))
        prefixes, parts = tuple(sorted(_packed(survived).tolist())), state.parts + parts
        return SearchState(depth, prefixes, parts, self._place(parts), None if prefixes else ())

    def _continued(self, state: SearchState, width: int, ended: NDArray[np.bool_], bins: NDArray[np.int64]) -> Bits:
        """The bits of these candidates: of a prefix, and the next ones, which are zeros where it ended."""
        firsts = self._first_bins(width, ended)
        which = np.searchsorted(firsts, bins, side="right") - 1
        following = (bins - firsts[which])[:, np.newaxis] >> np.arange(width)[::-1] & 1
        return np.hstack((_unpacked(state.prefixes, state.depth)[which], following.astype(np.uint8)))

    def _heavy(self, string: bytes, counted: float, bound: float, group: int) -> HeavyHitter:
        """A count among all users: noise is off by the bound, and the group is one of those that may be asked last."""
        scale = self.users / group
        low, high = max(0.0, counted - bound) / group, min(float(group), counted + bound) / group
        lower, upper = low, high
        if group < self.users:
            failure = self._sampling_failure
            lower, upper = sampled_shares(low, group, failure)[0], sampled_shares(high, group, failure)[1]
        count = counted * scale
        return HeavyHitter(
            string=self.domain.name(string),
            count=count,
            lower=min(lower * self.users, count),
            upper=max(upper * self.users, count),
            noise_bound=bound * scale,
            sampling_bound=self.users * max(low - lower, upper - high),
        )

    @property
    def _sampling_failure(self) -> float:
        """For every string that somebody has, and every run of parts that may be the last group: chosen ones too."""
        return SAMPLING_FAILURE / (self.users * self.groups * (self.groups + 1) / 2)

    def as_bytes(self, strings: ArrayLike) -> Strings:
        """Strings as the search sees them: UTF-8, cut after `length` bytes."""
        return self.domain.check_values(strings)

    def codes(self, state: SearchState, strings: ArrayLike) -> NDArray[np.int64]:
        """Each string's candidate at this level; the last code is "other"."""
        every = self.as_bytes(strings)
        width, _, ended = self._next(state)
        firsts = self._first_bins(width, ended)
        prefixes = np.array(state.prefixes, dtype=f"S{max(1, math.ceil(state.depth / 8))}")
        places = 1 << np.arange(0 if ended.all() else width, dtype=np.int64)[::-1]
        codes = np.empty(every.size, dtype=np.int64)
        for start in range(0, every.size, _BLOCK):
            strings = every[start : start + _BLOCK]
            bits = self.domain.spelled(strings)
            here = _packed(bits[:, : state.depth])
            which = np.minimum(np.searchsorted(prefixes, here), prefixes.size - 1)
            following = bits[:, state.depth : state.depth + places.size].astype(np.int64) @ places
            known = (prefixes[which] == here) & self.domain.can_spell(strings)
            candidates = firsts[which] + np.where(ended[which], 0, following)
            codes[start : start + _BLOCK] = np.where(known, candidates, firsts[-1])
        return codes

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
    def domain(self) -> UnlistedStrings:
        return UnlistedStrings(self.length, self.alphabet)

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
