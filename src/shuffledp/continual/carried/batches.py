"""One window of a running sum with carried noise: everybody adds what it drew for this window, in shares."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.messages import Batch, Reports
from shuffledp.protocols.labels import label_bits, labelled_reports
from shuffledp.protocols.learner import BatchMechanism
from shuffledp.protocols.splitting import Splitting
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.tally_rows import TallyRows, Whole, seats_of_runs
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True)
class WindowBatch(BatchMechanism):
    """The users of some slots in a row; a user of the last one sends the first of its prepared numbers.

    Attributes:
        users: of the window.
        slot_sizes: the users of each of its slots, the earliest first.
        splitting: how a number is sent.
        coordinates: numbers that a user sends.
    """

    can_be_voided: ClassVar[bool] = True
    influence: ClassVar[int | None] = None

    users: int
    slot_sizes: tuple[int, ...]
    splitting: Splitting
    coordinates: int = 1

    @property
    def messages_max(self) -> int:
        return self.coordinates * self.splitting.shares

    @property
    def bits_per_message(self) -> int:
        """The size of one message before encryption."""
        return self.splitting.modulus_bits + label_bits(self.coordinates)

    def randomize(self, prepared: Any, first_seat: int, *, bits: RandomBits) -> Reports:
        """Reports of consecutive users, of whose prepared numbers, one for each of its windows, this one's is sent."""
        shares = self._shares(prepared, np.arange(first_seat, first_seat + len(prepared)), bits)
        if self.coordinates > 1:
            return labelled_reports(shares, self.coordinates, 0)
        return Reports.of_equal_size(shares.reshape(len(shares), -1))

    def _shares(self, prepared: Any, seats: NDArray[np.int64], bits: RandomBits) -> NDArray[np.uint64]:
        """The shares of those prepared numbers that are this window's, of the users with these seats."""
        ages = _ages(self.slot_sizes)[seats]
        numbers = np.asarray(prepared)[np.arange(len(prepared)), ages].reshape(len(prepared), -1)
        return self.splitting.split(numbers, bits=bits)

    def tally_runs(self, prepared: Any, first_seat: int, starts: Whole, *, bits: RandomBits) -> TallyRows:
        seats = seats_of_runs(starts, len(prepared), first_seat)
        return self.splitting.tally_runs(self._shares(prepared, seats, bits), starts)

    def read_rows(self, rows: TallyRows) -> Any:
        sums = self.splitting.sums_of(rows, self.users * self.splitting.shares)
        return sums[:, 0] if self.coordinates == 1 else sums

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self.splitting.tally(batch, malformed, self.coordinates)

    def read(self, tally: Tally) -> tuple[Any, int]:
        sums = self.splitting.sums(tally, self.users * self.splitting.shares)
        return (int(sums[0]) if self.coordinates == 1 else sums), 0


@lru_cache(maxsize=64)
def _ages(slot_sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """For each seat: how many slots after the seat's own one the window closes."""
    return np.repeat(np.arange(len(slot_sizes))[::-1], slot_sizes)
