"""One batch of a running count: what its users send and what its messages say."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.mixing import MOST_SHARES, mixing_distance, smallest_messages
from shuffledp.continual.noise import BatchNoise, CoinNoise
from shuffledp.errors import BrokenBatchError, InfeasibleError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import coin_bits

Bits = NDArray[np.uint8]

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
        """How far the shuffled messages are from showing nothing but the noisy count."""

    @abstractmethod
    def randomize(self, values: Bits, first_seat: int, *, bits: RandomBits) -> Reports:
        """Reports of consecutive users, the first of whom has this seat in the batch, from 0."""

    @abstractmethod
    def analyze(self, batch: Batch) -> int:
        """The count plus noise of mean 0, or an error for a batch that was spoiled."""


@dataclass(frozen=True, slots=True)
class ShareBatch(BatchMechanism):
    """Every user adds its part of the noise to its bit and sends that in shares modulo a power of two."""

    users: int
    honest: int
    noise: BatchNoise
    splitting: Splitting

    @classmethod
    def of(cls, users: int, honest_fraction: float, noise: BatchNoise, distance: float) -> "ShareBatch":
        """As many shares as mix the honest users to within this distance."""
        honest = honest_users(users, honest_fraction)
        spread = noise.law(users / honest).deviation_quantile(FALSE_ALARM)
        modulus_bits = modulus_bits_for(users + 2 * spread + 1)
        # Enough for a few users fewer, too, so that dropouts leave something to say.
        shares = smallest_messages(max(1, math.floor(_ROBUST * honest)), 1 << modulus_bits, distance)
        while mixing_distance(honest, shares, 1 << modulus_bits) > distance and shares < MOST_SHARES:
            shares += 1
        return cls(users, honest, noise, Splitting(shares, modulus_bits, -spread, users + spread))

    @property
    def messages_mean(self) -> float:
        return float(self.splitting.shares)

    @property
    def messages_max(self) -> int:
        return self.splitting.shares

    @property
    def bits_per_message(self) -> int:
        return self.splitting.modulus_bits

    @property
    def distance(self) -> float:
        return mixing_distance(self.honest, self.splitting.shares, 1 << self.splitting.modulus_bits)

    def randomize(self, values: Bits, first_seat: int, *, bits: RandomBits) -> Reports:
        part = self.noise.sample(Fraction(1, self.honest), values.size, bits=bits)
        return Reports.of_equal_size(self.splitting.split(values + part, bits=bits))

    def analyze(self, batch: Batch) -> int:
        self.splitting.check_messages(batch.payloads, self.users * self.splitting.shares)
        return int(self.splitting.decode(self.splitting.total(batch.payloads)))


@dataclass(frozen=True, slots=True)
class CoinBatch(BatchMechanism):
    """Every user sends its bit; fair coins, a fixed even number for the batch, are dealt out evenly by seat."""

    users: int
    coins: int

    @classmethod
    def of(cls, users: int, honest_fraction: float, noise: CoinNoise) -> "CoinBatch":
        """So many coins that the honest part of them is enough."""
        return cls(users, total_coins(noise.coins, honest_fraction))

    @property
    def messages_mean(self) -> float:
        return 1 + self.coins / self.users

    @property
    def messages_max(self) -> int:
        return 1 + -(-self.coins // self.users)

    @property
    def bits_per_message(self) -> int:
        return 1

    @property
    def distance(self) -> float:
        return 0.0

    def randomize(self, values: Bits, first_seat: int, *, bits: RandomBits) -> Reports:
        seats = np.arange(first_seat, first_seat + values.size + 1)
        dealt = np.diff(seats * self.coins // self.users)
        sizes = 1 + dealt
        payloads = np.empty(int(sizes.sum()), dtype=np.uint8)
        own = np.cumsum(sizes) - sizes
        is_coin = np.ones(payloads.size, dtype=np.bool_)
        is_coin[own] = False
        payloads[own] = values
        payloads[is_coin] = coin_bits(0.5, int(dealt.sum()), bits=bits)
        return Reports(payloads, sizes)

    def analyze(self, batch: Batch) -> int:
        expected = self.users + self.coins
        if len(batch) != expected or (batch.payloads > 1).any():
            raise BrokenBatchError(
                f"messages must be {expected} bits, got {len(batch)}: one was lost or altered; the batch is void."
            )
        return int(np.count_nonzero(batch.payloads)) - self.coins // 2


def total_coins(coins: int, honest_fraction: float) -> int:
    """The smallest even number of which this fraction is at least `coins`.

    >>> total_coins(288, 0.5)
    576
    """
    total = 2 * math.ceil(coins / honest_fraction / 2 - 1e-9)
    while honest_users(total, honest_fraction) < coins:
        total += 2
    return total


def batch_mechanism(users: int, honest_fraction: float, noise: BatchNoise, distance: float) -> BatchMechanism:
    """The mechanism of a batch of this size, refused where its shares would show more than `distance`."""
    if isinstance(noise, CoinNoise):
        return CoinBatch.of(users, honest_fraction, noise)
    mechanism = ShareBatch.of(users, honest_fraction, noise, distance)
    if mechanism.distance > distance:
        raise InfeasibleError("users", users, "are too few in a batch to mix shares", "choose the noise coins")
    return mechanism
