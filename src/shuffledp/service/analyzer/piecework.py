"""Reading a batch that came in pieces: each is opened and tallied by itself, copies are found, tallies are merged.

No more than a few pieces, and a part of the ids, are in memory at a time. Every result is on disk before it counts: a
process that dies loses the pieces that were being opened, and no others.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.openings import OpeningLease, Openings
from shuffledp.service.analyzer.results import PieceResult, copies_among, ids_in
from shuffledp.service.store.contract import AnalyzerRecords, Store
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, ID_BYTES
from shuffledp.service.workers import ClosedError, WorkerLostError

# How long it is waited for somebody else's result before looking whether to stop, or whose lease ran out.
_LOOK_SECONDS = 0.2
_RESULTS_TOGETHER = 8 << 20


class PieceOpening(Protocol):
    """What opens pieces beside each other: worker processes, or this one in tests."""

    @property
    def at_once(self) -> int:
        """How many pieces it is given at a time."""

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        """Begin with a piece: a future of its messages end to end, and of how many ciphertexts did not open."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What all pieces of a batch say together: a tally, None where it is spoiled; malformed messages, and all."""

    tally: Tally | None
    malformed: int
    messages: int


class PieceWork:
    """Opens batches in pieces, together with whoever else takes pieces by lease.

    Args:
        store: the analyzer's.
        tasks: by their ids.
        opener: this machine's own workers.
        is_stopping: whether to end as soon as possible.
        opened: told of every piece that was counted.
    """

    def __init__(
        self,
        store: Store[AnalyzerRecords],
        tasks: Callable[[str], Task | RoundTask],
        opener: PieceOpening,
        is_stopping: Callable[[], bool],
        opened: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._tasks, self._opener = store, tasks, opener
        self._is_stopping, self._opened = is_stopping, opened
        self._bits = RandomBits.secure()
        self.openings = Openings(bits=self._bits)

    # --- one piece -----------------------------------------------------------------------------

    def take(self) -> tuple[OpeningLease, bytes] | None:
        """A piece for somebody else to open, and its ciphertexts; None if there is none."""
        lease = self.openings.take()
        return None if lease is None else (lease, self._body(lease))

    def _body(self, lease: OpeningLease) -> bytes:
        body = self._store.read(lambda records: records.received_piece(lease.task_id, lease.batch_id, lease.piece))
        assert body is not None
        return body

    def count(self, name: str, result: PieceResult) -> None:
        """Count what was found in a leased piece, durable when this returns.

        Raises:
            RefusedError: the lease is another's by now, or the piece was counted.
            DataError: it is no result of this piece.
        """
        lease = self.openings.held(name)
        plan, messages = self._tasks(lease.task_id).plan, len(self._body(lease)) // CIPHERTEXT_BYTES
        result.check(plan, lease.users, messages, is_first=lease.piece == 0)
        result.check_without(lease.without)
        body = result.to_bytes()
        keep = partial(_keep, lease.task_id, lease.batch_id, lease.piece, body)
        self.openings.count(name, lambda: self._store.write(keep))
        self._opened()

    # --- a batch -------------------------------------------------------------------------------

    def fold(self, task_id: str, batch_id: str, users: int) -> Folded:
        """What a batch says, whoever opened which piece, and in whichever order.

        Raises:
            ClosedError: it was told to stop before all pieces were opened.
        """
        todo = self._store.read(lambda records: records.unopened(task_id, batch_id))
        try:
            if todo:
                self._open_all(task_id, batch_id, users, dict.fromkeys(todo, b""))
            # The first of each id stays: pieces that have copies of earlier messages are opened again without them.
            while copies := self._copies(task_id, batch_id):
                self._open_all(task_id, batch_id, users, copies)
        finally:
            self.openings.end()
        return self._merged(task_id, batch_id)

    def _open_all(self, task_id: str, batch_id: str, users: int, todo: dict[int, bytes]) -> None:
        self.openings.begin(task_id, batch_id, users, todo)
        running: dict[Future[tuple[bytes, int]], OpeningLease] = {}
        while not self.openings.is_done:
            if self._is_stopping():
                raise ClosedError
            while len(running) < self._opener.at_once and (lease := self.openings.take(is_local=True)) is not None:
                running[self._opener.start(self._body(lease), task_id, batch_id)] = lease
            if not running:
                self.openings.wait(_LOOK_SECONDS)
                continue
            for future in wait(running, _LOOK_SECONDS, FIRST_COMPLETED).done:
                self._finish(running.pop(future), future)

    def _finish(self, lease: OpeningLease, future: "Future[tuple[bytes, int]]") -> None:
        try:
            plain, unopened = future.result()
        except WorkerLostError:
            # By the system perhaps, when memory was short: somebody opens it after a pause.
            time.sleep(_LOOK_SECONDS)
            self.openings.give_back(lease.lease)
            return
        plan, is_first = self._tasks(lease.task_id).plan, lease.piece == 0
        result = PieceResult.of(plan, lease.users, plain, unopened, is_first=is_first, without=lease.without)
        self.count(lease.lease, result)

    def _results(self, task_id: str, batch_id: str) -> Iterator[tuple[int, bytes]]:
        first = 0
        while found := self._store.read(partial(_some, task_id, batch_id, first)):
            yield from found
            first = found[-1][0] + 1

    def _copies(self, task_id: str, batch_id: str) -> dict[int, bytes]:
        def ids() -> Iterator[tuple[int, bytes]]:
            return ((piece, ids_in(result)) for piece, result in self._results(task_id, batch_id))

        return copies_among(ids, sum(len(each) for _, each in ids()) // ID_BYTES, bits=self._bits)

    def _merged(self, task_id: str, batch_id: str) -> Folded:
        tally: Tally | None = None
        is_spoiled, malformed, messages = False, 0, 0
        for _, body in self._results(task_id, batch_id):
            result = PieceResult.from_bytes(body)
            malformed, messages = malformed + result.malformed, messages + result.messages
            if result.tally is None:
                is_spoiled = True
            elif not is_spoiled:
                tally = result.tally if tally is None else Tally.merge([tally, result.tally])
        return Folded(None if is_spoiled else tally, malformed, messages)


def _keep(task_id: str, batch_id: str, piece: int, result: bytes, records: AnalyzerRecords) -> None:
    records.set_result(task_id, batch_id, piece, result)


def _some(task_id: str, batch_id: str, first: int, records: AnalyzerRecords) -> list[tuple[int, bytes]]:
    return records.some_results(task_id, batch_id, first, _RESULTS_TOGETHER)
