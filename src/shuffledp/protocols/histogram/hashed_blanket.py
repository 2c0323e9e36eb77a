"""Blankets whose sets overlap: a message fits many categories, and other people's messages fall into every bin."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import InfeasibleError
from shuffledp.messages import Batch
from shuffledp.protocols.domains.domain import Categories, Codes, Floats
from shuffledp.protocols.histogram.blanket import BlanketPlan, smallest_blanket
from shuffledp.protocols.histogram.collision_bounds import thrown_bound
from shuffledp.protocols.request import Request
from shuffledp.protocols.streaming import tallied
from shuffledp.protocols.tallies import Tallier, Tally
from shuffledp.randomness import RandomBits

# Variance that collisions may add, as a part of the blanket's: 1 + 1/r messages a user.
_COLLISIONS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedBlanketPlan(BlanketPlan):
    """The number of messages that fit a category, less what random messages and other people's own should give."""

    @classmethod
    def wanted_buckets(cls, request: Request) -> float:
        """How many disjoint sets there should be: a user sends about 1 + mean * sets / honest messages."""
        mean = cls.mean_for(request) or smallest_blanket(request.privacy)
        extra = 1 / _COLLISIONS if request.max_messages is None else max(1, request.max_messages - 1)
        return request.honest * extra / mean * (1 - 1e-9)

    @classmethod
    def of_sets(cls, request: Request, domain: Categories, sets: int, what: tuple[str, str], **fields: Any) -> Self:
        """The plan with so many disjoint sets of messages, which must be fewer than the categories."""
        if sets >= domain.size:
            problem = f"must be more than the {sets} {what[0]} that would be used"
            raise InfeasibleError("domain", f"{domain.size} categories", problem, f"use decoys: {what[1]}")
        coins, probability = cls.coins_for(request.privacy, request.honest, 1 / sets, cls.mean_for(request))
        return cls(**request.common, categories=domain, coins=coins, probability=probability, **fields)

    @property
    @abstractmethod
    def collision(self) -> float:
        """The probability that a user's own message fits a given other category."""

    @abstractmethod
    def matching(self, batch: Batch) -> tuple[Codes, int]:
        """How many messages fit each category, and how many are messages at all."""

    def _standard_errors(self, counts: NDArray[np.float64], blanket: float) -> NDArray[np.float64]:
        """Standard errors of bins with these counts, from random messages and, independently, all others' own."""
        others = (self.users - counts) * self.collision * (1 - self.collision)
        return np.sqrt(blanket * (1 - self.hit) + others) / (1 - self.collision)

    def _error(self, mean: float) -> float:
        return float(self._standard_errors(np.zeros(1), mean)[0])

    def standard_errors_for(self, values: ArrayLike) -> NDArray[np.float64]:
        return self._standard_errors(self.true_value(values), self.blanket_mean)

    def bound_at(self, failure: float) -> float:
        throws, each = self.users * self.coins, failure / self.bins
        return thrown_bound(throws, self.probability, self.hit, self.users, self.collision, each) / (1 - self.collision)

    @property
    def message_influence(self) -> float:
        return 1 / (1 - self.collision)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How many messages match each category, and last how many are messages at all."""
        seen, messages = self.matching(batch)
        return Tally(np.append(seen, messages), batch.reports, len(batch), malformed + len(batch) - messages)

    @property
    def tallier(self) -> Tallier:
        return self.tally

    def _own(self, seen: Codes) -> Sequence[Codes]:
        return (seen[-1:],)

    def _read(self, seen: Codes) -> Floats:
        expected = (int(seen[-1]) - self.users) * self.hit + self.users * self.collision
        return np.asarray((seen[:-1].astype(np.float64) - expected) / (1 - self.collision))

    def _summed(self, codes: Codes, bits: RandomBits) -> Codes:
        """The messages themselves, unpermuted: their order does not matter, so the law is the same."""
        return tallied(self, codes, bits=bits).counts

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        return summed

    @property
    def tally_bytes(self) -> int:
        return 8 * (self.bins + 1)
