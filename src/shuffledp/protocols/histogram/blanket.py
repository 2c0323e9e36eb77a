"""Histograms under a blanket: beside its own message a user sends random ones that could be anybody's.

A category x stands for a set S_x of messages, all of one size; a user's own message is uniform on its set, a random one
uniform on all messages, so that it falls into any given set with the same probability, `hit`. Why two bins of balls
dominate, whatever the sets have in common: docs/theory/histograms.md.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.split_coins import BallsPair, SplitCoinsPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.fields import real_number, whole_number
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli

LARGEST_COINS = 1 << 20
# What curves leave out of their windows is added to delta: no noise reaches a smaller one.
_SMALLEST_DELTA = 1e-28
# Balls beyond which nobody would send so many messages: an epsilon of about 3e-4.
_LARGEST_RATE = 1e9
# Where the limit of rare messages asks for no larger probability, the messages need no more coins.
_RARE = 0.25


@lru_cache(maxsize=256)
def smallest_blanket(privacy: Privacy) -> float:
    """The mean number of random messages in each of two sets that hides which of them a user's own is in.

    For very many rare messages; fewer are enough where they are few and likely.

    >>> round(smallest_blanket(Privacy(1, 1e-6)), 1)
    42.7
    """
    if privacy.delta < _SMALLEST_DELTA:
        raise InfeasibleError(
            "delta", privacy.delta, f"must be >= {_SMALLEST_DELTA:g} for this method", "choose a larger delta"
        )

    def enough(rate: float) -> bool:
        return SplitCoinsPair(rate).delta(privacy.epsilon) <= privacy.delta

    return smallest_real(enough, 0.0, 1.0, relative=1e-9, limit=_LARGEST_RATE) / 2


_pair = lru_cache(maxsize=256)(BallsPair)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlanketPlan(HistogramPlan):
    """Each user sends one message of its own and up to `coins` random ones, each with `probability`."""

    theory_page: ClassVar[str] = "docs/theory/histograms.md"

    coins: int
    probability: float

    @staticmethod
    def coins_for(privacy: Privacy, honest: int, hit: float, mean: float | None = None) -> tuple[int, float]:
        """The fewest coins, and their smallest probability, that put enough random messages into each set.

        `mean` is a paper's own number of them, instead of the exact one.
        """
        coins = max(1, int(np.ceil((mean or smallest_blanket(privacy)) / (honest * hit))))
        if coins > LARGEST_COINS:
            raise InfeasibleError(
                "messages",
                coins,
                f"would be more than {LARGEST_COINS} a user",
                "take more users, fewer categories, or a larger epsilon or delta",
            )
        if mean is not None:
            return coins, min(1.0, mean / (honest * hit * coins))

        def enough(probability: float) -> bool:
            if probability >= 1:
                return True
            return BallsPair(honest * coins, probability * hit).delta(privacy.epsilon) <= privacy.delta

        limit = smallest_blanket(privacy) / (honest * hit)
        # Two sets of half the messages each need a little more than the limit of rare ones.
        while limit > _RARE * coins and BallsPair(honest * coins, hit).delta(privacy.epsilon) > privacy.delta:
            coins += 1
        # Asked from the limit of rare messages on: far above it there would be very many outcomes.
        return coins, min(1.0, smallest_real(enough, 0.0, min(1.0, limit / coins), relative=1e-9))

    @property
    @abstractmethod
    def hit(self) -> float:
        """The probability that a random message falls into a given category's set."""

    def _check_noise(self) -> None:
        if not 1 <= self.coins <= LARGEST_COINS:
            raise ParameterError("coins", self.coins, f"must lie in 1..{LARGEST_COINS}", "make the plan again")
        if not 0 < self.probability <= 1:
            raise ParameterError("probability", self.probability, "must lie in (0, 1]", "make the plan again")

    @property
    def noise(self) -> dict[str, Any]:
        return {"law": "blanket", "coins": self.coins, "probability": self.probability}

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(coins=whole_number(noise, "coins"), probability=real_number(noise, "probability"), **common)

    @property
    def blanket_mean(self) -> float:
        """Random messages of all users in one category's set, on average."""
        return self.users * self.coins * self.probability * self.hit

    @property
    def messages_per_user_mean(self) -> float:
        return 1 + self.coins * self.probability

    @property
    def messages_per_user_max(self) -> int:
        return 1 + self.coins

    @property
    def influence(self) -> float:
        return float(self.messages_per_user_max) * self.message_influence

    @property
    def lying_client(self) -> str:
        return f"moves a bin by at most {self.influence:.3g}: {self.message_influence:.3g} for each of its messages"

    # --- privacy -----------------------------------------------------------------------------

    def pair(self, honest: int) -> BallsPair:
        return _pair(honest * self.coins, self.probability * self.hit)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the mean curve over the balls in the two bins"),
            DeltaTerm("sampling", 0.0, "coins and random messages are drawn exactly"),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "With all others' own messages known the view is the user's message, uniform on one of two sets of equal "
            "size, among the honest users' random messages. Given how many fall into each set the rest says nothing; "
            "what the sets have in common only helps, so disjoint ones are the worst."
        )

    def quieter(self, part: float) -> dict[str, Any]:
        return {"probability": part * self.probability}

    # --- the clients' side -------------------------------------------------------------------

    def _sizes(self, users: int, bits: RandomBits) -> NDArray[np.int64]:
        """Messages of each user."""
        extra = bernoulli(self.probability, users * self.coins, bits=bits).reshape(users, self.coins)
        return np.asarray(1 + extra.sum(axis=1, dtype=np.int64))
