"""What an analyzer must remember, as one transaction sees it. Nothing here says who sent a message, or when."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class BatchTotal:
    """What one batch said: its sum in steps, messages that were missing or malformed, or that it is void."""

    batch_id: str
    total: Any
    dropped: int
    void: bool


@dataclass(frozen=True, slots=True)
class Release:
    """An estimate that was published: of the sum over the first `time` users."""

    time: int
    estimate: Any
    standard_error: float
    bound: float
    confidence: float
    dropped: int
    void: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task has come."""

    batches_received: int
    batches_read: int
    batches_void: int
    dropped: int
    releases: int


class Records(Protocol):
    """Reads and writes inside one transaction: all of them happen, or none."""

    def add_task(self, task_id: str, text: str) -> None:
        """A new task; nothing happens if it is known."""

    def task_ids(self) -> list[str]:
        """Every task."""

    def task_text(self, task_id: str) -> str | None:
        """A task's document."""

    def digest(self, task_id: str, batch_id: str) -> str | None:
        """The SHA-256 of a batch that was received."""

    def add_batch(self, task_id: str, batch_id: str, digest: str, body: bytes) -> None:
        """Keep a batch until it is read."""

    def unread(self, most: int) -> list[tuple[str, str]]:
        """Task and id of batches that were received and not read."""

    def body(self, task_id: str, batch_id: str) -> bytes | None:
        """A batch's ciphertexts, until it is read."""

    def add_total(self, task_id: str, total: BatchTotal) -> None:
        """What a batch said; its ciphertexts are deleted."""

    def totals(self, task_id: str, batch_ids: list[str]) -> dict[str, BatchTotal]:
        """What those of these batches said that were read."""

    def state(self, task_id: str) -> Any:
        """Where the task's counter stands: a JSON document, or None at the beginning."""

    def set_state(self, task_id: str, state: Any) -> None:
        """The same, for writing."""

    def add_release(self, task_id: str, release: Release) -> None:
        """Publish an estimate."""

    def last_release(self, task_id: str) -> Release | None:
        """The newest one."""

    def releases(self, task_id: str, after: int, most: int) -> list[Release]:
        """Those after a time, oldest first."""

    def progress(self, task_id: str) -> Progress:
        """How far a task has come."""
