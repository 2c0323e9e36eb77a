"""Histogram of a large domain by Hadamard response: random columns, and a category's signs in them."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Payloads, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.counted import counted_in_runs
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.fields import noise
from shuffledp.protocols.histogram.blanket import blanket_sizes
from shuffledp.protocols.histogram.hashed_blanket import HashedBlanketPlan
from shuffledp.protocols.histogram.sign_vectors import fitting_counts, seed_bits, sign_vectors
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import smallest_width, uniform_below


@dataclass(frozen=True, slots=True, kw_only=True)
class Hadamard(HashedBlanketPlan):
    """A user draws a seed, which chooses columns of a Hadamard matrix, and sends it and its category's `signs` in them.

    The adversary sees seeds and signs of all users' messages and of random ones. For every seed exactly one
    sign vector fits a category, so a random message fits it with probability 2^-signs.

    Reference: Ghazi, Golowich, Kumar, Pagh, Velingker 2021, section 3. There a message is a tuple of independent
    columns in which the category has the sign +1: tau log2(B) bits. Here a column is a window of the seed, and any
    sign may be sent: the chances that matter are the same (docs/theory/histograms.md), in log2(B) + 2 tau - 1 bits.

    >>> plan = Hadamard.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1_000_000)
    >>> plan.messages_per_user_max, plan.bits_per_message
    (15, 49)
    """

    method: ClassVar[str] = "hadamard"
    trades_messages: ClassVar[bool] = True
    is_labelled: ClassVar[bool] = True

    signs: int = noise("[1, inf)")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """As many signs as `max_messages` allow, or about a tenth more variance than without collisions."""
        wanted = math.log2(cls.wanted_buckets(request))
        signs = max(1, round(wanted) if request.max_messages is None else math.floor(wanted))
        what = ("sign vectors", "signs would be longer than names")
        return cls.of_sets(request, as_categories(categories), 1 << signs, what, signs=signs)

    def _check_noise(self) -> None:
        super(Hadamard, self)._check_noise()
        if 1 << min(self.signs, 32) >= self.bins:
            problem = f"must be >= 1 with fewer than {self.bins} sign vectors"
            raise ParameterError("signs", self.signs, problem, "make the plan again")

    @staticmethod
    def paper_blanket(privacy: Privacy) -> float:
        """The paper's own number of random messages a user, for one item each: as many fit a category on average.

        >>> round(Hadamard.paper_blanket(Privacy(1, 1e-6)))
        533
        """
        return 36 * math.log(math.e / (privacy.epsilon * privacy.delta)) / privacy.epsilon**2

    @property
    def hit(self) -> float:
        return 0.5**self.signs

    @property
    def collision(self) -> float:
        return 0.5**self.signs

    @property
    def index_bits(self) -> int:
        """Bits of a category, and of a column of the matrix."""
        return (self.bins - 1).bit_length()

    @property
    def seed_bits(self) -> int:
        """Bits that choose the columns."""
        return seed_bits(self.index_bits, self.signs)

    @property
    def bits_per_message(self) -> int:
        return self.seed_bits + self.signs

    @property
    def alphabet_size(self) -> int:
        return 1 << self.seed_bits

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        sizes = blanket_sizes(codes.size, self.coins, self.probability, bits=bits)
        count, own = int(sizes.sum()), np.cumsum(sizes) - sizes
        seeds = uniform_below(1 << self.seed_bits, count, bits=bits)
        labels = uniform_below(1 << self.signs, count, bits=bits)
        kept = sign_vectors(seeds[own].astype(np.int64), codes, self.index_bits, self.signs)
        labels[own] = kept.astype(labels.dtype)
        return Reports(seeds, sizes, labels.astype(f"u{smallest_width(self.signs) // 8}", copy=False))

    def _valid(self, payloads: Payloads, labels: Payloads | None) -> tuple[Codes, Codes]:
        """Seeds and sign vectors of the messages that can be one."""
        if labels is None:
            labels = np.full(payloads.size, 1 << self.signs, dtype=np.uint64)
        valid = (payloads < self.alphabet_size) & (labels < 1 << self.signs)
        return payloads[valid].astype(np.int64), labels[valid].astype(np.int64)

    def matching(self, batch: Batch) -> tuple[Codes, int]:
        """How many messages fit each category, and how many are messages at all."""
        seeds, vectors = self._valid(batch.payloads, batch.labels)
        return fitting_counts(seeds, vectors, self.index_bits, self.signs)[: self.bins], seeds.size

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many messages fit the first category, and how many the second."""
        seeds, vectors = self._valid(reports.payloads, reports.labels)
        fits = [sign_vectors(seeds, code, self.index_bits, self.signs) == vectors for code in (0, 1)]
        return np.stack([counted_in_runs(fit, reports, trials) for fit in fits], axis=1)
