"""Histogram of a large domain by Hadamard response: random columns, and a category's signs in them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch, Payloads, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.fields import real_number, whole_number
from shuffledp.protocols.histogram.base import counted_in_runs
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.histogram.hashed_blanket import HashedBlanketPlan, wanted_buckets
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
    >>> plan.messages_per_user_max, plan.bits_per_message, plan.paper_bits_per_message
    (15, 49, 340)
    """

    method: ClassVar[str] = "hadamard"
    is_labelled: ClassVar[bool] = True

    signs: int

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """As many signs as `max_messages` allow, or about a tenth more variance than without collisions."""
        privacy, max_messages = request.privacy, request.max_messages
        domain = as_categories(categories)
        honest = request.honest
        mean = hadamard_paper_blanket(privacy) if request.constants == "paper" else None
        wanted = math.log2(wanted_buckets(honest, mean or smallest_blanket(privacy), max_messages))
        signs = max(1, round(wanted) if max_messages is None else math.floor(wanted))
        if 1 << signs >= domain.size:
            raise InfeasibleError(
                "domain",
                f"{domain.size} categories",
                f"must be more than the {1 << signs} sign vectors that would be used",
                "use decoys: signs would be longer than names",
            )
        coins, probability = cls.coins_for(privacy, honest, 0.5**signs, mean)
        return cls(
            **request.common,
            categories=domain,
            coins=coins,
            probability=probability,
            signs=signs,
        )

    def _check_noise(self) -> None:
        super(Hadamard, self)._check_noise()
        if not (self.signs >= 1 and 1 << min(self.signs, 32) < self.bins):
            problem = f"must be >= 1 with fewer than {self.bins} sign vectors"
            raise ParameterError("signs", self.signs, problem, "make the plan again")

    @property
    def noise(self) -> dict[str, Any]:
        return {**super(Hadamard, self).noise, "signs": self.signs}

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
            coins=whole_number(noise, "coins"),
            probability=real_number(noise, "probability"),
            signs=whole_number(noise, "signs"),
            **common,
        )

    @property
    def hit(self) -> float:
        return 0.5**self.signs

    @property
    def collision(self) -> float:
        return 0.5**self.signs

    @property
    def paper_blanket_mean(self) -> float:
        return hadamard_paper_blanket(self.privacy)

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
    def paper_bits_per_message(self) -> int:
        """Of the paper's tuples of ceil(log2 users) columns, none of them the first."""
        return math.ceil(math.log2(max(2, self.users))) * self.bins.bit_length()

    @property
    def alphabet_size(self) -> int:
        return 1 << self.seed_bits

    # --- the two sides -----------------------------------------------------------------------

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        codes = self.check_values(values)
        sizes = self._sizes(codes.size, bits)
        count, own = int(sizes.sum()), np.cumsum(sizes) - sizes
        seeds = uniform_below(1 << self.seed_bits, count, bits=bits)
        labels = uniform_below(1 << self.signs, count, bits=bits)
        kept = sign_vectors(seeds[own].astype(np.int64), codes, self.index_bits, self.signs)
        labels[own] = kept.astype(labels.dtype)
        return Reports(seeds, sizes, labels.astype(f"u{smallest_width(self.signs) // 8}", copy=False))

    def _read(self, payloads: Payloads, labels: Payloads | None) -> tuple[Codes, Codes]:
        """Seeds and sign vectors of the messages that can be one."""
        if labels is None:
            labels = np.full(payloads.size, 1 << self.signs, dtype=np.uint64)
        valid = (payloads < self.alphabet_size) & (labels < 1 << self.signs)
        return payloads[valid].astype(np.int64), labels[valid].astype(np.int64)

    def matching(self, batch: Batch) -> tuple[Codes, int]:
        """How many messages fit each category, and how many are messages at all."""
        seeds, vectors = self._read(batch.payloads, batch.labels)
        return fitting_counts(seeds, vectors, self.index_bits, self.signs)[: self.bins], seeds.size

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many messages fit the first category, and how many the second."""
        seeds, vectors = self._read(reports.payloads, reports.labels)
        fits = [sign_vectors(seeds, code, self.index_bits, self.signs) == vectors for code in (0, 1)]
        return np.stack([counted_in_runs(fit, reports, trials) for fit in fits], axis=1)


def hadamard_paper_blanket(privacy: Privacy) -> float:
    """The paper's own number of random messages a user, for one item each: as many fit a category on average.

    >>> round(hadamard_paper_blanket(Privacy(1, 1e-6)))
    533
    """
    return 36 * math.log(math.e / (privacy.epsilon * privacy.delta)) / privacy.epsilon**2
