"""One batch of a running sum: what its users send and what its messages say."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.mixing import MOST_SHARES, mixing_distance, smallest_messages
from shuffledp.continual.domains import BITS, Domain
from shuffledp.continual.noise import BatchNoise, CoinNoise
from shuffledp.errors import BrokenBatchError, InfeasibleError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.labels import check_every_share, label_bits, labelled_reports, labels_of
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, add_up, modulus_bits_for
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import coin_bits

Steps = NDArray[Any]
"""Whole numbers of steps: an entry a user, or a row where there are several coordinates."""
Total = Any
"""A whole number, or an array of one for each coordinate."""

# Shares mix this part of the honest users, too.
_ROBUST = 0.8


class BatchMechanism(ABC):
    """The encoder and the size (E, m) of [000]: frozen, and the same for clients and server."""

    users: int

    @property
    @abstractmethod
    def messages_mean(self) -> float:
        """Messages a user sends on average."""

    @property
    @abstractmethod
    def messages_max(self) -> int:
        """Messages a user sends at most."""

    @property
    @abstractmethod
    def bits_per_message(self) -> int:
        """The size of one message before encryption."""

    @property
    @abstractmethod
    def distance(self) -> float:
        """How far the shuffled messages are from showing nothing but the noisy sum."""

    @abstractmethod
    def randomize(self, steps: Steps, first_seat: int, *, bits: RandomBits) -> Reports:
        """Reports of consecutive users, the first of whom has this seat in the batch, from 0."""

    @abstractmethod
    def analyze(self, batch: Batch) -> Total:
        """The sum plus noise of mean 0, in steps, or an error for a batch that was spoiled."""

    def read(self, batch: Batch) -> tuple[Total, int]:
        """The same, and how many messages were missing or malformed; each may move a coordinate by one step."""
        return self.analyze(batch), 0


@lru_cache(maxsize=256)
def _spread(noise: BatchNoise, surplus: float, false_alarm: float) -> int:
    return noise.law(surplus).deviation_quantile(false_alarm)


@dataclass(frozen=True, slots=True)
class ShareBatch(BatchMechanism):
    """Every user adds its part of the noise to its steps and sends that in shares modulo a power of two."""

    users: int
    honest: int
    noise: BatchNoise
    splitting: Splitting
    coordinates: int = 1

    @classmethod
    def of(
        cls, users: int, honest_fraction: float, noise: BatchNoise, distance: float, domain: Domain = BITS
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

    def analyze(self, batch: Batch) -> Total:
        each = self.users * self.splitting.shares
        self.splitting.check_messages(batch.payloads, self.coordinates * each)
        if self.coordinates == 1:
            return int(self.splitting.decode(self.splitting.total(batch.payloads)))
        labels = labels_of(batch)
        check_every_share(labels, self.coordinates, each)
        return self.splitting.decode(add_up(batch.payloads, labels, self.coordinates) & self.splitting.mask)


@dataclass(frozen=True, slots=True)
class CoinBatch(BatchMechanism):
    """Every user sends its steps as so many ones; fair coins, an even number a coordinate, are dealt out by seat."""

    users: int
    coins: int
    coordinates: int = 1
    lowest: int = 0
    length: int = 1
    """Bits that carry one number of steps."""

    @classmethod
    def of(cls, users: int, honest_fraction: float, noise: CoinNoise, domain: Domain = BITS) -> "CoinBatch":
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

    def analyze(self, batch: Batch) -> Total:
        total, dropped = self.read(batch)
        if dropped:
            raise BrokenBatchError(
                f"messages must be {self._expected * self.coordinates} good bits, got {dropped} fewer: "
                "one was lost or altered; the batch is void."
            )
        return total

    @property
    def _expected(self) -> int:
        """Messages about one coordinate."""
        return self.users * self.length + self.coins

    def read(self, batch: Batch) -> tuple[Total, int]:
        labels = labels_of(batch)
        good = (batch.payloads <= 1) & (labels >= 0) & (labels < self.coordinates)
        seen = np.bincount(labels[good], minlength=self.coordinates)
        ones = np.bincount(labels[good & (batch.payloads == 1)], minlength=self.coordinates)
        totals = ones - (self.coins // 2 - self.users * self.lowest)
        # A message about another coordinate is one too few here and one too many there; a liar's fillers that
        # count are too many, and move the sum by one each: they void nothing.
        dropped = int(np.abs(seen - self._expected).sum())
        return (int(totals[0]) if self.coordinates == 1 else totals), dropped


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
    users: int, honest_fraction: float, noise: BatchNoise, distance: float, domain: Domain = BITS
) -> BatchMechanism:
    """The mechanism of a batch of this size, refused where its shares would show more than `distance`."""
    if isinstance(noise, CoinNoise):
        return CoinBatch.of(users, honest_fraction, noise, domain)
    mechanism = ShareBatch.of(users, honest_fraction, noise, distance, domain)
    if mechanism.distance > distance:
        raise InfeasibleError("users", users, "are too few in a batch to mix shares", "choose the noise coins")
    return mechanism
