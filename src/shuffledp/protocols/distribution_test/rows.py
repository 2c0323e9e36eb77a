"""The single-message test: one row of bits a user, flipped at random, amplified by the shuffle."""

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.shuffled_rows import ShuffledRowsCurve, smallest_spurious
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.distribution_test.base import DistributionTest
from shuffledp.protocols.distribution_test.claim import Claim
from shuffledp.protocols.distribution_test.moments import ScoreMoments, rows_moments
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.fields import forwarded, noise, only_exact
from shuffledp.protocols.labels import label_bits
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import column_scores
from shuffledp.sampling.bernoulli import bernoulli

WORD = 64
# Candidates for how often a row keeps its own bit; 2/3 is best where noise dominates.
KEPT = (0.5, 0.6, 2 / 3, 0.75, 0.85)
_spurious = lru_cache(maxsize=1024)(smallest_spurious)


@lru_cache(maxsize=256)
def _delta(curve: ShuffledRowsCurve, epsilon: float) -> float:
    return curve.delta(epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsTest(DistributionTest):
    """Each user sends a row of bits: 1 with probability `kept` at its own bin, `spurious` elsewhere.

    The adversary sees the shuffled rows. Up to 64 bins a row is one message; a longer one travels as words of 64 bits,
    labelled by their place and shuffled apart, which is a post-processing of whole shuffled rows: it shows no more.

    Reference: Canonne, Lyu 2022, the private-coin tester through amplification. With flips of one probability, as in
    RAPPOR, users must grow like d; with rare spurious ones like d^(3/4), as they should.
    """

    method: ClassVar[str] = "rows"
    law: ClassVar[str] = "rows"
    local_delta: ClassVar[float] = 0.0
    dominates_because: ClassVar[str] = (
        "Each row comes with a stated probability from a blanket that does not depend on its user's bin; the other "
        "honest users' blankets hide which of two values a row is of, by the four types that its two bits have."
    )

    kept: float = noise("(0, 1)")
    spurious: float = noise("(0, 1)")

    @classmethod
    def for_request(cls, request: Request, *, public_seed: int | None = None, **claim: Any) -> Self:
        """Among a few probabilities to keep the own bit, that with the largest signal for its noise."""
        only_exact(request.constants)
        bins = Claim(**claim).size
        # Rows that are private alone, for crowds too small for anything else.
        alone = _kept_alone(request.privacy.epsilon)
        found = {alone: 1 - alone}
        for kept in KEPT:
            with suppress(InfeasibleError):
                found[kept] = _spurious(request.privacy, request.honest, kept)

        def strength(kept: float) -> float:
            moments = rows_moments(request.users, kept, found[kept], bins)
            return moments.signal / moments.deviation

        best = max(found, key=strength)
        return cls(**request.common, **claim, kept=best, spurious=found[best])

    @property
    def local_epsilon(self) -> float:
        """What a row satisfies alone, without the shuffle."""
        return ShuffledRowsCurve(self.kept, self.spurious, self.users).local_epsilon

    @property
    def words(self) -> int:
        """How many messages of 64 bits a row is sent as."""
        return -(-self.bins // WORD)

    @property
    def is_labelled(self) -> bool:  # type: ignore[override]
        return self.words > 1

    messages_per_user_max = forwarded("words")

    @property
    def bits_per_message(self) -> int:
        return min(self.bins, WORD) + (label_bits(self.words) if self.is_labelled else 0)

    @property
    def alphabet_size(self) -> int:
        return 1 << min(self.bins, WORD)

    def pair(self, honest: int) -> ShuffledRowsCurve:
        return ShuffledRowsCurve(self.kept, self.spurious, honest)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            DeltaTerm("noise", _delta(self.pair(honest), epsilon), "amplification by the blanket of the others' rows"),
            DeltaTerm("sampling", 0.0, "bits are drawn exactly"),
        )

    def _moved_by(self, messages: int) -> float:
        """Every bit of a word is a message in a column that all users may have a one in."""
        return self.bins**2 * (2 * self.users * messages + messages**2) / self.worst_moments().signal

    def worst_moments(self) -> ScoreMoments:
        return rows_moments(self.users, self.kept, self.spurious, self.bins)

    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        given: dict[str, Any] = {"users": self.users, "kept": self.kept, "spurious": self.spurious}
        return column_scores(**given, law=law, deviation=self.worst_moments().deviation, runs=runs, seed=seed)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        codes, width = np.asarray(values), WORD * self.words
        rows = bernoulli(self.spurious, codes.size * width, bits=bits).reshape(codes.size, width)
        rows[:, self.bins :] = False
        rows[np.arange(codes.size), codes] = bernoulli(self.kept, codes.size, bits=bits)
        payloads = np.packbits(rows, axis=1, bitorder="little").view("<u8").astype(np.uint64)
        if self.words == 1:
            return Reports.of_equal_size(payloads)
        labels = np.broadcast_to(np.arange(self.words, dtype=np.uint32), payloads.shape)
        return Reports.of_equal_size(payloads, labels)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How many rows have each bit; bits beyond the last bin and unknown labels say nothing."""
        labels: NDArray[np.uint32] = np.zeros(len(batch), np.uint32) if batch.labels is None else batch.labels
        sums = np.zeros((self.words, WORD), dtype=np.int64)
        for word in range(self.words):
            mine = batch.payloads[labels == word].astype("<u8")
            bits = np.unpackbits(mine.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
            sums[word] = bits.sum(axis=0, dtype=np.int64)
        unknown = int((labels >= self.words).sum())
        return Tally(sums.reshape(-1)[: self.bins], batch.reports, len(batch), malformed + unknown)

    def _statistic(self, counts: Codes) -> tuple[float, ScoreMoments]:
        columns, n = counts.astype(np.float64), float(self.users)
        mean = (self.kept - self.spurious) / self.bins + self.spurious
        terms = columns * (columns - 1) - 2 * (n - 1) * mean * columns + n * (n - 1) * mean**2
        return float(terms.sum()), self.worst_moments()

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many rows have a one in the first bin, and how many in the second."""
        first = reports.payloads.reshape(trials, -1, self.words)[:, :, 0]
        return np.stack([(first >> np.uint64(code) & np.uint64(1)).sum(axis=1) for code in (0, 1)], axis=1).astype(
            np.int64
        )

    def quieter(self, part: float) -> dict[str, Any]:
        return {"spurious": probability_with(part * self.spurious * (1 - self.spurious))}


def _kept_alone(epsilon: float) -> float:
    """How often bits may be right in rows that are private without a crowd, rounded down."""
    kept = 1 / (1 + math.exp(-epsilon / 2 * (1 - 1e-11)))
    while ShuffledRowsCurve(kept, 1 - kept, 1).delta(epsilon) > 0:
        kept = math.nextafter(kept, 0.5)
    return kept
