"""Histogram by correlated noise: plus and minus ones in every bin, where there are any."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.differences import negative_binomial_size
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.base import check_delta, smallest_cap
from shuffledp.protocols.counted import counted_in_runs
from shuffledp.protocols.cut import LARGEST_MOST, check_messages
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.fields import forwarded, noise
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.bounds import largest_deviation
from shuffledp.protocols.plan import unchecked
from shuffledp.protocols.polya import polya_law, pure_ratio
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import sample_polya_difference
from shuffledp.sampling.sparse import SparseNegativeBinomial, sparse_negative_binomial

# Parts of epsilon that may go to the flood, and how fast it may decay: 1 is about the fewest messages in all, faster
# decay has fewer from one user at most. The paper's are 0.1 and 0.2.
_FLOOD_PARTS = (0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7)
_FLOOD_DECAYS = (1.0, 3.0, 8.0)
_PAPER_PART, _PAPER_DECAY = 0.1, 0.2
# Of the smallest error, what may be given up for fewer messages.
_GIVEN_UP = 0.1
_CUT_PART = 1e-3
# Below this epsilon floods have many outcomes: few ways to share it are tried, none with more outcomes than so.
_SMALL_EPSILON, _FEW_PARTS, _FEW_DECAYS, _MOST_OUTCOMES = 0.2, (0.05, 0.15, 0.5), (1.0, 3.0), 1 << 17
_SMALLEST_SHAPE, _LARGEST_SHAPE = 1e-6, 1e5


@lru_cache(maxsize=64)
def _pair(ratio: float, flood_shape: float, flood_ratio: float, honest: float) -> TwoBinsPair:
    return TwoBinsPair(CorrelatedPair(ratio, flood_shape, flood_ratio, honest))


def _tail(shape: float, p: float, k: int) -> float:
    """P[NB(shape, p) > k]."""
    return float(special.betainc(k + 1, shape, p))


@lru_cache(maxsize=1024)
def _flood(privacy: Privacy, part: float, decay: float) -> tuple[float, float, float] | None:
    """The error's ratio and the smallest flood, shape and ratio, for this part of epsilon; None if none is enough."""
    half = privacy.epsilon / 2
    ratio, flood_ratio = pure_ratio((1 - part) * half), math.exp(-decay * min(1.0, part * half))
    target = privacy.delta * (1 - 2 * _CUT_PART)

    def delta(shape: float) -> float:
        if negative_binomial_size(shape, flood_ratio) + 50 / -math.log(ratio) > _MOST_OUTCOMES:
            raise InfeasibleError("epsilon", privacy.epsilon, "asks for a flood of too many outcomes", "take decoys")
        return TwoBinsPair(CorrelatedPair(ratio, shape, flood_ratio)).delta(privacy.epsilon)

    try:
        # A large delta may need no flood at all; its smallest shape is not sought for ever.
        if delta(_SMALLEST_SHAPE) <= target:
            return ratio, _SMALLEST_SHAPE, flood_ratio
        shape = smallest_meeting(delta, target, 0.0, 1.0, relative=1e-4, limit=_LARGEST_SHAPE)
        return ratio, shape, flood_ratio
    except InfeasibleError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramCorrelated(HistogramPlan):
    """Each user sends a plus one in its category, Polya shares of noise in all, and pairs of plus and minus one.

    The adversary sees how many plus ones and how many minus ones each category has. A difference of the two is the
    count plus discrete Laplace noise, independently in every bin; the pairs hide everything else. Hardly more than
    one message a user when users are many times more than categories.

    Reference: Ghazi, Kumar, Manurangsi, Pagh 2020, in parallel: [004] Table 5, [37].

    >>> plan = HistogramCorrelated.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1000)
    >>> round(plan.standard_error, 2), plan.error_bound, round(plan.messages_per_user_mean, 1)
    (3.12, 22.0, 6.6)
    """

    method: ClassVar[str] = "correlated"
    trades_messages: ClassVar[bool] = True
    theory_page: ClassVar[str] = "docs/theory/parallel-counts.md"
    law: ClassVar[str] = "discrete-laplace"
    curve: ClassVar[str] = "the curve of two bins' plus and minus ones"
    dominates_because: ClassVar[str] = (
        "The view is each category's numbers of plus and of minus ones. With everybody else's category known the "
        "user's is one plus one in one of two bins, each with its own noise of all honest users, whose shares add "
        "up exactly; the others' bins are noise alone."
    )

    ratio: float = noise("(0, 1)")
    flood_shape: float = noise(f"(0, {_LARGEST_SHAPE:.0f}]")
    flood_ratio: float = noise("(0, 1)")
    most_noise: int = noise(f"[0, {LARGEST_MOST}]")
    most_pairs: int = noise(f"[0, {LARGEST_MOST}]")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """The fewest messages on average among those whose error is within a tenth of the smallest."""
        privacy, max_messages = request.privacy, request.max_messages
        check_delta(privacy)
        every = [paper_flood(privacy)] if request.constants == "paper" else _floods(privacy)
        if not every:
            problem, way_out = "and epsilon are too small for any flood", "choose larger ones, or the method decoys"
            raise InfeasibleError("delta", privacy.delta, problem, way_out)
        domain = as_categories(categories)
        drafts = [
            unchecked(cls, **request.common, categories=domain, **_with_caps(flood, request, domain.size))
            for flood in every
        ]
        fitting = [draft for draft in drafts if max_messages is None or draft.messages_per_user_max <= max_messages]
        if not fitting:
            most = min(draft.messages_per_user_max for draft in drafts)
            problem, way_out = "what one user may send at most", "allow more messages, or take the method decoys"
            raise InfeasibleError("max_messages", max_messages, f"must be at least {most}, {problem}", way_out)
        smallest = min(draft.error_bound for draft in fitting)
        good = [draft for draft in fitting if draft.error_bound <= (1 + _GIVEN_UP) * smallest]
        best = min(good, key=lambda draft: (draft.messages_per_user_mean, draft.error_bound))
        check_messages(best.messages_per_user_mean, best.messages_per_user_max)
        return replace(best)  # asks the accountant

    @classmethod
    def least_error(cls, request: Request, **domain: Any) -> float:
        # Whatever goes to the flood, the noise has the rest of epsilon; more users than are counted on add more.
        ratio = pure_ratio((1 - min(_FLOOD_PARTS)) * request.privacy.epsilon / 2)
        bins = as_categories(domain["categories"]).size
        return largest_deviation(DiscreteLaplace(ratio), bins, independent=True)

    @property
    def noise_law(self) -> IntegerLaw:
        """The law of a bin's error."""
        return polya_law(self.users / self.honest_users, self.ratio)

    standard_error = forwarded("noise_law.standard_deviation")

    @property
    def paper_standard_error(self) -> float | None:
        return polya_law(self.users / self.honest_users, paper_flood(self.privacy)[0]).standard_deviation

    def _l_inf_error(self) -> float:
        # Events fall into bins independently, so that bins are independent.
        return largest_deviation(self.noise_law, self.bins, independent=True)

    @property
    def messages_per_user_mean(self) -> float:
        pairs = self.flood_shape * self.flood_ratio / (1 - self.flood_ratio)
        return 1 + 2 * self.bins / self.honest_users * (self.ratio / (1 - self.ratio) + pairs)

    @property
    def messages_per_user_max(self) -> int:
        return 1 + self.most_noise + 2 * self.most_pairs

    @property
    def alphabet_size(self) -> int:
        return 2 * self.bins

    @property
    def influence(self) -> float:
        # Messages are signed: all that are taken from one may be plus ones, or minus ones.
        return 2.0 * self.messages_per_user_max

    @property
    def lying_client(self) -> str:
        return f"moves a bin by at most {self.influence:,.0f}: two for each message that is a plus instead of a minus"

    def pair(self, honest: int) -> TwoBinsPair:
        return _pair(self.ratio, self.flood_shape, self.flood_ratio, honest / self.honest_users)

    @property
    def _laws(self) -> tuple[SparseNegativeBinomial, SparseNegativeBinomial]:
        """A user's noise in all bins and signs, and its pairs in all bins."""
        shares = self.honest_users
        return (
            sparse_negative_binomial(Fraction(1, shares), self.ratio, 2 * self.bins),
            sparse_negative_binomial(Fraction(self.flood_shape) / shares, self.flood_ratio, self.bins),
        )

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        factor, shares = math.exp(epsilon), self.honest_users
        cut = self.users * (
            _tail(2 * self.bins / shares, self.ratio, self.most_noise)
            + _tail(self.bins * self.flood_shape / shares, self.flood_ratio, self.most_pairs)
        )
        rounded = self.users * sum(law.distance for law in self._laws)
        most = f"at most {self.messages_per_user_max} messages a user"
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), self.curve),
            DeltaTerm("cut-off", delta_of_distance(factor, cut), most),
            DeltaTerm("sampling", delta_of_distance(factor, rounded), "what the noise tables cut off and round"),
        )

    def quieter(self, part: float) -> dict[str, Any]:
        variance = part * 2 * self.ratio / (1 - self.ratio) ** 2
        return {"ratio": (variance + 1 - math.sqrt(2 * variance + 1)) / variance}

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        kind = self._kind
        noise, flood = self._laws
        singles, places, lengths = noise.sample(codes.size, bits=bits)
        lengths = _within(singles, lengths, self.most_noise)
        pairs, bins, widths = flood.sample(codes.size, bits=bits)
        widths = _within(pairs, widths, self.most_pairs)
        # A run of equal messages each: the user's own, its noise, and the plus and minus ones of its pairs.
        owner = np.concatenate(
            (np.arange(codes.size), *(np.repeat(np.arange(codes.size), n) for n in (singles, pairs)))
        )
        owner = np.concatenate((owner, owner[codes.size + singles.sum() :]))
        messages = np.concatenate(
            [(2 * codes + 1).astype(kind), places.astype(kind), *(2 * bins.astype(kind) + sign for sign in (1, 0))]
        ).astype(kind)
        times = np.concatenate((np.ones(codes.size, dtype=np.int64), lengths, widths, widths))
        order = np.argsort(owner, kind="stable")
        sizes = np.bincount(owner, times, codes.size).astype(np.int64)
        return Reports(np.repeat(messages[order], times[order]), sizes)

    def _read(self, seen: Codes) -> Floats:
        return np.asarray((seen[1::2] - seen[::2]).astype(np.float64))

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        """Plus and minus ones as if all noise, whose sum has a law of its own, came as plus ones."""
        noise = sample_polya_difference(Fraction(self.users, self.honest_users), self.ratio, self.bins, bits=bits)
        return np.stack((np.zeros(self.bins, dtype=np.int64), summed + noise), axis=1).reshape(-1)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The noisy counts of the first category and of the second."""
        signs = [counted_in_runs(reports.payloads == message, reports, trials) for message in range(4)]
        return np.stack((signs[1] - signs[0], signs[3] - signs[2]), axis=1)


def _within(events: NDArray[np.int64], sizes: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """The sizes of each row's events, the last of them made smaller where a row has more than `most` in all."""
    before = np.concatenate(([0], np.cumsum(sizes)))
    first = np.concatenate(([0], np.cumsum(events)))[:-1]
    start = np.repeat(before[first], events)
    first_before, last = np.minimum(before[:-1] - start, most), np.minimum(before[1:] - start, most)
    return np.asarray(last - first_before)


