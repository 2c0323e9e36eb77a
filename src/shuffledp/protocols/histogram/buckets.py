"""Histogram of a large domain by hashing: every message has its own hash function into a few thousand buckets."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.messages import Batch, Payloads, Reports
from shuffledp.protocols.counted import counted_in_runs
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.fields import noise
from shuffledp.protocols.histogram.blanket import blanket_sizes
from shuffledp.protocols.histogram.hashed_blanket import HashedBlanketPlan
from shuffledp.protocols.histogram.primes import next_prime
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import smallest_width, uniform_below

# Matches counted at a time.
_BLOCK = 1 << 21
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets(HashedBlanketPlan):
    """A user hashes its category by a function of its own into one of `buckets`, and sends function and bucket.

    The adversary sees functions and buckets of all users' messages and of random ones; every message fits one
    category in `buckets`, whichever the category.
    With q the smallest prime that is not below the number of categories a message is (a, v, w): x fits if
    x = a y + v modulo q for a y in {w, w + b, w + 2b, ...} below q. So a user draws y and solves for v, and the
    server runs through the y: nobody divides.

    Reference: Luo, Wang, Yi 2022, whose hash function this is, read the other way.

    >>> from shuffledp.privacy import Privacy
    >>> plan = Buckets.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1_000_000)
    >>> plan.messages_per_user_max, plan.error_bound <= 2 * plan.reference()["central_l_inf_error"]
    (11, True)
    """

    method: ClassVar[str] = "buckets"
    trades_messages: ClassVar[bool] = True
    is_labelled: ClassVar[bool] = True

    buckets: int = noise("[2, inf)")

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """As many buckets as `max_messages` allow, or a tenth more variance than without hashing."""
        buckets = max(2, int(cls.wanted_buckets(request)))
        what = ("buckets", "there is nothing to hash")
        return cls.of_sets(request, as_categories(categories), buckets, what, buckets=buckets)

    def _check_noise(self) -> None:
        super(Buckets, self)._check_noise()
        if self.buckets >= self.bins:
            problem = f"must lie in 2..{self.bins - 1}, below the categories"
            raise ParameterError("buckets", self.buckets, problem, "make the plan again")

    @property
    def prime(self) -> int:
        """Categories are numbers modulo this."""
        return next_prime(self.bins)

    @property
    def hit(self) -> float:
        return 1 / self.buckets

    @property
    def collision(self) -> float:
        q, b = self.prime, self.buckets
        return q // b * (q % b + q - b) / (q * (q - 1))

    @property
    def bits_per_message(self) -> int:
        return (self.alphabet_size - 1).bit_length() + (self.buckets - 1).bit_length()

    @property
    def alphabet_size(self) -> int:
        return self.prime**2

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        codes = codes.astype(np.uint64)
        q, b = np.uint64(self.prime), np.uint64(self.buckets)
        sizes = blanket_sizes(codes.size, self.coins, self.probability, bits=bits)
        count, own = int(sizes.sum()), np.cumsum(sizes) - sizes
        a = uniform_below(self.prime - 1, count, bits=bits).astype(np.uint64) + np.uint64(1)
        v = uniform_below(self.prime, count, bits=bits).astype(np.uint64)
        w = uniform_below(self.buckets, count, bits=bits).astype(np.uint64)
        # For a given category v is uniform because y is: the own message is uniform on its set.
        y = uniform_below(self.prime, codes.size, bits=bits).astype(np.uint64)
        v[own] = (codes + q - a[own] * y % q) % q
        w[own] = y % b
        kind = f"u{smallest_width((self.buckets - 1).bit_length()) // 8}"
        return Reports(a * q + v, sizes, w.astype(kind))

    def _valid(self, payloads: Payloads, labels: Payloads | None) -> tuple[Words, Words, Words]:
        """The numbers a, v, w of the messages that can be one."""
        whole = payloads.astype(np.uint64, copy=False)
        buckets = np.full(whole.size, self.buckets, np.uint64) if labels is None else labels.astype(np.uint64)
        a, v = np.divmod(whole, np.uint64(self.prime))
        valid = (a > 0) & (a < self.prime) & (buckets < self.buckets)
        return (a, v, buckets) if valid.all() else (a[valid], v[valid], buckets[valid])

    def _matches(self, a: Words, v: Words, w: Words) -> Iterator[Codes]:
        """The categories that messages fit, a block at a time; `prime` where there is none."""
        q, b = self.prime, self.buckets
        columns = -(-q // b)
        rows = max(1, _BLOCK // columns)
        for start in range(0, a.size, rows):
            here = slice(start, start + rows)
            step = (a[here] * np.uint64(b) % np.uint64(q)).astype(np.int64)
            x = ((a[here] * w[here] + v[here]) % np.uint64(q)).astype(np.int64)
            # y = w + b j runs to below q: only in the last column may it pass it.
            ends = w[here].astype(np.int64) + b * (columns - 1) >= q
            for first in range(0, columns, max(1, _BLOCK // x.size)):
                block = np.empty((min(columns - first, max(1, _BLOCK // x.size)), x.size), dtype=np.int64)
                for row in block:
                    row[:] = x
                    x += step
                    np.subtract(x, q, out=x, where=x >= q)
                if first + len(block) == columns:
                    block[-1, ends] = q
                yield block.reshape(-1)

    def matching(self, batch: Batch) -> tuple[Codes, int]:
        """How many messages fit each category, and how many are messages at all."""
        a, v, w = self._valid(batch.payloads, batch.labels)
        seen = np.zeros(self.prime + 1, dtype=np.int64)
        for block in self._matches(a, v, w):
            seen += np.bincount(block, minlength=self.prime + 1)
        return seen[: self.bins], a.size

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many messages fit the first category, and how many the second."""
        a, v, w = self._valid(reports.payloads, reports.labels)
        q, fits = np.uint64(self.prime), np.zeros((2, a.size), dtype=np.bool_)
        for j in range(-(-self.prime // self.buckets)):
            y = w + np.uint64(j * self.buckets)
            x = (a * y + v) % q
            for code in (0, 1):
                fits[code] |= (x == code) & (y < q)
        return np.stack([counted_in_runs(fit, reports, trials) for fit in fits], axis=1)
