"""An aggregator out of a shuffler, and a shuffler out of an aggregator: each can do the other's work.

An aggregator is trusted to add what users send, modulo a number, and to show nothing but the sum.

Reference: [004] Appendix A (Ishai, Kushilevitz, Ostrovsky, Sahai 2006; Cheu, Yan 2021); docs/theory/interaction.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.mixing import mixing_distance, smallest_messages
from shuffledp.errors import BrokenBatchError, DataError, ParameterError, TooFewReportsError
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.request import check_users
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.splitting import Splitting
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.sampling.uniform import smallest_width

Integers = NDArray[Any]
"""An array of Python's own integers, as long as they need to be."""

# A histogram of this many different messages is one number of up to a few million digits.
MOST_MESSAGES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatorFromShuffler:
    """Sums modulo 2^modulus_bits through a shuffler: each user sends its number in random shares.

    The adversary sees shares that are within `distance` of what can be simulated from the sum alone, whatever
    the numbers are; if others collude, from the sum of the `honest` ones. It is no mechanism for privacy by
    itself: the sum is exact.

    >>> aggregator = AggregatorFromShuffler.plan(users=50, modulus_bits=16, distance=2**-40)
    >>> reports = aggregator.split(np.arange(50), bits=RandomBits.seeded(1))
    >>> aggregator.shares, aggregator.total(Batch(reports.payloads, 50))
    (16, 1225)
    """

    users: int
    honest: int
    modulus_bits: int
    shares: int

    def __post_init__(self) -> None:
        _check_parties(self.users, self.honest, self.modulus_bits)
        if self.shares < 1:
            raise ParameterError("shares", self.shares, "must be >= 1", "make the plan again")

    @classmethod
    def plan(cls, *, users: int, modulus_bits: int, distance: float, honest: int | None = None) -> Self:
        """The fewest shares with which the shuffled shares are this near to showing the sum alone."""
        left = users if honest is None else honest
        _check_parties(users, left, modulus_bits)
        if not 0 < distance < 1:
            raise ParameterError("distance", distance, "must lie strictly between 0 and 1", "2^-40 is a common choice")
        return cls(
            users=users,
            honest=left,
            modulus_bits=modulus_bits,
            shares=smallest_messages(left, 1 << modulus_bits, distance),
        )

    @property
    def modulus(self) -> int:
        """Sums are taken modulo this."""
        return 1 << self.modulus_bits

    @property
    def distance(self) -> float:
        """A bound on the total variation distance between the view and a simulation from the honest sum."""
        return mixing_distance(self.honest, self.shares, self.modulus)

    @property
    def _splitting(self) -> Splitting:
        return Splitting(self.shares, self.modulus_bits, 0, self.modulus - 1)

    def split(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The users' side: shares of each number, uniform given their sum."""
        array = np.asarray(values)
        if array.shape != (self.users,) or array.dtype.kind not in "ui":
            raise DataError(
                "values", f"{array.dtype} of shape {array.shape}", f"must be {self.users} whole numbers", "one a user"
            )
        return Reports.of_equal_size(self._splitting.split(array, bits=bits))

    def total(self, batch: Batch) -> int:
        """The sum modulo the modulus."""
        if batch.reports < self.users:
            raise TooFewReportsError(self.users, batch.reports)
        self._splitting.check_messages(batch.payloads, self.users * self.shares)
        return int(self._splitting.total(batch.payloads))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShufflerFromAggregator:
    """A shuffler of messages in 0..alphabet_size-1 made of nothing but sums of large numbers.

    A user's messages become one number whose j-th digit, in base largest_count + 1, is how often it sends
    message j. The numbers add up without a carry to the histogram of all messages, which is put in a uniformly
    random order. The adversary sees the histogram: exactly what a permuted list of the messages shows.

    >>> shuffler = ShufflerFromAggregator(alphabet_size=3, largest_count=9)
    >>> numbers = shuffler.encode(Reports(np.array([2, 0, 2, 1], dtype=np.uint8), np.array([3, 1])))
    >>> numbers.tolist(), shuffler.modulus
    ([201, 10], 1000)
    >>> shuffler.histogram(sum(numbers)).tolist()
    [1, 1, 2]
    """

    alphabet_size: int
    largest_count: int

    def __post_init__(self) -> None:
        if not 1 <= self.alphabet_size <= MOST_MESSAGES:
            raise ParameterError(
                "alphabet_size", self.alphabet_size, f"must lie in 1..{MOST_MESSAGES}", "send shorter messages"
            )
        if not 1 <= self.largest_count < 1 << 63:
            raise ParameterError("largest_count", self.largest_count, "must lie in 1..2^63", "count all messages")

    @property
    def base(self) -> int:
        """No digit of a sum reaches it."""
        return self.largest_count + 1

    @property
    def modulus(self) -> int:
        """An aggregator with this modulus, or a larger one, loses nothing."""
        return int(self.base**self.alphabet_size)

    def encode(self, reports: Reports) -> Integers:
        """The users' side: one number for each report."""
        if reports.labels is not None:
            raise ParameterError("labels", reports.labels.shape, "must be absent", "make them part of the payload")
        if reports.payloads.size > self.largest_count:
            raise ParameterError(
                "messages", reports.payloads.size, f"must be at most {self.largest_count}", "count all of them"
            )
        if (reports.payloads >= self.alphabet_size).any():
            raise ParameterError(
                "messages", int(reports.payloads.max()), f"must lie below {self.alphabet_size}", "follow the plan"
            )
        users = len(reports)
        owners = np.repeat(np.arange(users), reports.sizes)
        cells = owners * self.alphabet_size + reports.payloads.astype(np.int64)
        counts = np.bincount(cells, minlength=users * self.alphabet_size).reshape(users, self.alphabet_size)
        places = np.array([self.base**j for j in range(self.alphabet_size)], dtype=object)
        return np.asarray(counts.astype(object) @ places)

    def histogram(self, total: int) -> NDArray[np.int64]:
        """The digits of a sum: how often each message was sent."""
        if not 0 <= total < self.modulus:
            raise BrokenBatchError(f"sum must lie below {self.base}^{self.alphabet_size}: it is of another encoding.")
        counts, rest = np.zeros(self.alphabet_size, dtype=np.int64), total
        for j in range(self.alphabet_size):
            rest, counts[j] = divmod(rest, self.base)
        return counts

    def batch(self, total: int, *, reports: int, bits: RandomBits) -> Batch:
        """What a shuffler would have released: the messages in a uniformly random order."""
        counts = self.histogram(total)
        if sum(counts.tolist()) > self.largest_count:
            raise BrokenBatchError(f"messages must be at most {self.largest_count}: a number was lost or altered.")
        width = smallest_width(max(1, (self.alphabet_size - 1).bit_length()))
        messages = np.repeat(np.arange(self.alphabet_size), counts).astype(f"u{width // 8}")
        return Batch(messages[uniform_permutation(messages.size, bits=bits)], reports)


def _check_parties(users: int, honest: int, modulus_bits: int) -> None:
    check_users(users)
    if not 1 <= honest <= users:
        raise ParameterError("honest", honest, f"must lie in 1..{users}", "count the users outside a coalition")
    if not 1 <= modulus_bits <= 64:
        raise ParameterError("modulus_bits", modulus_bits, "must lie in 1..64", "choose a smaller modulus")


def aggregate(numbers: Sequence[int] | Integers, modulus: int) -> int:
    """The trusted aggregator itself: the sum modulo the modulus, and nothing else."""
    if modulus < 1:
        raise ParameterError("modulus", modulus, "must be >= 1", "choose a larger one")
    return int(sum(int(number) for number in numbers) % modulus)


def simulate_by_aggregator(plan: RoundPlan, values: ArrayLike, *, bits: RandomBits) -> Any:
    """The estimate of one round in which the users' messages are only ever added up.

    Its law is that of `simulate`, and so is what the adversary sees. Meant for small alphabets: a number has
    a digit for every message that could be sent.

    Args:
        plan: of one round, whose messages have no labels.
        values: a value a person, encoded.
        bits: where the noise and the order come from.

    Returns:
        The estimate, as `simulate` has it.

    Raises:
        ParameterError: the plan's messages have labels.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=200, privacy=Privacy(1, 1e-6), method="poisson-bits")
    >>> estimate = simulate_by_aggregator(plan, [1] * 50 + [0] * 150, bits=RandomBits.seeded(1))
    >>> abs(estimate.value - 50) < 40
    True
    """
    reports = plan.randomize(values, bits=bits)
    if reports.labels is not None:
        raise ParameterError("plan", plan.protocol, "must have messages without labels", "take a sum of one number")
    shuffler = ShufflerFromAggregator(
        alphabet_size=plan.alphabet_size, largest_count=plan.users * plan.messages_per_user_max
    )
    total = aggregate(shuffler.encode(reports), shuffler.modulus)
    estimate = plan.analyze(shuffler.batch(total, reports=len(reports), bits=bits))
    return replace(estimate, simulated=not bits.is_secure)
