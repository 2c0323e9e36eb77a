"""The single-message test: one row of bits a user, flipped at random, amplified by the shuffle."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.shuffled_rows import ShuffledRowsCurve
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.distribution_test.base import DistributionTest, Floats, TestedClaim
from shuffledp.protocols.distribution_test.moments import Moments, rows_moments
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import column_scores
from shuffledp.sampling.bernoulli import bernoulli

WORD = 64


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

    kept: float
    spurious: float

    @property
    def local_epsilon(self) -> float:
        """What a row satisfies alone, without the shuffle."""
        return ShuffledRowsCurve(self.kept, self.spurious, self.users).local_epsilon

    @property
    def method(self) -> str:
        return "rows"

    @property
    def proved_delta(self) -> float:
        honest = honest_users(self.users, self.honest_fraction)
        return _delta(ShuffledRowsCurve(self.kept, self.spurious, honest), self.privacy.epsilon)

    @property
    def words(self) -> int:
        """Messages of a row."""
        return -(-self.bins // WORD)

    @property
    def messages_per_user_mean(self) -> float:
        return float(self.words)

    @property
    def messages_per_user_max(self) -> int:
        return self.words

    def worst_moments(self) -> Moments:
        return rows_moments(self.users, self.kept, self.spurious, self.bins)

    def _scores(self, law: Floats, runs: int, seed: int) -> Floats:
        deviation = self.worst_moments().deviation
        return column_scores(
            users=self.users,
            kept=self.kept,
            spurious=self.spurious,
            law=law,
            deviation=deviation,
            runs=runs,
            seed=seed,
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        codes = self.to_bins(values, bits=bits)
        width = WORD * self.words
        rows = bernoulli(self.spurious, codes.size * width, bits=bits).reshape(codes.size, width)
        rows[:, self.bins :] = False
        rows[np.arange(codes.size), codes] = bernoulli(self.kept, codes.size, bits=bits)
        payloads = np.packbits(rows, axis=1, bitorder="little").view("<u8").astype(np.uint64)
        if self.words == 1:
            return Reports.of_equal_size(payloads)
        labels = np.broadcast_to(np.arange(self.words, dtype=np.uint32), payloads.shape)
        return Reports.of_equal_size(payloads, labels)

    def analyze(self, batch: Batch) -> TestedClaim:
        self.check_reports(batch.reports)
        columns, dropped = self._columns(batch)
        n, mean = float(self.users), (self.kept - self.spurious) / self.bins + self.spurious
        terms = columns * (columns - 1) - 2 * (n - 1) * mean * columns + n * (n - 1) * mean**2
        return self._verdict(float(terms.sum()), self.worst_moments(), dropped=dropped)

    def _columns(self, batch: Batch) -> tuple[Floats, int]:
        """How many rows have each bit; bits beyond the last bin and unknown labels say nothing."""
        labels: NDArray[np.uint32] = np.zeros(len(batch), np.uint32) if batch.labels is None else batch.labels
        known = labels < self.words
        sums = np.zeros((self.words, WORD))
        for word in range(self.words):
            mine = batch.payloads[labels == word].astype("<u8")
            sums[word] = np.unpackbits(mine.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").sum(axis=0)
        return sums.reshape(-1)[: self.bins], int(len(batch) - known.sum())
