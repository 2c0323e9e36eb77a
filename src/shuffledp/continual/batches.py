"""One batch of a running sum: what its users send and what its messages say."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.mixing import MOST_SHARES, mixing_distance, smallest_messages
from shuffledp.continual.noise import BatchNoise, CoinNoise
from shuffledp.errors import BrokenBatchError, InfeasibleError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.domains.summed import BITS, SummedDomain
from shuffledp.protocols.labels import label_bits, labelled_reports, labels_of
from shuffledp.protocols.learner import BatchMechanism
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import coin_bits

Steps = NDArray[Any]
"""Whole numbers of steps: an entry a user, or a row where there are several coordinates."""
Total = Any
"""A whole number, or an array of one for each coordinate."""

# Shares mix this part of the honest users, too.
_ROBUST = 0.8


class SumBatch(BatchMechanism):
    """A batch whose users add whole steps and noise: its sum is what it says."""

    can_be_voided: ClassVar[bool] = False

    @property
    @abstractmethod
    def messages_mean(self) -> float:
        """Messages a user sends on average."""

    @property
    @abstractmethod
    def bits_per_message(self) -> int:
        """The size of one message before encryption."""

    @property
    @abstractmethod
    def distance(self) -> float:
        """How far the shuffled messages are from showing nothing but the noisy sum."""

    @property
    @abstractmethod
    def influence(self) -> int | None:
        """By how many steps one client that lies can move a coordinate; None if as far as it likes."""

    @abstractmethod
    def read(self, tally: Tally) -> tuple[Total, int]:
        """The sum plus noise of mean 0, in steps, and how many messages were missing or malformed."""

    def analyze(self, batch: Batch) -> Total:
        """The sum plus noise of mean 0, in steps, or an error for a batch that was spoiled or lost a message."""
        total, dropped = self.read(self.tally(batch))
        if dropped:
            raise BrokenBatchError(
                f"messages of {self.users} users must all be good, got {dropped} fewer: "
                "one was lost or altered; the batch is void."
            )
        return total


@lru_cache(maxsize=256)
def _spread(noise: BatchNoise, surplus: float, false_alarm: float) -> int:
    return noise.law(surplus).deviation_quantile(false_alarm)


@dataclass(frozen=True, slots=True)
class ShareBatch(SumBatch):
    """Every user adds its part of the noise to its steps and sends that in shares modulo a power of two."""

    can_be_voided: ClassVar[bool] = True

    users: int
    honest: int
    noise: BatchNoise
    splitting: Splitting
    coordinates: int = 1

    @classmethod
    def of(
        cls, users: int, honest_fraction: float, noise: BatchNoise, distance: float, domain: SummedDomain = BITS
    ) -> "ShareBatch":
        """As many shares as mix the honest users to within this distance, all coordinates together."""
        honest = honest_users(users, honest_fraction)
        spread = _spread(noise, users / honest, FALSE_ALARM / domain.coordinates)
        lowest, highest = users * domain.lowest - spread, users * domain.highest + spread
        modulus_bits = modulus_bits_for(highest - lowest + 1)
        modulus, each = 1 << modulus_bits, distance / domain.coordinates
        # Enough for a few users fewer, too, so that dropouts leave something to say.
        shares = smallest_messages(max(1, math.floor(_ROBUST * honest)), modulus, each)
        while mixing_distance(honest, shares, modulus) > each and shares < MOST_SHARES:
            shares += 1
        return cls(users, honest, noise, Splitting(shares, modulus_bits, lowest, highest), domain.coordinates)

    @property
    def messages_mean(self) -> float:
        return float(self.messages_max)

    @property
    def messages_max(self) -> int:
        return self.coordinates * self.splitting.shares

    @property
    def bits_per_message(self) -> int:
        return self.splitting.modulus_bits + label_bits(self.coordinates)

    @property
    def distance(self) -> float:
        return self.distance_with(self.honest)

    def distance_with(self, honest: int) -> float:
        """The distance when so many users are honest."""
        splitting = self.splitting
        return self.coordinates * mixing_distance(honest, splitting.shares, 1 << splitting.modulus_bits)

    def randomize(self, steps: Steps, first_seat: int, *, bits: RandomBits) -> Reports:
        part = self.noise.sample(Fraction(1, self.honest), steps.size, bits=bits)
        shares = self.splitting.split(steps + part.reshape(steps.shape), bits=bits)
        return Reports.of_equal_size(shares) if self.coordinates == 1 else labelled_reports(shares, self.coordinates)

    @property
    def influence(self) -> None:
        return None

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self.splitting.tally(batch, malformed, self.coordinates)

    def read(self, tally: Tally) -> tuple[Total, int]:
        sums = self.splitting.sums(tally, self.users * self.splitting.shares)
        return (int(sums[0]) if self.coordinates == 1 else sums), 0


@dataclass(frozen=True, slots=True)
class CoinBatch(SumBatch):
    """Every user sends its steps as so many ones; fair coins, an even number a coordinate, are dealt out by seat."""

    users: int
    coins: int
    coordinates: int = 1
    lowest: int = 0
    length: int = 1
    """Bits that carry one number of steps."""

    @classmethod
    def of(cls, users: int, honest_fraction: float, noise: CoinNoise, domain: SummedDomain = BITS) -> "CoinBatch":
        """So many coins that the honest part of them is enough."""
        coins = total_coins(noise.coins, honest_fraction)
        if (users + 1) * coins >= 1 << 63:
            raise InfeasibleError("users", users, "and coins must fit into 64 bits together", "plan smaller batches")
        return cls(users, coins, domain.coordinates, domain.lowest, domain.highest - domain.lowest)

    @property
    def messages_mean(self) -> float:
        return self.coordinates * (self.length + self.coins / self.users)

    @property
    def messages_max(self) -> int:
        return self.coordinates * (self.length + -(-self.coins // self.users))

    @property
    def bits_per_message(self) -> int:
        return 1 + label_bits(self.coordinates)

    @property
    def distance(self) -> float:
        return 0.0

    def randomize(self, steps: Steps, first_seat: int, *, bits: RandomBits) -> Reports:
        numbers = steps.reshape(len(steps), self.coordinates).astype(np.int64) - self.lowest
        seats = np.arange(first_seat, first_seat + len(steps) + 1)
        dealt = np.diff(seats * self.coins // self.users)
        # One row for each user and coordinate: the number's bits, then its coins, the last of which may be missing.
        most = int(dealt.max(initial=0))
        messages = np.empty((*numbers.shape, self.length + most), dtype=np.uint8)
        np.less(np.arange(self.length), numbers[..., np.newaxis], out=messages[..., : self.length].view(np.bool_))
        coins = coin_bits(0.5, numbers.size * most, bits=bits)
        messages[..., self.length :] = coins.reshape(*numbers.shape, most)
        sent = np.broadcast_to(
            np.arange(self.length + most) < (self.length + dealt)[:, np.newaxis, np.newaxis], messages.shape
        )
        sizes = self.coordinates * (self.length + dealt)
        if self.coordinates == 1:
            return Reports(messages[sent], sizes)
        every = labelled_reports(messages, self.coordinates)
        keep = sent.reshape(-1)
        return Reports(every.payloads[keep], sizes, None if every.labels is None else every.labels[keep])

    @property
    def influence(self) -> int:
        return self.messages_max

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """Of each coordinate: how many messages are 0, and how many are 1."""
        labels = labels_of(batch)
        good = (batch.payloads <= 1) & (labels >= 0) & (labels < self.coordinates)
        seen = np.bincount(labels[good], minlength=self.coordinates)
        ones = np.bincount(labels[good & (batch.payloads == 1)], minlength=self.coordinates)
        return Tally(np.stack((seen - ones, ones)).astype(np.int64), batch.reports, len(batch), malformed)

    def read(self, tally: Tally) -> tuple[Total, int]:
        totals = tally.counts[1] - (self.coins // 2 - self.users * self.lowest)
        # A message about another coordinate is one too few here and one too many there; a liar's fillers that
        # count are too many, and move the sum by one each: they void nothing. A lost message and such a filler may
        # hide each other: what could not be read is missing in any case.
        expected = self.users * self.length + self.coins
        dropped = int(np.abs(tally.counts.sum(axis=0) - expected).sum())
        return (int(totals[0]) if self.coordinates == 1 else totals), max(dropped, tally.malformed)


def total_coins(coins: int, honest_fraction: float) -> int:
    """The smallest even number of which this fraction is at least `coins`.

    >>> total_coins(288, 0.5)
    576
    """
    total = 2 * math.ceil(coins / honest_fraction / 2 - 1e-9)
    while honest_users(total, honest_fraction) < coins:
        total += 2
    return total


def batch_mechanism(
    users: int, honest_fraction: float, noise: BatchNoise, distance: float, domain: SummedDomain = BITS
) -> SumBatch:
    """The mechanism of a batch of this size, refused where its shares would show more than `distance`."""
    if isinstance(noise, CoinNoise):
        return CoinBatch.of(users, honest_fraction, noise, domain)
    mechanism = ShareBatch.of(users, honest_fraction, noise, distance, domain)
    if mechanism.distance > distance:
        raise InfeasibleError("users", users, "are too few in a batch to mix shares", "choose the noise coins")
    return mechanism
