"""Histograms under a blanket: beside its own message a user sends random ones that could be anybody's.

A category x stands for a set S_x of messages, all of one size; a user's own message is uniform on its set, a random one
uniform on all messages, so that it falls into any given set with the same probability, `hit`. Why two bins of balls
dominate, whatever the sets have in common: docs/theory/histograms.md.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.split_coins import BallsPair, SplitCoinsPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import noise
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli

LARGEST_COINS = 1 << 20
# What curves leave out of their windows is added to delta: no noise reaches a smaller one.
_SMALLEST_DELTA = 1e-28
# Balls beyond which nobody would send so many messages: an epsilon of about 3e-4.
_LARGEST_RATE = 1e9
# Where the limit of rare messages asks for no larger probability, the messages need no more coins.
_RARE = 0.25
# Luo, Wang, Yi 2022: random messages in each bucket, times epsilon^2 / ln(2/delta).
_PAPER_FACTOR = 32


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

    def delta(rate: float) -> float:
        return SplitCoinsPair(rate).delta(privacy.epsilon)

    return smallest_meeting(delta, privacy.delta, 0.0, 1.0, relative=1e-9, limit=_LARGEST_RATE) / 2


def paper_blanket(privacy: Privacy) -> float:
    """Random messages in each bucket by the formula of Luo, Wang, Yi 2022.

    >>> round(paper_blanket(Privacy(1, 1e-6)))
    464
    """
    return _PAPER_FACTOR * math.log(2 / privacy.delta) / privacy.epsilon**2


_pair = lru_cache(maxsize=256)(BallsPair)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlanketPlan(HistogramPlan):
    """Each user sends one message of its own and up to `coins` random ones, each with `probability`."""

    theory_page: ClassVar[str] = "docs/theory/histograms.md"
    law: ClassVar[str] = "blanket"
    curve: ClassVar[str] = "the mean curve over the balls in the two bins"
    drawn: ClassVar[str] = "coins and random messages are drawn exactly"
    dominates_because: ClassVar[str] = (
        "With all others' own messages known the view is the user's message, uniform on one of two sets of equal "
        "size, among the honest users' random messages. Given how many fall into each set the rest says nothing; "
        "what the sets have in common only helps, so disjoint ones are the worst."
    )

    coins: int = noise(f"[1, {LARGEST_COINS}]")
    probability: float = noise("(0, 1]")

    paper_blanket = staticmethod(paper_blanket)

    @classmethod
    def mean_for(cls, request: Request) -> float | None:
        """The paper's number of random messages in each set, where its constants are asked for."""
        return cls.paper_blanket(request.privacy) if request.constants == "paper" else None

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

        def delta(probability: float) -> float:
            return 0.0 if probability >= 1 else BallsPair(honest * coins, probability * hit).delta(privacy.epsilon)

        limit = smallest_blanket(privacy) / (honest * hit)
        # Two sets of half the messages each need a little more than the limit of rare ones.
        while limit > _RARE * coins and BallsPair(honest * coins, hit).delta(privacy.epsilon) > privacy.delta:
            coins += 1
        # Asked from the limit of rare messages on: far above it there would be very many outcomes.
        first = min(1.0, limit / coins)
        return coins, min(1.0, smallest_meeting(delta, privacy.delta, 0.0, first, relative=1e-9))

    @property
    @abstractmethod
    def hit(self) -> float:
        """The probability that a random message falls into a given category's set."""

    @abstractmethod
    def bound_at(self, failure: float) -> float:
        """All bins are off by at most this but with this probability, whatever the data."""

    def _l_inf_error(self) -> float:
        return self.bound_at(1 - CONFIDENCE)

    @abstractmethod
    def _error(self, mean: float) -> float:
        """The standard error of the worst bin with so many random messages of all users in one set."""

    @property
    def standard_error(self) -> float:
        return self._error(self.blanket_mean)

    @property
    def paper_standard_error(self) -> float | None:
        return self._error(self.paper_blanket(self.privacy) * self.users / self.honest_users)

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

    def pair(self, honest: int) -> BallsPair:
        return _pair(honest * self.coins, self.probability * self.hit)


def blanket_sizes(users: int, coins: int, probability: float, *, bits: RandomBits) -> NDArray[np.int64]:
    """How many messages each user sends: its own and the random ones that its coins say."""
    extra = bernoulli(probability, users * coins, bits=bits).reshape(users, coins)
    return np.asarray(1 + extra.sum(axis=1, dtype=np.int64))
