"""Sending sealed batches on: in one body, or piece by piece with a manifest at the end; always the same bytes."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Protocol

import httpx

from shuffledp.service.addresses import refuse_plain_http
from shuffledp.service.delivery import Sending, recut
from shuffledp.service.openapi import BINARY, JSON
from shuffledp.service.problems import TASK_ENDED
from shuffledp.service.shuffler.commits import ShufflerStore, claim, purge
from shuffledp.service.store.contract import ClaimLostError, ShufflerRecords
from shuffledp.service.telemetry import Metrics, log


class Post(Protocol):
    """Sends a body of this media type to a path of the next hop; answers the HTTP status."""

    def __call__(self, path: str, body: bytes, media: str = BINARY) -> int:
        """The status of the answer to one request."""


def post_to(url: str, token: str) -> Post:
    """Sends to the server at this address, over one connection."""
    refuse_plain_http(url, "analyzer")
    client = httpx.Client(base_url=url, timeout=60.0, headers={"Authorization": f"Bearer {token}"})

    def post(path: str, body: bytes, media: str = BINARY) -> int:
        answer = client.post(path, content=body, headers={"Content-Type": media})
        if answer.status_code == TASK_ENDED.status and f":{TASK_ENDED.name}" in answer.text:
            # It will never be taken: whoever runs this decides.
            way_out = "shuffledp store end STORE TASK --drop"
            log("the task has ended at the next hop", level=40, task=path.split("/")[3][:12], way_out=way_out)
        return answer.status_code

    return post


class BatchSender:
    """What sends one process's sealed batches to the next hop; none is in memory as a whole unless it is small.

    Args:
        store: where they are.
        post: sends a body to a path of the next hop, of a media type where it is not binary; answers the HTTP status.
        unit: how long a message of a task is when it leaves.
        whole: a batch of no more bytes is sent in one body.
        metrics: where it counts what it did.
        is_stopping: whether to end as soon as possible.
    """

    def __init__(
        self,
        store: ShufflerStore,
        post: Callable[..., int],
        unit: Callable[[str], int],
        whole: int,
        metrics: Metrics,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._store, self._post, self._unit, self._whole, self._is_stopping = store, post, unit, whole, is_stopping
        self._sent = metrics.counter("batches_sent", "Batches that the next hop has.")
        self._pieces_sent = metrics.counter("pieces_sent", "Pieces of large batches that the next hop has.")
        self._waiting = metrics.gauge("waiting_bytes", "Sealed and not sent yet.")
        # Of batches in pieces: how many the next hop has acknowledged to this process.
        self._taken: dict[tuple[str, str], int] = {}

    def send_waiting(self) -> bool:
        """Send sealed batches on, oldest first; the same bytes until they are taken. True if none is left.

        A batch that is refused waits, and does not hold up the others.
        """
        refused = False
        for task_id, batch_id in self._store.read(lambda records: records.unpurged()):
            if claim(self._store, task_id, batch_id):
                purge(self._store, task_id, batch_id)
        waiting = self._store.read(lambda records: records.waiting())
        if waiting:
            # Nothing leaves while the log still tells in which order it came.
            self._store.forget_deleted()
        try:
            for task_id, batch_id in waiting:
                if self._is_stopping():
                    return False
                if claim(self._store, task_id, batch_id) and not self.send(task_id, batch_id):
                    refused = True
        except httpx.HTTPError as failed:
            log("next hop unreachable", level=30, error=type(failed).__name__)
            refused = True
        self._waiting.set(self._store.read(lambda records: records.waiting_bytes()))
        # The bytes that were sent are in the log, too: tried again until it is empty.
        self._store.forget_deleted()
        return not refused

    def send(self, task_id: str, batch_id: str) -> bool:
        """Send a batch that this process has claimed, and delete it once the next hop has it; False if it waits."""
        length = self._store.read(lambda records: records.sealed_bytes(task_id, batch_id))
        if length is None:
            return True
        is_taken = self.send_pieces if length > self._whole else self.send_whole
        try:
            if not is_taken(task_id, batch_id):
                return False
            purge(self._store, task_id, batch_id)
        except ClaimLostError:
            # It took so long that another process sends it, too: the same bytes, which are taken once.
            log("batch sent by another", level=30, batch=batch_id)
            return True
        self._sent.inc()
        return True

    def send_whole(self, task_id: str, batch_id: str) -> bool:
        """Send a batch in one body; answers whether the next hop has it."""
        body = self._store.read(lambda records: records.sealed(task_id, batch_id))
        return body is not None and self._is_whole_there(batch_id, self._post(_path(task_id, batch_id), body))

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
            if not claim(self._store, task_id, batch_id):
                raise ClaimLostError(f"batch {batch_id} is another process's: this one was too slow.")
            if not self._is_taken(batch_id, self._post(f"{_path(task_id, batch_id)}/pieces/{number}", piece)):
                return False
            self._taken[key] = number + 1
            self._pieces_sent.inc()
        manifest = sending.manifest().text.encode()
        status = self._post(f"{_path(task_id, batch_id)}/manifest", manifest, JSON)
        self._taken.pop(key, None)
        return self._is_whole_there(batch_id, status)

    def _pieces(self, task_id: str, batch_id: str) -> Iterator[bytes]:
        for number in count():
            piece = self._store.read(partial(_piece, task_id, batch_id, number))
            if piece is None:
                return
            yield piece

    def _is_whole_there(self, batch_id: str, status: int) -> bool:
        if status == 200:
            # The answer to an earlier try was lost.
            log("the next hop had the batch before", batch=batch_id)
        return self._is_taken(batch_id, status)

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
