"""Histogram by decoys: a user sends its category and, at random, a few uniformly drawn ones."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from shuffledp.messages import Reports
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.histogram.blanket import BlanketPlan, blanket_sizes
from shuffledp.protocols.histogram.bounds import balls_bound
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.uniform import smallest_width, uniform_below

# Decoys thrown at a time.
_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoys(BlanketPlan):
    """Each user sends its category and up to `coins` decoys, categories drawn uniformly from all.

    The adversary sees how many messages name each category. All but the users' own are decoys, so their
    number is seen too, and each bin's share of them is subtracted: the estimates add up to the users.

    Reference: the blanket of Balle, Bell, Gascon, Nissim 2019, as messages of its own; Luo, Wang, Yi 2022,
    for domains that need no hashing.

    >>> from shuffledp.privacy import Privacy
    >>> plan = Decoys.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1000)
    >>> round(plan.standard_error, 2), round(plan.messages_per_user_mean, 2), plan.messages_per_user_max
    (6.53, 1.43, 2)
    """

    method: ClassVar[str] = "decoys"

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """The fewest decoys that hide which of two bins a user is in."""
        domain = as_categories(categories)
        coins, probability = cls.coins_for(request.privacy, request.honest, 1 / domain.size, cls.mean_for(request))
        return cls(**request.common, categories=domain, coins=coins, probability=probability)

    @property
    def hit(self) -> float:
        return 1 / self.bins

    def _error(self, mean: float) -> float:
        return math.sqrt(mean * (1 - self.hit))

    def bound_at(self, failure: float) -> float:
        return balls_bound(self.users * self.coins, self.probability, self.bins, allowed=failure)

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        return decoy_reports(codes, self.bins, self.coins, self.probability, bits=bits)

    def _read(self, seen: Codes) -> Floats:
        return without_decoys(seen, self.users)

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        return with_decoys(summed, self.users * self.coins, self.probability, bits=bits)


def decoy_reports(codes: Codes, cells: int, coins: int, probability: float, *, bits: RandomBits) -> Reports:
    """Each user's own cell, and a cell drawn uniformly for each of its coins that says so."""
    sizes = blanket_sizes(codes.size, coins, probability, bits=bits)
    kind = f"u{smallest_width(max(1, (cells - 1).bit_length())) // 8}"
    payloads = uniform_below(cells, int(sizes.sum()), bits=bits).astype(kind, copy=False)
    payloads[np.cumsum(sizes) - sizes] = codes
    return Reports(payloads, sizes)


def without_decoys(seen: Codes, users: int) -> Floats:
    """The counts of cells: all but the users' own messages are decoys, of which every cell has an equal share.

    >>> without_decoys(np.array([5, 1]), 4).tolist()
    [4.0, 0.0]
    """
    return np.asarray(seen - np.float64((int(seen.sum()) - users) / seen.size))


def with_decoys(counts: Codes, coins: int, probability: float, *, bits: RandomBits) -> Codes:
    """How often each cell is named by so many users in it and by the decoys of so many coins, drawn from their law."""
    left = int(binomial(coins, probability, 1, bits=bits)[0])
    seen = np.array(counts, dtype=np.int64)
    while left:
        thrown = uniform_below(counts.size, min(left, _AT_A_TIME), bits=bits).astype(np.int64)
        seen += np.bincount(thrown, minlength=counts.size)
        left -= thrown.size
    return seen
