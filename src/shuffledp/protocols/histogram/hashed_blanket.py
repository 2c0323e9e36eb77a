"""Blankets whose sets overlap: a message fits many categories, and other people's messages fall into every bin."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Batch
from shuffledp.protocols.domains.domain import Codes
from shuffledp.protocols.histogram.blanket import BlanketPlan
from shuffledp.protocols.histogram.collision_bounds import thrown_bound
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits

# Variance that collisions may add, as a part of the blanket's: 1 + 1/r messages a user.
_COLLISIONS = 0.1


def wanted_buckets(honest: int, mean: float, max_messages: int | None) -> float:
    """How many disjoint sets there should be: a user sends about 1 + mean * sets / honest messages.

    >>> round(wanted_buckets(100_000, 42.7, None)), round(wanted_buckets(100_000, 42.7, 50))
    (23419, 114754)
    """
    extra = 1 / _COLLISIONS if max_messages is None else max(1, max_messages - 1)
    return honest * extra / mean * (1 - 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedBlanketPlan(BlanketPlan):
    """The number of messages that fit a category, less what random messages and other people's own should give."""

    @property
    @abstractmethod
    def collision(self) -> float:
        """The probability that a user's own message fits a given other category."""

    @property
    @abstractmethod
    def paper_blanket_mean(self) -> float:
        """Random messages that fit a category, by the paper's own formula."""

    @abstractmethod
    def matching(self, batch: Batch) -> tuple[Codes, int]:
        """How many messages fit each category, and how many are messages at all."""

    # --- numbers -----------------------------------------------------------------------------

    def _standard_errors(self, counts: NDArray[np.float64], blanket: float) -> NDArray[np.float64]:
        """Of bins with these counts: random messages, and own messages of all others, independent of each other."""
        others = (self.users - counts) * self.collision * (1 - self.collision)
        return np.sqrt(blanket * (1 - self.hit) + others) / (1 - self.collision)

    @property
    def standard_error(self) -> float:
        return float(self._standard_errors(np.zeros(1), self.blanket_mean)[0])

    def standard_errors_for(self, values: ArrayLike) -> NDArray[np.float64]:
        return self._standard_errors(self.true_value(values), self.blanket_mean)

    @property
    def paper_standard_error(self) -> float | None:
        mean = self.paper_blanket_mean * self.users / self.honest_users
        return float(self._standard_errors(np.zeros(1), mean)[0])

    def _l_inf_error(self) -> float:
        throws = self.users * self.coins
        bound = thrown_bound(throws, self.probability, self.hit, self.users, self.collision, self.bins)
        return bound / (1 - self.collision)

    @property
    def message_influence(self) -> float:
        return 1 / (1 - self.collision)

    # --- the server's side -------------------------------------------------------------------

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How many messages match each category, and last how many are messages at all."""
        seen, messages = self.matching(batch)
        return Tally(np.append(seen, messages), batch.reports, len(batch), malformed + len(batch) - messages)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> VectorEstimate:
        counts, dropped = self._seen(tally)
        seen, messages = counts[:-1], int(counts[-1])
        expected = (messages - self.users) * self.hit + self.users * self.collision
        value = (seen.astype(np.float64) - expected) / (1 - self.collision)
        return self._estimate(value, dropped=dropped, simulated=simulated)

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> VectorEstimate:
        """The server's answer to the messages, unpermuted: their order does not matter, so the law is the same."""
        reports = self.randomize(self._all_values(values), bits=bits)
        estimate = self.analyze(Batch(reports.payloads, self.users, reports.labels))
        return self._estimate(estimate.value, simulated=not bits.is_secure)
