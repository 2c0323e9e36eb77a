"""An analyzer on its store: what HTTP calls, and the chore in the background, reading batches."""

import time
from dataclasses import asdict
from typing import Any, Protocol

from shuffledp.errors import ParameterError
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.analyzer.opening import ClosedError
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.server import TaskServer
from shuffledp.service.store.contract import AnalyzerRecords, Progress, Release, Store
from shuffledp.service.task import Task
from shuffledp.service.telemetry import log
from shuffledp.service.wire import Unpacked


class Opening(Protocol):
    """What opens ciphertexts: worker processes, or this one in tests."""

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch."""

    def close(self) -> None:
        """Let go of what it holds."""


class AnalyzerServer(TaskServer[AnalyzerRecords, Task]):
    """One process's analyzer: keeps what is delivered, reads it once, publishes.

    Args:
        store: where everything is kept; closed by `stop`.
        key: what tasks must be encrypted to.
        opener: what decrypts batches with it; closed by `stop`.
    """

    def __init__(self, store: Store[AnalyzerRecords], *, key: PrivateKey, opener: Opening) -> None:
        super().__init__("analyzer", store, Task.from_text, lambda: self.read_all() >= 0)
        self._public = key.public
        self._opener = opener
        self.desk = AnalyzerDesk(self.tasks)
        self.received = self.metrics.counter("batches_received", "Batches kept.")
        self.read_batches = self.metrics.counter("batches_read", "Batches added up.")
        self.messages = self.metrics.counter("messages_opened", "Ciphertexts opened.")
        self.opening_seconds = self.metrics.counter("opening_seconds", "Time spent opening.")
        self.released = self.metrics.counter("releases", "Estimates published.")

    def stop(self) -> None:
        """Leave the batch at hand for the next time, and let go of what opens batches and of the store."""
        self._chores.ask_to_stop()
        self._opener.close()
        super().stop()

    def _leaves(self) -> list[str]:
        found = [self.progress(task_id) for task_id in list(self.tasks)]
        read = sum(each.batches_read for each in found)
        unread = sum(each.batches_received for each in found) - read
        released = sum(each.releases for each in found)
        return [
            f"{read:,} {'batch' if read == 1 else 'batches'} read, {unread:,} that are not",
            f"{released:,} {'estimate' if released == 1 else 'estimates'} released",
        ]

    def add_task(self, text: str) -> tuple[str, bool]:
        """Serve a task that is encrypted to this analyzer's key; answers its id and whether it is new."""
        task = Task.from_text(text)
        if task.public_key != self._public:
            raise ParameterError(
                "public_key",
                task.public_key.text,
                f"must be this analyzer's, {self._public.text}",
                "create the task again",
            )
        return self._serve(task.id, text, task)

    def deliver(self, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch, on disk when this returns; False if it was delivered before."""
        new = self._store.write(lambda records: self.desk.deliver(records, task_id, batch_id, body))
        if new:
            self.received.inc()
            self._chores.wake()
        return new

    def progress(self, task_id: str) -> Progress:
        """How far a task has come."""
        return self._store.read(lambda records: records.progress(task_id))

    def latest(self, task_id: str) -> tuple[Release | None, Progress]:
        """The newest estimate."""
        return self._store.read(lambda records: (records.last_release(task_id), records.progress(task_id)))

    def history(self, task_id: str, after: int, most: int) -> list[dict[str, Any]]:
        """Estimates after a time, oldest first."""
        found = self._store.read(lambda records: records.releases(task_id, after, most))
        return [asdict(release) for release in found]

    def read_all(self) -> int:
        """Open and add up every batch that is kept and not read."""
        count = 0
        while unread := self._store.read(lambda records: records.unread(100)):
            for task_id, batch_id in unread:
                if self._chores.is_stopping:
                    return count
                try:
                    self._read(task_id, batch_id)
                except ClosedError:
                    log("batch left unread", task=task_id[:12], batch=batch_id)
                    return count
                count += 1
        # What was deleted is still in the log: empty it.
        self._store.forget_deleted()
        return count

    def _read(self, task_id: str, batch_id: str) -> None:
        body = self._store.read(lambda records: records.body(task_id, batch_id))
        if body is None:
            return
        started = time.perf_counter()
        messages = self._opener.open(body, task_id, batch_id)
        seconds = time.perf_counter() - started
        published = self._store.write(lambda records: self.desk.read(records, task_id, batch_id, messages))
        self.read_batches.inc()
        self.messages.inc(messages.payloads.size + messages.fillers + messages.malformed)
        self.opening_seconds.inc(seconds)
        self.released.inc(len(published))
        log("batch read", task=task_id[:12], batch=batch_id, malformed=messages.malformed, releases=len(published))