def paper_flood(privacy: Privacy) -> tuple[float, float, float]:
    """The paper's own ratio and flood, with half of epsilon and of delta for each of two bins.

    >>> ratio, shape, flood_ratio = paper_flood(Privacy(1, 1e-6))
    >>> round(shape * flood_ratio / (1 - flood_ratio))
    4629
    """
    half = privacy.epsilon / 2
    decay = math.exp(-_PAPER_DECAY * min(1.0, _PAPER_PART * half))
    return pure_ratio((1 - _PAPER_PART) * half), 3 * (1 + math.log(2 / privacy.delta)), decay


def _floods(privacy: Privacy) -> list[tuple[float, float, float]]:
    is_small = privacy.epsilon < _SMALL_EPSILON
    parts, decays = (_FEW_PARTS, _FEW_DECAYS) if is_small else (_FLOOD_PARTS, _FLOOD_DECAYS)
    every = (_flood(privacy, part, decay) for part in parts for decay in decays)
    return [flood for flood in every if flood is not None]


def _with_caps(flood: tuple[float, float, float], request: Request, bins: int) -> dict[str, Any]:
    """The noise with the fewest messages a user that all but for a small part of delta fits into."""
    ratio, shape, flood_ratio = flood
    users, honest, privacy = request.users, request.honest, request.privacy
    limit = _CUT_PART * privacy.delta / (delta_of_distance(math.exp(privacy.epsilon), 1.0) * 2 * users)
    noise = smallest_cap(lambda k: _tail(2 * bins / honest, ratio, k), limit)
    pairs = smallest_cap(lambda k: _tail(bins * shape / honest, flood_ratio, k), limit)
    return {"ratio": ratio, "flood_shape": shape, "flood_ratio": flood_ratio, "most_noise": noise, "most_pairs": pairs}
