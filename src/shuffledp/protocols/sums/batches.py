"""The two transports of a sum: what the users of one batch send, and what its messages say.

Shares carry numbers with any noise already added; bits carry a number as so many ones, with coins beside them.
"""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial, IntegerLaw
from shuffledp.errors import BrokenBatchError
from shuffledp.messages import Batch, Payloads, Reports
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.labels import label_bits, labelled_reports, labels_of
from shuffledp.protocols.learner import BatchMechanism
from shuffledp.protocols.splitting import Splitting
from shuffledp.protocols.sums.noise import BatchNoise, fewest_dealt
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.tally_rows import TallyRows, Whole, run_lengths, seats_of_runs
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial, coin_bits

Steps = NDArray[Any]
"""Whole numbers of steps: an entry a user, or a row where there are several coordinates."""
Total = Any
"""A whole number, or an array of one for each coordinate."""


class SumBatch(BatchMechanism):
    """A batch whose users add whole steps and noise: its sum is what it says."""

    can_be_voided: ClassVar[bool] = False
    curve: ClassVar[str] = "the hockey-stick curve of the pair"
    """What the noise's term of delta is, where a user moves one number."""
    mean: float = 0.0
    """The mean of everybody's noise in a coordinate."""
    coordinates: int
    labelled: bool

    def check(self) -> None:
        """Refuse numbers that make no transport: a plan's own, read from a file."""
        return

    @property
    @abstractmethod
    def each(self) -> int:
        """Messages that a user sends about one coordinate, at most."""

    @property
    def messages_max(self) -> int:
        return self.coordinates * self.each

    @property
    def messages_mean(self) -> float:
        """Messages a user sends on average."""
        return float(self.messages_max)

    payload_bits: int
    """The size of what a message says about its coordinate."""

    @property
    def bits_per_message(self) -> int:
        """The size of one message before encryption."""
        return self.payload_bits + label_bits(self.coordinates)

    influence: int | None = None
    """By how many steps one client that lies can move a coordinate; None if as far as it likes."""

    @abstractmethod
    def law(self, honest: int) -> IntegerLaw:
        """The law of what so many honest users, in the worst case, add to a coordinate; of all users if all are."""

    @abstractmethod
    def distance_with(self, honest: int) -> float:
        """How far the messages are from showing nothing but the noisy sum when so many users are honest."""

    @abstractmethod
    def transport_terms(self, honest: int, epsilon: float) -> tuple[DeltaTerm, ...]:
        """What the messages show beyond the noisy sum, and what drawing the noise costs."""

    @abstractmethod
    def messages(self, steps: Steps, first_seat: int, *, bits: RandomBits) -> tuple[Payloads, Any]:
        """The messages of each number along a new last axis, and how many of them each user sends; None if all."""

    def randomize(self, steps: Steps, first_seat: int, *, bits: RandomBits, first: int = 0) -> Reports:
        """Reports of consecutive users about their coordinates from `first` on."""
        messages, sent = self.messages(steps.reshape(len(steps), -1), first_seat, bits=bits)
        if self.labelled or self.coordinates > 1:
            every = labelled_reports(messages, self.coordinates, first)
        else:
            every = Reports.of_equal_size(messages.reshape(len(messages), -1))
        if sent is None:
            return every
        keep = (np.arange(messages.shape[-1]) < sent[:, np.newaxis, np.newaxis]).repeat(messages.shape[1], axis=1)
        kept, sizes = keep.reshape(-1), messages.shape[1] * sent
        return Reports(every.payloads[kept], sizes, None if every.labels is None else every.labels[kept])

    @abstractmethod
    def sums(self, tally: Tally) -> tuple[NDArray[np.int64], int]:
        """Each coordinate's sum, noise and its mean included, and how many messages were missing or malformed."""

    def read(self, tally: Tally) -> tuple[Total, int]:
        """The sum plus noise of mean 0, in steps, and how many messages were missing or malformed."""
        sums, dropped = self.sums(tally)
        totals = sums - self.centre
        return (int(totals[0]) if self.coordinates == 1 else totals), dropped

    @property
    def centre(self) -> int:
        """What is read of a batch whose steps and noise are 0, where that is whole."""
        return 0

    def analyze(self, batch: Batch) -> Total:
        """The sum plus noise of mean 0, in steps, or an error for a batch that was spoiled or lost a message."""
        total, dropped = self.read(self.tally(batch))
        if dropped:
            raise BrokenBatchError(
                f"messages of {self.users} users must all be good, got {dropped} fewer: "
                "one was lost or altered; the batch is void."
            )
        return total

    @abstractmethod
    def sample(self, count: int, *, bits: RandomBits, batches: int = 1) -> NDArray[np.int64]:
        """Everybody's noise in so many coordinates, its mean included, over so many batches added up."""

    def checked(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums with noise as an analyzer would read them."""
        return totals

    @abstractmethod
    def run_sums(self, payloads: Payloads) -> NDArray[np.int64]:
        """Sums in steps, up to a constant, of messages along the last axis: for audits."""


@dataclass(frozen=True, slots=True)
class ShareBatch(SumBatch):
    """Every user adds its part of the noise to its steps and sends that in shares modulo a power of two."""

    can_be_voided: ClassVar[bool] = True

    users: int
    honest: int
    noise: BatchNoise
    splitting: Splitting
    coordinates: int = 1
    labelled: bool = False

    def check(self) -> None:
        self.splitting.check()

    each = forwarded("splitting.shares")
    payload_bits = forwarded("splitting.modulus_bits")

    def law(self, honest: int) -> IntegerLaw:
        return self.noise.law(honest, self.honest)

    def distance_with(self, honest: int) -> float:
        return self.splitting.distance_with(honest, self.coordinates)

    def transport_terms(self, honest: int, epsilon: float) -> tuple[DeltaTerm, ...]:
        return (
            *self.splitting.transport_terms(honest, epsilon, self.coordinates),
            DeltaTerm(
                "sampling",
                self.noise.sampling_delta(self.users, self.honest, self.coordinates, epsilon),
                "(1 + e^epsilon) times what the users' noise tables cut off and round",
            ),
        )

    def messages(self, steps: Steps, first_seat: int, *, bits: RandomBits) -> tuple[Payloads, None]:
        part = self.noise.sample(Fraction(1, self.honest), steps.size, bits=bits)
        return self.splitting.split(steps + part.reshape(steps.shape), bits=bits), None

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self.splitting.tally(batch, malformed, self.coordinates)

    def tally_runs(self, prepared: Steps, first_seat: int, starts: Whole, *, bits: RandomBits) -> TallyRows:
        # What a user sends does not depend on its seat.
        shares, _ = self.messages(prepared.reshape(len(prepared), -1), first_seat, bits=bits)
        return self.splitting.tally_runs(shares, starts)

    def read_rows(self, rows: TallyRows) -> NDArray[np.int64]:
        sums = self.splitting.sums_of(rows, self.users * self.splitting.shares)
        return sums[:, 0] if self.coordinates == 1 else sums

    def sums(self, tally: Tally) -> tuple[NDArray[np.int64], int]:
        return self.splitting.sums(tally, self.users * self.splitting.shares), 0

    def sample(self, count: int, *, bits: RandomBits, batches: int = 1) -> NDArray[np.int64]:
        return self.noise.sample(batches * Fraction(self.users, self.honest), count, bits=bits)

    def checked(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.splitting.decode(totals.astype(np.uint64) & self.splitting.mask)

    def run_sums(self, payloads: Payloads) -> NDArray[np.int64]:
        return self.splitting.centred(self.splitting.total(payloads))


@dataclass(frozen=True, slots=True)
class CoinBatch(SumBatch):
    """Every user sends its steps as so many ones; coins, so many a coordinate, are dealt out evenly by seat.

    Reference: [001] Algorithm 1.

    >>> batch = CoinBatch(users=2, coins=4, length=3)
    >>> batch.randomize(np.array([2, 0]), 0, bits=RandomBits.seeded(0)).payloads.reshape(2, 5)[:, :3]
    array([[1, 1, 0],
           [0, 0, 0]], dtype=uint8)
    """

    curve: ClassVar[str] = "the hockey-stick curve of the pair, the larger direction, rounded up"
    payload_bits = 1

    users: int
    coins: int
    coordinates: int = 1
    lowest: int = 0
    length: int = 1
    """Bits that carry one number of steps."""
    probability: float = 0.5
    labelled: bool = False

    @property
    def each(self) -> int:
        return self.length + -(-self.coins // self.users)

    @property
    def messages_mean(self) -> float:
        return self.coordinates * (self.length + self.coins / self.users)

    influence = forwarded("messages_max")

    def law(self, honest: int) -> Binomial:
        return Binomial(fewest_dealt(self.coins, self.users, honest), self.probability)

    @property
    def mean(self) -> float:  # type: ignore[override]
        return self.coins * self.probability

    def distance_with(self, honest: int) -> float:
        return 0.0

    def transport_terms(self, honest: int, epsilon: float) -> tuple[DeltaTerm, ...]:
        return (DeltaTerm("sampling", 0.0, "coins are drawn exactly"),)

    def messages(self, steps: Steps, first_seat: int, *, bits: RandomBits) -> tuple[Payloads, Any]:
        return self._messages(steps, np.arange(first_seat, first_seat + len(steps)), bits)

    def _messages(self, steps: Steps, seats: Whole, bits: RandomBits) -> tuple[Payloads, Any]:
        """As `messages`, of users with any seats."""
        numbers = steps - self.lowest if self.lowest else steps
        most, uneven = divmod(self.coins, self.users)
        dealt = None
        if uneven:
            dealt = (seats + 1) * self.coins // self.users - seats * self.coins // self.users
            most = int(dealt.max(initial=0))
        # One row for each user and coordinate: the number's bits, then its coins, the last of which may be missing.
        messages = np.empty((*numbers.shape, self.length + most), dtype=np.uint8)
        if self.length == 1:
            messages[..., 0] = numbers
        else:
            np.less(np.arange(self.length), numbers[..., np.newaxis], out=messages[..., : self.length].view(np.bool_))
        coins = coin_bits(self.probability, numbers.size * most, bits=bits)
        messages[..., self.length :] = coins.reshape(*numbers.shape, most)
        return messages, None if dealt is None else self.length + dealt

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        """How many messages about each coordinate are 0, and how many are 1."""
        if batch.labels is None and self.coordinates == 1:
            counts = np.array([[np.count_nonzero(batch.payloads == bit)] for bit in (0, 1)], dtype=np.int64)
            return Tally(counts, batch.reports, len(batch), malformed)
        labels = labels_of(batch)
        good = (batch.payloads <= 1) & (labels >= 0) & (labels < self.coordinates)
        seen = np.bincount(labels[good], minlength=self.coordinates)
        ones = np.bincount(labels[good & (batch.payloads == 1)], minlength=self.coordinates)
        return Tally(np.stack((seen - ones, ones)).astype(np.int64), batch.reports, len(batch), malformed)

    def tally_runs(self, prepared: Steps, first_seat: int, starts: Whole, *, bits: RandomBits) -> TallyRows:
        users = len(prepared)
        seats = seats_of_runs(starts, users, first_seat)
        messages, sent = self._messages(prepared.reshape(users, -1), seats, bits)
        each = np.full(users, messages.shape[-1]) if sent is None else sent
        if sent is not None:
            # What was not dealt to a user is not sent.
            messages *= np.arange(messages.shape[-1]) < sent[:, np.newaxis, np.newaxis]
        ones = np.add.reduceat(messages.sum(axis=-1, dtype=np.int64), starts, axis=0)
        seen = np.add.reduceat(each, starts)
        counts = np.stack((seen[:, np.newaxis] - ones, ones), axis=1)
        lengths = run_lengths(starts, users)
        return TallyRows(counts, lengths, seen * messages.shape[1], np.zeros_like(lengths))

    def sums(self, tally: Tally) -> tuple[NDArray[np.int64], int]:
        most = self.users * self.messages_max
        if tally.messages > most:
            raise BrokenBatchError(
                f"messages must be at most {most}, got {tally.messages}: "
                "somebody sent more than the plan; a second try costs its privacy again."
            )
        # A message about another coordinate is one too few here and one too many there; a liar's fillers that
        # count are too many, and move the sum by one each: they void nothing. A lost message and such a filler may
        # hide each other: what could not be read is missing in any case.
        expected = self.users * self.length + self.coins
        dropped = int(np.abs(tally.counts.sum(axis=0) - expected).sum())
        return tally.counts[1], max(dropped, tally.malformed)

    @property
    def centre(self) -> int:
        return self.coins // 2 - self.users * self.lowest

    def sample(self, count: int, *, bits: RandomBits, batches: int = 1) -> NDArray[np.int64]:
        return binomial(batches * self.coins, self.probability, count, bits=bits)

    def run_sums(self, payloads: Payloads) -> NDArray[np.int64]:
        return np.asarray(payloads.sum(axis=-1, dtype=np.int64))
