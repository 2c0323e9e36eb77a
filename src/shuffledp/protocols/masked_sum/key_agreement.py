"""Secret keys for every two users out of nothing but a shuffler whose output everybody reads.

Reference: [004] section 5.2, the building block of Theorem 28 (Beimel, Haitner, Nissim, Stemmer 2020).
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_integer
from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.fields import check_fields, domain
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import coin_bits

FAILURE = Fraction(1, 1 << 40)
# Messages grow with the square of the users: this many are held in memory at once.
MOST_MESSAGES = 1 << 25
MOST_KEY_BITS = 1 << 12


def too_few_tosses(key_bits: int, repetitions: int) -> Fraction:
    """The probability, exact, that fewer than `key_bits` of the repetitions give a bit: a tail of Bin(R, 1/2).

    >>> too_few_tosses(1, 3)
    Fraction(1, 8)
    """
    count, term = 0, 1
    for k in range(min(key_bits, repetitions + 1)):
        count += term
        term = term * (repetitions - k) // (k + 1)
    return Fraction(count, 1 << repetitions)


def repetitions_for(key_bits: int, failure: Fraction = FAILURE) -> int:
    """The fewest repetitions of which `key_bits` give a bit but for this probability.

    Args:
        key_bits: how many secret bits a key has.
        failure: the probability with which a pair may have too few.

    Returns:
        How many coins each pair tosses.

    Raises:
        ParameterError: a key of too many bits, or a probability outside (0, 1).

    >>> [repetitions_for(bits) for bits in (64, 128, 256)]
    [233, 394, 696]
    """
    if not 1 <= key_bits <= MOST_KEY_BITS:
        raise ParameterError("key_bits", key_bits, f"must lie in 1..{MOST_KEY_BITS}", "agree on several keys")
    if not 0 < failure < 1:
        raise ParameterError("failure", failure, "must lie strictly between 0 and 1", "2^-40 is a common choice")
    return smallest_integer(lambda repetitions: too_few_tosses(key_bits, repetitions) <= failure, key_bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAgreement:
    """One round in which every two of the users agree on `key_bits` secret bits.

    For each repetition both users of a pair toss a coin and send (pair, repetition, coin). Where the two
    coins differ everybody sees a 0 and a 1 but not whose is which: the pair's key has the coin of its
    leader, the user with the lower number; the follower knows it as 1 less its own. Equal coins are thrown away.

    The adversary sees the number of ones under each label. Given that, and all coins of any other users,
    the keys are exactly uniform; see docs/theory/interaction.md. Users must follow the protocol and read the
    same output. Reference: [004] section 5.2.

    Attributes:
        users: how many agree on keys, every two of them.
        key_bits: how many secret bits a key has.
        repetitions: how many coins each pair tosses.

    >>> agreement = KeyAgreement.plan(users=3, key_bits=8)
    >>> coins = agreement.toss(bits=RandomBits.seeded(1))
    >>> reports = agreement.reports(coins)
    >>> keys = agreement.keys(coins, agreement.useful(Batch(reports.payloads, 3, reports.labels)))
    >>> keys.shape, bool((keys[0, 1] == keys[2, 0]).all())
    ((3, 2, 8), True)
    """

    users: int = domain("[2, inf)", way_out="a key needs two people")
    key_bits: int = domain("[1, inf)")
    repetitions: int = domain("[1, inf)")

    def __post_init__(self) -> None:
        check_fields(self)
        if self.repetitions < self.key_bits:
            raise ParameterError(
                "repetitions", self.repetitions, f"must be at least the {self.key_bits} bits of a key", "plan again"
            )
        if self.messages > MOST_MESSAGES:
            raise ParameterError(
                "users",
                self.users,
                f"must keep the {self.messages:,} messages of all pairs below {MOST_MESSAGES:,}",
                "take fewer users, or a protocol of one round, whose messages do not grow with their square",
            )

    @classmethod
    def plan(cls, *, users: int, key_bits: int, failure: Fraction = FAILURE) -> Self:
        """As few repetitions as give a key to every pair but for `failure` in all."""
        pairs = max(1, math.comb(users, 2)) if isinstance(users, int) and users > 0 else 1
        return cls(users=users, key_bits=key_bits, repetitions=repetitions_for(key_bits, failure / pairs))

    @property
    def pairs(self) -> int:
        """How many two users there are."""
        return math.comb(self.users, 2)

    @property
    def messages_per_user(self) -> int:
        """Messages that each user sends."""
        return (self.users - 1) * self.repetitions

    @property
    def messages(self) -> int:
        """Messages of all users."""
        return self.users * self.messages_per_user

    @property
    def failure(self) -> Fraction:
        """A bound on the probability that some pair has no key: the sum over all pairs."""
        return min(Fraction(1), self.pairs * too_few_tosses(self.key_bits, self.repetitions))

    def toss(self, *, bits: RandomBits) -> NDArray[np.uint8]:
        """Every user's secret coins: user, other user, repetition; the user itself is left out of the others."""
        shape = (self.users, self.users - 1, self.repetitions)
        return coin_bits(0.5, math.prod(shape), bits=bits).reshape(shape)

    def reports(self, coins: NDArray[np.uint8]) -> Reports:
        """What users send: each coin under the number of its pair and repetition, which both users share."""
        labels = self._pair_numbers[:, :, np.newaxis] * self.repetitions + np.arange(self.repetitions)
        return Reports.of_equal_size(
            coins.reshape(self.users, -1), labels.astype(np.uint32, copy=False).reshape(self.users, -1)
        )

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """For each pair and repetition, how many coins there are, and how many show a 1."""
        size = self.pairs * self.repetitions
        labels = np.empty(0, dtype=np.int64) if batch.labels is None else batch.labels.astype(np.int64)
        good = (labels < size) & (batch.payloads[: labels.size] <= 1)
        ones = np.bincount(labels[good & (batch.payloads[: labels.size] == 1)], minlength=size)
        counts = np.stack((np.bincount(labels[good], minlength=size), ones))
        return Tally(counts.astype(np.int64), batch.reports, len(batch), malformed)

    def differing(self, tally: Tally) -> NDArray[np.bool_]:
        """What everybody reads from the shuffler's output: for each pair and repetition, whether the coins differ."""
        size = self.pairs * self.repetitions
        if not (tally.reports == self.users and tally.messages == 2 * size and (tally.counts[0] == 2).all()):
            raise BrokenBatchError(
                f"messages must be two coins for each of {size:,} labels, got {tally.messages:,} messages of "
                f"{tally.reports} users: everybody must stay; nothing private was sent yet, so begin again."
            )
        return np.asarray(tally.counts[1].reshape(self.pairs, self.repetitions) == 1)

    def useful(self, batch: Batch) -> NDArray[np.bool_]:
        """Whether the coins of each pair and repetition differ, from the whole batch."""
        return self.differing(self.tally(batch))

    def keys(self, coins: NDArray[np.uint8], useful: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Every user's key with every other: row i is made from user i's own coins and what everybody reads."""
        tossed = useful.sum(axis=1)
        if (tossed < self.key_bits).any():
            raise BrokenBatchError(
                f"coins that differ must be {self.key_bits} for every pair, got {int(tossed.min())}: "
                "nothing private was sent yet, so begin again with fresh coins."
            )
        taken = useful & (np.cumsum(useful, axis=1) <= self.key_bits)
        known = coins ^ ~self.leads[:, :, np.newaxis]
        return np.asarray(known[taken[self._pair_numbers]].reshape(self.users, self.users - 1, self.key_bits))

    @property
    def leads(self) -> NDArray[np.bool_]:
        """Row i: whether user i leads the pair with each other, those above it, who stand at i and later."""
        return np.asarray(np.arange(self.users - 1) >= np.arange(self.users)[:, np.newaxis])

    @property
    def _pair_numbers(self) -> NDArray[np.int64]:
        """Row i: the number of the pair with each other user, pairs (0, 1), (0, 2), ... counted from 0."""
        numbers = np.zeros((self.users, self.users), dtype=np.int64)
        numbers[np.triu_indices(self.users, 1)] = np.arange(self.pairs)
        return (numbers + numbers.T)[~np.eye(self.users, dtype=np.bool_)].reshape(self.users, -1)


def as_numbers(keys: NDArray[Any]) -> NDArray[np.uint64]:
    """Keys of at most 64 bits as whole numbers, their first bit the highest.

    >>> as_numbers(np.array([[1, 0, 1], [0, 1, 1]]))
    array([5, 3], dtype=uint64)
    """
    places = np.arange(keys.shape[-1], dtype=np.uint64)[::-1]
    return np.asarray((keys.astype(np.uint64) << places).sum(axis=-1, dtype=np.uint64))
