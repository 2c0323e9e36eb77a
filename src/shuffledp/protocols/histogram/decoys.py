"""Histogram by decoys: a user sends its category and, at random, a few uniformly drawn ones."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.messages import Reports
from shuffledp.protocols.counted import Floats
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.histogram.bounds import balls_bound
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.uniform import uniform_below


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

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.blanket_mean * (1 - self.hit))

    @property
    def paper_standard_error(self) -> float | None:
        mean = self.paper_blanket(self.privacy) * self.users / self.honest_users
        return math.sqrt(mean * (1 - self.hit))

    def _l_inf_error(self) -> float:
        return balls_bound(self.users * self.coins, self.probability, self.bins)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        codes = self.check_values(values)
        sizes = self._sizes(codes.size, bits)
        payloads = uniform_below(self.bins, int(sizes.sum()), bits=bits).astype(self._kind, copy=False)
        payloads[np.cumsum(sizes) - sizes] = codes
        return Reports(payloads, sizes)

    def _read(self, seen: Codes) -> Floats:
        decoys = int(seen.sum()) - self.users
        return np.asarray(seen - np.float64(decoys / self.bins))

    def _sample(self, codes: Codes, bits: RandomBits) -> Codes:
        seen = self.counts(codes)
        decoys = int(binomial(self.users * self.coins, self.probability, 1, bits=bits)[0])
        return seen + self.counts(uniform_below(self.bins, decoys, bits=bits).astype(np.int64))
