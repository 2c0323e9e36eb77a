"""What a shuffler must remember, as one transaction sees it."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """A seat that was given out and has sent nothing yet."""

    seat: str
    position: int
    ends: float


@dataclass(frozen=True, slots=True)
class SealedBatch:
    """A batch in its final random order, waiting to be sent; sending it again sends the same bytes."""

    task_id: str
    batch_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a task has come; all of it is public."""

    seats_taken: int
    leases: int
    reports: int
    batches_open: int
    batches_waiting: int
    batches_sent: int


@dataclass(frozen=True, slots=True)
class Part:
    """What reports that came together have for one batch, report after report.

    `seat` is the lowest of theirs, counted from 0 in the batch, so that no two parts have the same; `size` is how many
    reports the batch needs.
    """

    batch_id: str
    seat: int
    reports: int
    size: int
    body: bytes


class Records(Protocol):
    """Reads and writes inside one transaction: all of them happen, or none."""

    def add_task(self, task_id: str, routing: str) -> None:
        """A new task; nothing happens if it is known."""

    def task_ids(self) -> list[str]:
        """Every task."""

    def routing(self, task_id: str) -> str | None:
        """A task's routing document."""

    def next_position(self, task_id: str) -> int:
        """The first position that nobody ever took."""

    def take_position(self, task_id: str) -> int:
        """Take it."""

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        """The leases of those seats that still have one."""

    def add_lease(self, task_id: str, lease: Lease) -> None:
        """Give out a seat."""

    def drop_lease(self, task_id: str, seat: str) -> None:
        """The seat has reported, or its time ran out: it is nobody's any more."""

    def ended_lease(self, task_id: str, now: float) -> Lease | None:
        """The lease whose time ran out first."""

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        """Which of these reports are in the task's batches, or were."""

    def keep(self, task_id: str, report_ids: list[str], seats: list[str], parts: list[Part]) -> None:
        """Remember the reports' ids, end their seats' leases, and put their parts into their batches."""

    def full_batches(self) -> list[tuple[str, str]]:
        """Task and id of every batch that is full and not sealed."""

    def is_full(self, task_id: str, batch_id: str) -> bool:
        """Whether this one is."""

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        """What a batch holds, a body a part."""

    def has_draft(self, task_id: str, batch_id: str) -> bool:
        """Whether an earlier try has left pieces of a batch that is not sealed."""

    def drop_draft(self, task_id: str, batch_id: str) -> bool:
        """Delete some of them; True if nothing is left."""

    def add_piece(self, task_id: str, batch_id: str, number: int, body: bytes | memoryview) -> None:
        """Keep a piece of the permuted batch."""

    def seal(self, task_id: str, batch_id: str, length: int) -> None:
        """The pieces are the batch from now on."""

    def tidy(self, task_id: str, batch_id: str) -> bool:
        """Forget when some of the ids came, and delete some of a sealed batch's parts; True if nothing is left."""

    def untidy(self) -> list[tuple[str, str]]:
        """Sealed batches of which that was not said yet."""

    def waiting(self) -> list[tuple[str, str]]:
        """Task and id of batches that are sealed, tidy, and not sent yet."""

    def sealed(self, task_id: str, batch_id: str) -> SealedBatch | None:
        """A sealed batch that was not sent yet."""

    def mark_sent(self, task_id: str, batch_id: str) -> None:
        """The next hop has it."""

    def purge(self, task_id: str, batch_id: str) -> bool:
        """Delete some of the bytes of a batch that was sent; True if nothing is left."""

    def unpurged(self) -> list[tuple[str, str]]:
        """Sent batches of which that was not said yet."""

    def waiting_bytes(self) -> int:
        """How much waits to be sealed or sent on."""

    def counts(self, task_id: str) -> Counts:
        """How far a task has come."""
