"""Sending a sealed batch on: in one body, or piece by piece with a manifest at the end; always the same bytes."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from shuffledp.service.delivery import Sending, recut
from shuffledp.service.openapi import JSON
from shuffledp.service.store.contract import ClaimLostError, ShufflerRecords, Store
from shuffledp.service.telemetry import log


class BatchSender:
    """What sends one process's sealed batches to the next hop; none is in memory as a whole unless it is small.

    Args:
        store: where they are.
        post: sends a body to a path of the next hop, of a media type where it is not binary; answers the HTTP status.
        unit: how long a message of a task is when it leaves.
        is_stopping: whether to end as soon as possible.
        piece_sent: told of every piece that the next hop has.
    """

    def __init__(
        self,
        store: Store[ShufflerRecords],
        post: Callable[..., int],
        unit: Callable[[str], int],
        is_stopping: Callable[[], bool],
        piece_sent: Callable[[], None],
    ) -> None:
        self._store, self._post, self._unit = store, post, unit
        self._is_stopping, self._piece_sent = is_stopping, piece_sent
        # Of batches in pieces: how many the next hop has acknowledged to this process.
        self._taken: dict[tuple[str, str], int] = {}

    def send_whole(self, task_id: str, batch_id: str) -> bool:
        """Send a batch in one body; answers whether the next hop has it."""
        body = self._store.read(lambda records: records.sealed(task_id, batch_id))
        return body is not None and self._is_taken(batch_id, self._post(_path(task_id, batch_id), body))

    def send_pieces(self, task_id: str, batch_id: str) -> bool:
        """Send a batch piece by piece, then its manifest; answers whether the next hop has it.

        What the next hop has acknowledged to this process is not sent again, unless it refuses the manifest.

        Raises:
            ClaimLostError: another process sends it by now.
        """
        key, sending = (task_id, batch_id), Sending()
        for number, piece in enumerate(recut(self._pieces(task_id, batch_id), self._unit(task_id))):
            sending.add(piece)
            if number < self._taken.get(key, 0):
                continue
            if self._is_stopping():
                return False
            if not self._store.write(lambda records: records.claim(task_id, batch_id)):
                raise ClaimLostError(f"batch {batch_id} is another process's: this one was too slow.")
            if not self._is_taken(batch_id, self._post(f"{_path(task_id, batch_id)}/pieces/{number}", piece)):
                return False
            self._taken[key] = number + 1
            self._piece_sent()
        manifest = sending.manifest().text.encode()
        status = self._post(f"{_path(task_id, batch_id)}/manifest", manifest, JSON)
        self._taken.pop(key, None)
        return self._is_taken(batch_id, status)

    def _pieces(self, task_id: str, batch_id: str) -> Iterator[bytes]:
        for number in count():
            piece = self._store.read(partial(_piece, task_id, batch_id, number))
            if piece is None:
                return
            yield piece

    def _is_taken(self, batch_id: str, status: int) -> bool:
        if status in (200, 201):
            return True
        log("next hop refused", level=40, batch=batch_id, status=status)
        return False


def _path(task_id: str, batch_id: str) -> str:
    """Where the next hop takes a batch."""
    return f"/v1/tasks/{task_id}/batches/{batch_id}"


def _piece(task_id: str, batch_id: str, number: int, records: ShufflerRecords) -> bytes | None:
    return records.piece(task_id, batch_id, number)
