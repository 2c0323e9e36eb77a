"""Split-and-mix transport: a whole number in random shares modulo a power of two, and back from their sum."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.mixing import MOST_SHARES, mixing_distance_of
from shuffledp.errors import BrokenBatchError, InfeasibleError, ParameterError
from shuffledp.messages import Batch, Payloads
from shuffledp.protocols.labels import labels_of
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.tally_rows import TallyRows, Whole, run_lengths
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below

# A batch with one bad share has a uniform sum: it passes for a good one with probability 2^-40.
MARGIN_BITS = 40
# The margin that is left at least where the modulus is as large as a word.
SMALLEST_MARGIN_BITS = 8
# A good batch is taken for a broken one with at most this probability.
FALSE_ALARM = 1e-12


def modulus_bits_for(sums: int) -> int:
    """The modulus, as a power of two, that holds so many sums of a good batch and the margin.

    >>> modulus_bits_for(10_001)
    54
    """
    needed = (sums - 1).bit_length()
    if needed + SMALLEST_MARGIN_BITS > 64:
        raise InfeasibleError(
            "modulus_bits",
            needed + SMALLEST_MARGIN_BITS,
            "must be at most 64 to hold the sum of all users on this grid",
            "choose a coarser grid, fewer users or a larger epsilon",
        )
    return min(64, needed + MARGIN_BITS)


@dataclass(frozen=True, slots=True)
class Splitting:
    """Shares of numbers whose sum over all users lies in lowest..highest unless the batch was spoiled.

    >>> splitting = Splitting(shares=3, modulus_bits=50, lowest=-10, highest=1000)
    >>> shares = splitting.split(np.array([400, -7]), bits=RandomBits.seeded(1))
    >>> shares.shape, splitting.decode(splitting.total(shares.reshape(1, -1)))
    ((2, 3), array([393]))
    """

    shares: int
    modulus_bits: int
    lowest: int
    highest: int

    @property
    def mask(self) -> np.uint64:
        """All ones in the bits of a message."""
        return np.uint64((1 << self.modulus_bits) - 1)

    @property
    def undetected_bits(self) -> int:
        """A random change of a share goes unnoticed with probability 2^-this."""
        return self.modulus_bits - (self.highest - self.lowest).bit_length()

    def check(self, largest_deviation: int = 0) -> None:
        """Refuse what is no splitting: a plan's own numbers, read from a file."""
        if not 1 <= self.shares <= MOST_SHARES:
            raise ParameterError("shares", self.shares, f"must lie in 1..{MOST_SHARES}", "make the plan again")
        if largest_deviation < 0 or not 1 <= self.modulus_bits <= 64 or self.undetected_bits < 1:
            raise ParameterError(
                "modulus_bits", self.modulus_bits, "must hold every sum in 64 bits", "make the plan again"
            )

    def transport_terms(self, honest: int, epsilon: float, coordinates: int = 1) -> tuple[DeltaTerm, DeltaTerm]:
        """What shuffled shares of so many coordinates show, and that reducing a sum costs nothing."""
        distance = self.distance_with(honest, coordinates)
        shown = f"shuffled shares of {coordinates:,} coordinates" if coordinates > 1 else "shuffled shares"
        return (
            DeltaTerm(
                "transport",
                delta_of_distance(math.exp(epsilon), distance),
                f"(1 + e^epsilon) times {distance:.3g}, what {shown} show beyond their sum",
            ),
            DeltaTerm("wrap-around", 0.0, f"reducing a sum modulo 2^{self.modulus_bits} is a post-processing"),
        )

    def distance_with(self, honest: int, coordinates: int = 1) -> float:
        """How far so many honest users' shares, each coordinate's mixed by themselves, are from showing sums alone."""
        return mixing_distance_of([(honest, self.shares, 1 << self.modulus_bits, coordinates)])

    def lying_client(self, moved: str) -> str:
        """What one client that does not follow the protocol can do to what it may move."""
        return (
            f"moves {moved} as far as it likes or voids the batch; "
            f"a random change is detected but for 2^-{self.undetected_bits}"
        )

    def split(self, values: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.uint64]:
        """Uniform shares of each value, along a new last axis."""
        # Unsigned arithmetic wraps modulo 2^64, of which 2^modulus_bits is a divisor.
        rest = values.astype(np.uint64).reshape(-1)
        messages = np.empty((rest.size, self.shares), dtype=np.uint64)
        if self.shares > 1 and rest.size:
            drawn = uniform_below(1 << self.modulus_bits, rest.size * (self.shares - 1), bits=bits)
            messages[:, 1:] = drawn.reshape(rest.size, -1)
            for share in range(1, self.shares):
                rest -= messages[:, share]
        messages[:, 0] = rest & self.mask
        return messages.reshape(*values.shape, self.shares)

    def total(self, payloads: Payloads) -> NDArray[np.uint64]:
        """The sum modulo the modulus, along the last axis."""
        return np.asarray(payloads.sum(axis=-1, dtype=np.uint64) & self.mask)

    def decode(self, totals: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The sums behind their residues, or an error where no good batch has such a residue."""
        above = (totals - np.array(self.lowest, dtype=np.int64).astype(np.uint64)) & self.mask
        if (above > np.uint64(self.highest - self.lowest)).any():
            worst = int(totals.reshape(-1)[np.argmax(above)])
            raise _void(f"sum must lie in {self.lowest}..{self.highest}, got {worst} modulo 2^{self.modulus_bits}")
        return above.astype(np.int64) + self.lowest

    def centred(self, totals: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Residues as the numbers nearest to 0."""
        # Moved to the top of the word, the modulus's highest bit is the word's sign.
        unused = 64 - self.modulus_bits
        return np.asarray((totals << np.uint64(unused)).astype(np.int64) >> np.int64(unused))

    def tally(self, batch: Batch, malformed: int = 0, coordinates: int = 1) -> Tally:
        """The sum of each coordinate's shares modulo 2^64, and their number.

        A message that is too large, or about another coordinate, is counted as malformed.
        """
        if coordinates == 1 and batch.labels is None:
            shares = self._below(batch.payloads)
            counts = np.array([[shares.sum(dtype=np.uint64)], [shares.size]], dtype=np.uint64)
            return Tally(counts, batch.reports, len(batch), malformed + len(batch) - shares.size)
        labels = labels_of(batch)
        good = (batch.payloads <= self.mask) & (labels >= 0) & (labels < coordinates)
        kept = labels if good.all() else labels[good]
        shares = batch.payloads if good.all() else batch.payloads[good]
        sums, seen = add_up(shares, kept, coordinates), np.bincount(kept, minlength=coordinates)
        counts = np.stack((sums, seen.astype(np.uint64)))
        return Tally(counts, batch.reports, len(batch), malformed + len(batch) - shares.size)

    def tally_runs(self, shares: NDArray[np.uint64], starts: Whole) -> TallyRows:
        """As `tally`, of users' shares along the last axis, and of several batches that begin at these users.

        Args:
            shares: users, coordinates, shares.
            starts: the place of each batch's first user, from 0 on.
        """
        users, coordinates, each = shares.shape
        if shares.max(initial=0) > self.mask:
            raise ParameterError("shares", int(shares.max()), f"must be below 2^{self.modulus_bits}", "split again")
        lengths = run_lengths(starts, users)
        if coordinates == 1:
            sums = np.add.reduceat(shares.reshape(-1), starts * each)[:, np.newaxis]
        else:
            sums = np.add.reduceat(shares, starts, axis=0).sum(axis=-1, dtype=np.uint64)
        seen = np.broadcast_to((lengths * each).astype(np.uint64)[:, np.newaxis], sums.shape)
        counts = np.stack((sums, seen), axis=1)
        return TallyRows(counts, lengths, lengths * coordinates * each, np.zeros_like(lengths))

    def sums_of(self, rows: TallyRows, expected: int) -> NDArray[np.int64]:
        """As `sums`, of several whole batches along the first axis."""
        whole = expected * rows.counts.shape[2]
        if rows.malformed.any() or (rows.messages != whole).any():
            raise self._lost(whole, int(rows.messages[np.argmax(rows.messages != whole)]))
        if (rows.counts[:, 1] != np.uint64(expected)).any():
            raise _void(f"messages about every coordinate must be {expected}", "its label altered")
        return self.decode(rows.counts[:, 0] & self.mask)

    def _below(self, payloads: Payloads) -> Payloads:
        """The messages that are no larger than a share may be."""
        return payloads if payloads.max(initial=0) <= self.mask else payloads[payloads <= self.mask]

    def sums(self, tally: Tally, expected: int) -> NDArray[np.int64]:
        """Each coordinate's sum, or an error unless exactly so many shares about each came whole."""
        sums, seen = tally.counts
        whole = expected * seen.size
        if tally.malformed or tally.messages != whole:
            raise self._lost(whole, tally.messages)
        if (seen != np.uint64(expected)).any():
            raise _void(f"messages about every coordinate must be {expected}", "its label altered")
        return self.decode(sums & self.mask)

    def check_messages(self, payloads: Payloads, expected: int) -> None:
        """Refuse a batch with a message too many, too few or too large."""
        if payloads.size != expected or (payloads > self.mask).any():
            raise self._lost(expected, payloads.size)

    def _lost(self, expected: int, messages: int) -> BrokenBatchError:
        return _void(f"messages must be {expected} numbers below 2^{self.modulus_bits}, got {messages}")


def _void(said: str, how: str = "altered") -> BrokenBatchError:
    way_out = "the batch is void; a second try costs its privacy again"
    return BrokenBatchError(f"{said}: a share was lost or {how}, {way_out}.")


def add_up(values: Payloads, labels: Any, count: int) -> NDArray[np.uint64]:
    """The sum modulo 2^64 of the values with each label below `count`."""
    totals = np.zeros(count, dtype=np.uint64)
    np.add.at(totals, labels, values.astype(np.uint64, copy=False))
    return totals
