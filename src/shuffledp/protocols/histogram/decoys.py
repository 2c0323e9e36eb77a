"""Histogram by decoys: a user sends its category and, at random, a few uniformly drawn ones."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.histogram.bounds import balls_bound
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.uniform import uniform_below

# Luo, Wang, Yi 2022: random messages in each bucket, times epsilon^2 / ln(2/delta).
_PAPER_FACTOR = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoys(BlanketPlan):
    """Each user sends its category and up to `coins` decoys, categories drawn uniformly from all.

    The adversary sees how many messages name each category. All but the users' own are decoys, so their
    number is seen too, and each bin's share of them is subtracted: the estimates add up to the users.

    Reference: the blanket of Balle, Bell, Gascon, Nissim 2019, as messages of its own; Luo, Wang, Yi 2022,
    for domains that need no hashing.

    >>> plan = Decoys.plan(users=100_000, privacy=Privacy(1, 1e-6), categories=1000)
    >>> round(plan.standard_error, 2), round(plan.messages_per_user_mean, 2), plan.messages_per_user_max
    (6.53, 1.43, 2)
    """

    method: ClassVar[str] = "decoys"

    @classmethod
    def for_request(cls, request: Request, *, categories: AnyCategories) -> Self:
        """The fewest decoys that hide which of two bins a user is in."""
        privacy = request.privacy
        domain = as_categories(categories)
        mean = paper_blanket(privacy) if request.constants == "paper" else None
        coins, probability = cls.coins_for(privacy, request.honest, 1 / domain.size, mean)
        return cls(
            **request.common,
            categories=domain,
            coins=coins,
            probability=probability,
        )

    @property
    def hit(self) -> float:
        return 1 / self.bins

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.blanket_mean * (1 - self.hit))

    @property
    def paper_standard_error(self) -> float | None:
        mean = paper_blanket(self.privacy) * self.users / self.honest_users
        return math.sqrt(mean * (1 - self.hit))

    def _l_inf_error(self) -> float:
        return balls_bound(self.users * self.coins, self.probability, self.bins)

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        codes = self.check_values(values)
        sizes = self._sizes(codes.size, bits)
        payloads = uniform_below(self.bins, int(sizes.sum()), bits=bits).astype(self._kind, copy=False)
        payloads[np.cumsum(sizes) - sizes] = codes
        return Reports(payloads, sizes)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> VectorEstimate:
        seen, dropped = self._seen(tally)
        return self._centred(seen, dropped=dropped, simulated=simulated)

    def _centred(self, seen: Codes, *, dropped: int = 0, simulated: bool = False) -> VectorEstimate:
        decoys = int(seen.sum()) - self.users
        return self._estimate(seen - np.float64(decoys / self.bins), dropped=dropped, simulated=simulated)

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> VectorEstimate:
        seen = self.counts(self._all_values(values))
        decoys = int(binomial(self.users * self.coins, self.probability, 1, bits=bits)[0])
        thrown = uniform_below(self.bins, decoys, bits=bits)
        return self._centred(seen + self.counts(thrown.astype(np.int64)), simulated=not bits.is_secure)


def paper_blanket(privacy: Privacy) -> float:
    """Random messages in each bucket by the paper's own formula.

    >>> round(paper_blanket(Privacy(1, 1e-6)))
    464
    """
    return _PAPER_FACTOR * math.log(2 / privacy.delta) / privacy.epsilon**2
