"""Distinct elements: how many categories anybody has at all, from one noisy parity a category."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.mixing import MOST_SHARES, distance_of_each, mixing_distance_of, smallest_messages
from shuffledp.accounting.pairs import FinitePair
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.counted import first_codes
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.error_bounds import CONFIDENCE, rounding_deviation, with_errors
from shuffledp.protocols.family import CATEGORIES, Family
from shuffledp.protocols.fields import domain, forwarded, noise, only_exact
from shuffledp.protocols.labels import label_bits, labelled_reports
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.splitting import Splitting
from shuffledp.protocols.streaming import LawOfSums, summed
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial, coin_bits

# Of delta, what the noise may take; the rest is for the shares.
_NOISE_PART = 0.5


@lru_cache(maxsize=256)
def _pair(odd: float) -> FinitePair:
    """The parities of two bins: the one that the user is in is a fair coin, the other, if empty, is odd with `odd`."""
    fair, noisy = np.array([0.5, 0.5]), np.array([1 - odd, odd])
    words = f"P = (Z, E), Q = (E, Z), where Z is a fair coin and E is 1 with probability {odd:.8g}"
    return FinitePair(p=np.outer(fair, noisy).ravel(), q=np.outer(noisy, fair).ravel(), words=words)


def parity_mixing(honest: int, shares: int, bins: int = 1) -> float:
    """What permuted shares of bins' parities show beyond them: E[2^(c-1)] <= E[q^(c-1)] for every modulus q >= 2.

    The recursion of `mixing_distance` has no negative term if q >= n - 1, so the smallest such q bounds 2.

    >>> parity_mixing(1000, 7) < 1e-6
    True
    """
    return mixing_distance_of([(honest, shares, max(2, honest - 1), bins)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Parities(LawOfSums, RoundPlan):
    """For every category a user sends a bit in shares modulo 2: a fair coin for its own, for others a rare 1.

    The adversary sees, up to a stated distance, one parity a category: a fair coin if anybody has it, else 1 with a
    probability below 1/2. Their number, centred and scaled, is the number of categories that anybody has.

    Reference: [004] Table 3; Balcer, Cheu, Joseph, Mao 2021, with the noise and the shares from the exact curve.

    >>> plan = Parities.plan(users=1000, privacy=Privacy(1, 1e-6), categories=100)
    >>> round(plan.standard_error, 1), plan.shares
    (21.6, 7)
    """

    protocol: ClassVar[str] = "distinct-elements"
    method: ClassVar[str] = "parities"
    theory_page: ClassVar[str] = "docs/theory/survey-tables.md"
    is_labelled: ClassVar[bool] = True
    can_be_voided: ClassVar[bool] = True
    law: ClassVar[str] = "parity"
    title: ClassVar[str] = "A private number of distinct elements"
    alphabet_size: ClassVar[int] = 2
    local_delta: ClassVar[float] = 0.0
    dominates_because: ClassVar[str] = (
        "Up to the transport term a bin shows its parity only: a fair coin if anybody honest has the category, else "
        "the parity of all honest users' rare ones. Replacing a user's category changes at most the bin it leaves "
        "and the one it joins, most if nobody else is in them."
    )

    categories: Categories = domain(read=as_categories, write=Categories.document)
    probability: float = noise("(0, 1/2]")
    shares: int = noise(f"[1, {MOST_SHARES}]")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """The rarest 1 whose parity over the honest users hides a fair coin, and the fewest shares."""
        privacy = request.privacy
        only_exact(request.constants)
        honest = request.honest
        odd = _smallest_odd(privacy)
        # Rounded up: the honest users' parity must not be odd more rarely than asked for.
        probability = min(0.5, _each_odd(odd, honest) * (1 + 1e-12)) if odd < 0.5 else 0.5
        left = privacy.delta - _pair(_odd(probability, honest)).delta(privacy.epsilon)
        distance = distance_of_each(left * (1 - 1e-9) / (1 + math.exp(privacy.epsilon)), 2)
        return cls(
            **request.common,
            categories=as_categories(categories),
            probability=probability,
            shares=smallest_messages(honest, max(2, honest - 1), distance),
        )

    # --- numbers -----------------------------------------------------------------------------

    bins: ClassVar[int] = forwarded("categories.size")
    """How many categories there are."""

    domain = forwarded("categories")

    @property
    def message_influence(self) -> float:
        return 1 / (0.5 - self.odd)

    @property
    def odd(self) -> float:
        """The probability of an odd parity where nobody is, when everybody follows the protocol."""
        return _odd(self.probability, self.users)

    @property
    def standard_error(self) -> float:
        return self._error_with(min(self.bins, self.users))

    def _error_with(self, distinct: int) -> float:
        variance = distinct / 4 + (self.bins - distinct) * self.odd * (1 - self.odd)
        return math.sqrt(variance) / (0.5 - self.odd)

    def standard_errors_for(self, values: ArrayLike) -> float:
        return self._error_with(int(self.true_value(values)))

    @property
    def error_bound(self) -> float:
        """The error is at most this with probability CONFIDENCE, whatever the data: Hoeffding over the bins."""
        return rounding_deviation(self.bins, 1 - CONFIDENCE) / (0.5 - self.odd)

    @property
    def messages_per_user_max(self) -> int:
        return self.bins * self.shares

    @property
    def bits_per_message(self) -> int:
        return 1 + label_bits(self.bins)

    @property
    def local_epsilon(self) -> float:
        return math.log((1 - self.probability) / self.probability)

    def reference(self) -> dict[str, float | None]:
        central = CuratorDiscreteLaplace(privacy=self.privacy).standard_error
        return {**RoundPlan.reference(self), "central_standard_error": central}

    @property
    def question(self) -> str:
        return f"count the categories, of {self.bins:,}, that any of {self.users:,} users has"

    # --- privacy -----------------------------------------------------------------------------

    def pair(self, honest: int) -> FinitePair:
        return _pair(_odd(self.probability, honest))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        distance = parity_mixing(honest, self.shares, 2)
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the hockey-stick curve of two bins' parities"),
            DeltaTerm(
                "transport",
                delta_of_distance(math.exp(epsilon), distance),
                f"(1 + e^epsilon) times {distance:.3g}, what two bins' shuffled shares show beyond their parities",
            ),
            DeltaTerm("sampling", 0.0, "coins and shares are drawn exactly"),
        )

    @property
    def influence(self) -> float:
        return self.bins / (0.5 - self.odd)

    @property
    def lying_client(self) -> str:
        return f"moves the number by at most {self.influence:,.4g}, turning every parity around, or voids the batch"

    # --- the two sides -----------------------------------------------------------------------

    @property
    def _splitting(self) -> Splitting:
        return Splitting(self.shares, 1, 0, 1)

    def true_value(self, values: ArrayLike) -> float:
        return float(np.unique(self.check_values(values)).size)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        codes = self.check_values(values)
        rare = bernoulli(self.probability, codes.size * self.bins, bits=bits).reshape(codes.size, self.bins)
        sent = rare.astype(np.int64)
        sent[np.arange(codes.size), codes] = coin_bits(0.5, codes.size, bits=bits)
        return labelled_reports(self._splitting.split(sent, bits=bits), self.bins)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self._splitting.tally(batch, malformed, self.bins)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Any:
        self.check_reports(tally.reports)
        return self._from_odd(int(self._splitting.sums(tally, self.users * self.shares).sum()), simulated=simulated)

    def _from_odd(self, bins: int, *, simulated: bool) -> Any:
        """The estimate where so many bins' parities are odd."""
        return with_errors(self, (bins - self.bins * self.odd) / (0.5 - self.odd), simulated=simulated)

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        codes = self.check_values(values)
        return summed(np.bincount(codes, minlength=self.bins), codes.size)

    @property
    def tally_bytes(self) -> int:
        return 8 * self.bins

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> Any:
        self.check_reports(summary.reports)
        distinct = int(np.count_nonzero(summary.counts))
        fair, rare = (
            int(binomial(count, chance, 1, bits=bits)[0])
            for count, chance in ((distinct, 0.5), (self.bins - distinct, self.odd))
        )
        return self._from_odd(fair + rare, simulated=not bits.is_secure)

    # --- the audit ---------------------------------------------------------------------------

    neighbours = property(first_codes)

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The parities of the first two categories: all that is left of the shares but for the transport term."""
        shares = reports.payloads.reshape(trials, -1, self.bins, self.shares)[:, :, :2]
        return np.asarray(shares.sum(axis=(1, 3), dtype=np.int64) & 1)

    def quieter(self, part: float) -> dict[str, Any]:
        """Fields of a twin whose empty bins have this part of the variance."""
        odd = _odd(self.probability, self.honest_users)
        quiet = probability_with(part * odd * (1 - odd))
        return {"probability": _each_odd(quiet, self.honest_users)}


def _odd(probability: float, users: int) -> float:
    """The probability that so many rare ones add up to an odd number: (1 - (1 - 2p)^n) / 2."""
    return 0.5 if probability >= 0.5 else -math.expm1(users * math.log1p(-2 * probability)) / 2


def _each_odd(odd: float, users: int) -> float:
    """How rare the ones of each of so many users are whose parity is odd with this probability."""
    return -math.expm1(math.log1p(-2 * odd) / users) / 2


@lru_cache(maxsize=256)
def _smallest_odd(privacy: Privacy) -> float:
    """The rarest odd parity of an empty bin that hides a fair coin in it; about 1 / (1 + e^epsilon)."""
    allowed = _NOISE_PART * privacy.delta
    return smallest_meeting(lambda odd: 0.0 if odd >= 0.5 else _pair(odd).delta(privacy.epsilon), allowed, 0.0, 0.1)


DistinctElements: Family[Parities] = Family.of(
    "distinct-elements", "How many of the categories anybody has at all.", Parities, domain=(CATEGORIES,)
)
