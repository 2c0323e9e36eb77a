"""Who opens which piece of the batch at hand: pieces are given out by lease, and each is counted once.

A lease that ran out is another's: what its old holder finds is refused. All leases are of one process's analyzer and
end with it; an opener that outlives it is told so, and asks for another piece.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from shuffledp.randomness import RandomBits
from shuffledp.service.problems import LEASE_LOST, RefusedError
from shuffledp.service.wire import new_id

LEASE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class PieceToOpen:
    """One piece that is somebody's to open, as both sides know it.

    Attributes:
        lease: its random id.
        task_id: the task.
        batch_id: the batch.
        users: how many the batch has.
        piece: the piece's number, from 0; the first one says how many reports the batch has.
        without: ids of messages in it that are copies of earlier ones, 16 bytes each.
    """

    lease: str
    task_id: str
    batch_id: str
    users: int
    piece: int
    without: bytes


@dataclass(frozen=True, slots=True)
class OpeningLease(PieceToOpen):
    """One piece to be opened, as the analyzer has given it out.

    Attributes:
        ends: when it is another's, by the clock; None where it ends with this process only.
    """

    ends: float | None


class Openings:
    """The pieces of one batch at a time.

    Args:
        bits: where ids of leases come from.
        clock: seconds that only grow.
        seconds: how long a piece waits for its result.
    """

    def __init__(
        self, *, bits: RandomBits, clock: Callable[[], float] = time.monotonic, seconds: float = LEASE_SECONDS
    ) -> None:
        self._bits, self._clock, self.seconds = bits, clock, seconds
        self._changed = threading.Condition()
        self._batch: tuple[str, str, int] = ("", "", 0)
        self._todo: deque[int] = deque()
        self._without: Mapping[int, bytes] = {}
        self._leased: dict[str, OpeningLease] = {}

    def begin(self, task_id: str, batch_id: str, users: int, todo: Mapping[int, bytes]) -> None:
        """Give out these pieces of a batch from now on, and no others; of each, ids that are copies of earlier ones."""
        with self._changed:
            self._batch, self._without = (task_id, batch_id, users), todo
            self._todo, self._leased = deque(sorted(todo)), {}
            self._changed.notify_all()

    def end(self) -> None:
        """Give out nothing any more, and take nothing."""
        self.begin("", "", 0, {})

    @property
    def is_done(self) -> bool:
        """Whether every piece was counted."""
        with self._changed:
            return not self._todo and not self._leased

    def take(self, *, is_local: bool = False) -> OpeningLease | None:
        """A piece that nobody has, or whose lease ran out; None if there is none.

        Args:
            is_local: whether its holder ends with this process: the lease then never runs out.
        """
        with self._changed:
            now = self._clock()
            for late in [each for each in self._leased.values() if each.ends is not None and each.ends <= now]:
                self._take_back(late)
            if not self._todo:
                return None
            piece = self._todo.popleft()
            ends = None if is_local else now + self.seconds
            name = new_id(bits=self._bits)
            self._leased[name] = lease = OpeningLease(name, *self._batch, piece, self._without[piece], ends)
            return lease

    def held(self, name: str) -> OpeningLease:
        """The lease of this id, if it is still its holder's.

        Raises:
            RefusedError: it is not.
        """
        with self._changed:
            lease = self._leased.get(name)
            if lease is None or (lease.ends is not None and lease.ends <= self._clock()):
                raise RefusedError(LEASE_LOST, "this lease ran out, or its piece was counted: ask for another piece.")
            return lease

    def count(self, name: str, write: Callable[[], None]) -> None:
        """Count a piece: `write` makes its result durable, once, while nobody else can count it.

        Raises:
            RefusedError: the lease is not its holder's any more.
        """
        with self._changed:
            self.held(name)
            write()
            del self._leased[name]
            self._changed.notify_all()

    def give_back(self, name: str) -> bool:
        """Let another open this lease's piece; False if it is not its holder's any more."""
        with self._changed:
            lease = self._leased.get(name)
            if lease is not None:
                self._take_back(lease)
            return lease is not None

    def _take_back(self, lease: OpeningLease) -> None:
        del self._leased[lease.lease]
        self._todo.appendleft(lease.piece)
        self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Until something changes, or so long."""
        with self._changed:
            self._changed.wait(seconds)
