"""Permuting a batch that does not fit into memory, in two passes over the store: a commit a megabyte.

What is dealt and written is a draft until the last piece seals it: a process that dies before that leaves the batch as
it came, and the next one draws everything anew. Nothing here understands a message.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.service.delivery import LARGEST_PIECE_BYTES, WHOLE_BATCH_BYTES, recut
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.commits import add_piece
from shuffledp.service.shuffler.desk import ShufflerDesk
from shuffledp.service.shuffler.layers import Suspects
from shuffledp.service.store.contract import ShufflerRecords, Store
from shuffledp.service.wire import CIPHERTEXT_BYTES
from shuffledp.shuffle.two_passes import Rows, buckets_for, deal, permuted_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """How much of a batch is in memory at a time, in bytes.

    Attributes:
        whole: a batch that is no longer is permuted and sent in one.
        piece: of a longer one in one commit and in one request, at most.
        dealt: read and dealt to buckets at a time.
        bucket: what a bucket gets, about.
    """

    whole: int = WHOLE_BATCH_BYTES
    piece: int = LARGEST_PIECE_BYTES
    dealt: int = 16 << 20
    bucket: int = 4 << 20

    def __post_init__(self) -> None:
        if not CIPHERTEXT_BYTES <= self.piece <= LARGEST_PIECE_BYTES:
            problem = f"must lie in {CIPHERTEXT_BYTES}..{LARGEST_PIECE_BYTES}"
            raise ParameterError("piece", self.piece, problem, "the next hop takes no larger ones")


@dataclass(frozen=True, slots=True)
class LargeBatch:
    """A full batch that is longer than fits into memory.

    Attributes:
        store: where it is.
        desk: whose rules and bits are used.
        sizes: how much is done at a time.
        task_id: its task.
        batch_id: its id.
        length: how many bytes it has.
        peel: takes this hop's layer off some messages, told which may be copies; gives them back where there is none.
    """

    store: Store[ShufflerRecords]
    desk: ShufflerDesk
    sizes: BatchSizes
    task_id: str
    batch_id: str
    length: int
    peel: Callable[[bytes, Suspects | None], bytes]

    def seal(self, is_stopping: Callable[[], bool]) -> bool | None:
        """Permute it and declare it sealed; answers whether it is tidy, too, and None if it was told to stop before."""
        buckets = buckets_for(self.length, self.sizes.bucket)
        for number, runs in enumerate(self._dealt(buckets)):
            if is_stopping():
                return None
            self.store.write(partial(_add_runs, self.task_id, self.batch_id, number, runs))
        number, last, written = -1, b"", 0
        for piece in self._permuted(buckets):
            if is_stopping():
                return None
            if last:
                add_piece(self.store, self.task_id, self.batch_id, number, last)
            number, last, written = number + 1, piece, written + len(piece)
        expected = self.length // self._routing.ciphertext_bytes * self._routing.left_bytes
        if written != expected:
            raise AssertionError(f"batch {self.batch_id} has {written} bytes in its buckets, not {expected}")
        seal = partial(self.desk.seal_with, number=number, last=last, length=written)
        return self.store.write(lambda records: seal(records, self.task_id, self.batch_id))

    def _dealt(self, buckets: int) -> Iterator[list[tuple[int, bytes]]]:
        """Pass 1: runs of messages for buckets, as many as a commit should hold; a bucket occurs in it once."""
        suspects = self._suspects()
        for body in recut(self._parts(), self._routing.ciphertext_bytes):
            runs: list[tuple[int, bytes]] = []
            length = 0
            for bucket, rows in deal(self._rows(self.peel(body, suspects)), buckets, bits=self.desk.bits):
                if runs and length + rows.nbytes > self.sizes.piece:
                    yield runs
                    runs, length = [], 0
                runs.append((bucket, rows.tobytes()))
                length += rows.nbytes
            yield runs

    def _suspects(self) -> Suspects | None:
        """What finds copies where a layer is taken off: it has to see all messages before the first one goes on."""
        if not self._routing.layers:
            return None
        suspects, unit = Suspects(bits=self.desk.bits), self._routing.ciphertext_bytes
        for body in recut(self._parts(), unit):
            suspects.look(body, unit)
        return suspects

    @property
    def _routing(self) -> Routing:
        return self.desk.routings[self.task_id]

    def _parts(self) -> Iterator[bytes]:
        """What the batch holds, in long bodies; read in short transactions, so that the log can be emptied."""
        after = 0
        while found := self.store.read(self._some_parts(after)):
            after = found[-1][0]
            yield b"".join(body for _, body in found)

    def _some_parts(self, after: int) -> Callable[[ShufflerRecords], list[tuple[int, bytes]]]:
        return lambda records: records.some_parts(self.task_id, self.batch_id, after, self.sizes.dealt)

    def _permuted(self, buckets: int) -> Iterator[bytes]:
        """Pass 2: the pieces of the batch in its final order."""
        step = self.sizes.piece // self._routing.left_bytes
        for bucket in range(buckets):
            rows = permuted_rows(self._rows(self.store.read(self._bucket(bucket))), bits=self.desk.bits)
            for start in range(0, len(rows), step):
                yield rows[start : start + step].tobytes()

    def _bucket(self, bucket: int) -> Callable[[ShufflerRecords], bytes]:
        return lambda records: records.bucket(self.task_id, self.batch_id, bucket)

    def _rows(self, body: bytes) -> Rows:
        """Messages as they leave, a row each."""
        return np.frombuffer(body, dtype=np.uint8).reshape(-1, self._routing.left_bytes)


def _add_runs(
    task_id: str, batch_id: str, number: int, runs: list[tuple[int, bytes]], records: ShufflerRecords
) -> None:
    records.add_runs(task_id, batch_id, number, runs)
