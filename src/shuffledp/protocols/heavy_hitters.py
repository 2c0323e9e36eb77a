"""Frequent strings of a domain nobody can list: prefixes, symbol by symbol, each from people of its own.

Users are split into disjoint groups, one a level. The group of level l reports the first l symbols of its strings, if
they continue a prefix that survived, else "other", by a histogram. Which prefixes survive is decided by what earlier
groups' histograms released, and nobody reports twice: each histogram's guarantee is that of all together. The proof is
in docs/theory/range-queries.md.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_real
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.family import CATEGORIES, Family, worst_number
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.request import Request, check_users

Strings = NDArray[np.bytes_]
PRINTABLE = bytes(range(32, 127))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitter:
    """A frequent string: its count among all users, and how far off noise and sampling can put it.

    lower..upper holds for all strings at once with `confidence`: noise may fail in 5% of runs, sampling in 5%.
    """

    string: str
    count: float
    lower: float
    upper: float
    noise_bound: float
    sampling_bound: float
    confidence: float = 2 * CONFIDENCE - 1


@dataclass(frozen=True, slots=True)
class SearchState:
    """Where a search is: the level to ask next, its candidates, and at the end what was found."""

    level: int
    candidates: tuple[bytes, ...]
    found: tuple[HeavyHitter, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeavyHitters:
    """Finds the strings that most users have.

    Strings are bytes (UTF-8), at most `length` of them, longer ones cut on the device; `alphabet` are the bytes that
    prefixes are continued by, and a string with others is "other". At most `keep` prefixes survive a level. A prefix
    survives if its estimate is at least the level's proved error bound, so at each level, with CONFIDENCE, none
    survives that nobody in the group has: this is the declared rate of false positives, 5% of runs, of the last level.

    Reference: prefix trees as in Bassily, Nissim, Stemmer, Thakurta 2017, here with shuffled histograms.

    >>> search = HeavyHitters(users=80_000, privacy=Privacy(1, 1e-6), length=4, top=3, alphabet=b"abc")
    >>> state = search.start()
    >>> len(state.candidates), search.ask(state).users
    (4, 20000)
    """

    users: int
    privacy: Privacy
    length: int = 8
    top: int = 10
    alphabet: bytes = PRINTABLE
    keep: int | None = None
    honest_fraction: float = 1.0
    max_messages: int | None = None

    def __post_init__(self) -> None:
        check_users(self.users)
        for name in ("length", "top", "keep"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | None):
                raise ParameterError(name, value, "must be a whole number", "leave it out")
        if not 1 <= self.length <= LONGEST:
            raise ParameterError("length", self.length, f"must lie in 1..{LONGEST}", "8 bytes tell most names apart")
        if self.top < 1:
            raise ParameterError("top", self.top, "must be >= 1", "10 is a common choice")
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
        plan = self.ask(self.start())
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

    def groups(self) -> list[slice]:
        """The groups, as places in an order of the users that depends on nobody's string."""
        ends = np.cumsum([0, *(self.group_size(level) for level in range(1, self.length + 1))]).tolist()
        return [slice(start, end) for start, end in itertools.pairwise(ends)]

    # --- the search --------------------------------------------------------------------------

    def start(self) -> SearchState:
        """Before anybody reported: every first symbol, and the empty string."""
        return SearchState(1, self._continued([b""], 1))

    def ask(self, state: SearchState) -> HistogramPlan:
        """What the next group must run: a histogram of the candidates and "other"."""
        if state.found is not None:
            raise ParameterError("state", "done", "has nothing more to ask", "read state.found")
        asked = (self.group_size(state.level), self.privacy, len(state.candidates) + 1)
        return _histogram(*asked, self.honest_fraction, self.max_messages)

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
            return SearchState(state.level + 1, following, None if following else ())
        found = [
            self._heavy(state.candidates[place], float(counts[place]), estimate.bound, counts.size) for place in chosen
        ]
        return SearchState(state.level + 1, (), tuple(found))

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
        lower, upper = _sampled(low, group, failure)[0], _sampled(high, group, failure)[1]
        count = counted * scale
        return HeavyHitter(
            string=string.decode(errors="replace"),
            count=count,
            lower=min(lower * self.users, count),
            upper=max(upper * self.users, count),
            noise_bound=bound * scale,
            sampling_bound=self.users * max(low - lower, upper - high),
        )

    # --- the clients' side -------------------------------------------------------------------

    def as_bytes(self, strings: ArrayLike) -> Strings:
        """Strings as the search sees them: UTF-8, cut after `length` bytes.

        A byte 0 before the end of a string becomes another byte that is not in the alphabet: NumPy ends strings by
        zeros, and a cut after one would leave another string.
        """
        array = np.asarray(strings)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "US":
            raise DataError("strings", f"{array.dtype} of shape {array.shape}", "must be a column of text", "pass one")
        # Half a surrogate pair is no text, but its owner has a string all the same: one with other bytes.
        encoded = np.char.encode(array, "utf-8", "surrogatepass") if array.dtype.kind == "U" else array
        cut = encoded.astype(f"S{self.length}")
        letters = np.ascontiguousarray(encoded).view(np.uint8).reshape(encoded.size, -1)[:, : self.length]
        zeros = (letters == 0) & (np.arange(letters.shape[1]) < np.char.str_len(encoded)[:, np.newaxis])
        if zeros.any():
            other = next(byte for byte in range(1, 256) if byte not in self.alphabet)
            cut.view(np.uint8).reshape(cut.size, -1)[:, : letters.shape[1]][zeros] = other
        return cut

    def encode(self, state: SearchState, strings: ArrayLike) -> NDArray[np.int64]:
        """Each string's candidate at this level; the last code is "other"."""
        cut = self.as_bytes(strings).astype(f"S{state.level}")
        candidates = np.array(state.candidates, dtype=f"S{state.level}")
        places = np.minimum(np.searchsorted(candidates, cut), candidates.size - 1)
        return np.where(candidates[places] == cut, places, candidates.size).astype(np.int64)


def _sampled(share: float, group: int, failure: float) -> tuple[float, float]:
    """Shares of all users that a share of a random group can come from.

    Chernoff's bound in its sharpest form; it holds for groups drawn without replacement, too (Hoeffding 1963).
    """
    needed = math.log(2 / failure) / group

    def far(p: float) -> bool:
        return _divergence(share, min(max(p, 1e-300), 1 - 1e-16)) >= needed

    upper = share + smallest_real(lambda d: share + d >= 1 or far(share + d), 0.0, 1e-6, relative=1e-6)
    lower = share - smallest_real(lambda d: share - d <= 0 or far(share - d), 0.0, 1e-6, relative=1e-6)
    return max(0.0, lower), min(1.0, upper)


def _divergence(share: float, p: float) -> float:
    """Of a coin of this share from one of p."""
    one = share * math.log(share / p) if share > 0 else 0.0
    other = (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return one + other
