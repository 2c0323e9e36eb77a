"""What a store must offer: transactions over the records of a shuffler or of an analyzer; a client's is in `outboxes`.

An implementation is a folder beside this file, and a line in the table of `shuffledp.service.store`. A store outlives
its process: `write` and `submit` have committed durably when they answer, what was deleted is nowhere in the store
after `forget_deleted`, and nothing in it tells in which order reports came once their batch is sealed.
"""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from shuffledp.errors import ShuffleDPError
from shuffledp.service.store.incoming import HopRecords
from shuffledp.service.store.pieces import PieceRecords
from shuffledp.service.store.redeeming import TokenRecords
from shuffledp.service.wire import SignedText

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class ClaimLostError(ShuffleDPError):
    """A batch is another process's by now: what was to be written about it was not."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """What a store or an outbox is, read without changing it."""

    kind: str
    """What it keeps, and in which version."""
    condition: str = "ok"
    """"ok", or what is broken in it."""
    held: str = "by nobody"
    """Who holds it."""
    file: Path | None = None
    """The file that it is kept in, for whoever looks at permissions and room; None where there is none."""
    is_analyzers: bool = False
    """Whether it is an analyzer's, so that `look_into_analyzer` can read it."""
    hop_keys: tuple[str, ...] = ()
    """The public halves of the keys that a hop of a cascade began its tasks with."""


@dataclass(frozen=True, slots=True)
class Remains:
    """What was looked for in a store that must not be there any more: of batches that left it, and of what was deleted.

    Attributes:
        evidence: what was looked at and is as it should be, a phrase each.
        found: what is there and must not be, a phrase each.
        unknown: what cannot be said while a server holds the store, a phrase each.
    """

    evidence: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class Store(Protocol[R_co]):
    """Transactions over records of one kind, held by one server."""

    def read(self, work: Callable[[R_co], T]) -> T:
        """Run this on what is committed, and answer what it answers; it must change nothing."""

    def write(self, work: Callable[[R_co], T]) -> T:
        """Run this in a transaction of its own and answer once that is durable; an error of it leaves nothing behind.

        Raises:
            RefusedError: the store cannot be written now (`no-room`), or is closed.
        """

    def submit(self, work: Callable[[R_co], T]) -> "Future[T]":
        """Run this in the next transaction; the future has what `write` would answer or raise."""

    def submit_here(self, work: Callable[[R_co], T]) -> "Future[T]":
        """As `submit`, from an event loop: a store in the same process may run it at once, in the caller's thread.

        What is submitted so takes some milliseconds at most.
        """

    def has_room(self) -> bool:
        """Whether new reports can be taken; what is left is for sealing, sending and deleting."""

    def forget_deleted(self) -> None:
        """Make sure that what was deleted is nowhere in the store, logs included."""

    def close(self) -> None:
        """Finish what waits, then let go of the store; a second call does nothing."""


class Lease(NamedTuple):
    """A seat that was given out and has sent nothing yet."""

    seat: str
    position: int
    ends: float


@dataclass(frozen=True, slots=True)
class Counts:
    """How far a task has come at the shuffler; all of it is public."""

    seats_taken: int
    leases: int
    reports: int
    batches_open: int
    batches_waiting: int
    batches_sent: int


@dataclass(frozen=True, slots=True)
class BatchPart:
    """What reports that came together have for one batch, report after report.

    `seat` is the lowest of theirs, counted from 0 in the batch, so that no two parts have the same; `size` is how many
    reports the batch needs.
    """

    batch_id: str
    seat: int
    reports: int
    size: int
    body: bytes


@dataclass(frozen=True, slots=True)
class BatchFill:
    """A batch that is not sealed: how many reports are in it, and how many it needs."""

    batch_id: str
    reports: int
    size: int


class TaskRecords(Protocol):
    """A server's tasks inside one transaction: of each its document, or for a shuffler only its routing's document."""

    def add_task(self, task_id: str, text: str) -> None:
        """Remember a new task and its document; nothing happens if it is known."""

    def tasks(self) -> dict[str, str]:
        """Every task's document, by the task's id."""

    def task(self, task_id: str) -> str | None:
        """One task's document, which another process may have added; None if there is none."""

    def mark_ended(self, task_id: str, text: str) -> None:
        """Keep this text in the place of a task's document, for good."""


class ShufflerRecords(TaskRecords, HopRecords, TokenRecords, Protocol):
    """A shuffler's reads and writes inside one transaction: all of them happen, or none."""

    def take_position(self, task_id: str, positions: int) -> int | None:
        """Take the first of so many positions that nobody ever took, and answer it; None if all were taken."""

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        """The leases of those seats that still have one."""

    def add_lease(self, task_id: str, lease: Lease) -> None:
        """Give out a seat."""

    def drop_lease(self, task_id: str, seat: str) -> None:
        """End a seat's lease: it has reported, or its time ran out, and is nobody's any more."""

    def ended_lease(self, task_id: str, now: float, positions: int) -> Lease | None:
        """The lease whose time ran out first, among those of the first so many positions."""

    def expect(self, task_id: str, report_ids: list[str], seats: list[str]) -> None:
        """All of this will be asked for next: a store that is far away may look it up at once."""

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        """Which of these reports are in the task's batches, or were."""

    def keep(self, task_id: str, report_ids: list[str], seats: list[str], parts: list[BatchPart]) -> None:
        """Remember the reports' ids, end their seats' leases, and put their parts into their batches."""

    def has_backlog(self) -> bool:
        """Whether `keep` has put off so much that some of it is to be done before long, by `work_off`."""

    def work_off(self) -> None:
        """Do some of what `keep` has put off, if it is time; everything is answered as if it was done at once."""

    def full_batches(self) -> list[tuple[str, str]]:
        """Task and id of every batch that is full and not sealed; like all lists of batches here, without those that
        another process has claimed.
        """

    def claim(self, task_id: str, batch_id: str) -> bool:
        """Take a batch for this process, for a while; False while another has it.

        Whatever is written about a batch that is full needs a claim: where several processes share a store, one that
        was too slow is refused with `ClaimLostError` and changes nothing. Adding a piece prolongs the claim.
        """

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        """What a batch holds, a body a part."""

    def full_bytes(self, task_id: str, batch_id: str) -> int | None:
        """How many bytes a batch holds that is full and not sealed; None where it is not so, or another's."""

    def some_parts(self, task_id: str, batch_id: str, after: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """Place and bytes of what a full batch holds after this place, in the order of places, about so many bytes.

        The first place is 0. A report may be cut: the end of its bytes is then in the next place. None are left if the
        answer is empty.
        """

    def add_runs(self, task_id: str, batch_id: str, number: int, runs: "list[tuple[int, bytes]]") -> None:
        """Keep messages of a batch that were dealt to buckets: for each bucket its number and the messages' bytes.

        `number` is another every time that a batch is dealt to, less than 2^20; the first is 0. Runs are deleted with
        the draft, and with the parts of a sealed batch.
        """

    def bucket(self, task_id: str, batch_id: str, bucket: int) -> bytes:
        """All that was dealt to a bucket."""

    def has_draft(self, task_id: str, batch_id: str) -> bool:
        """Whether an earlier try has left runs or pieces of a batch that is not sealed."""

    def drop_draft(self, task_id: str, batch_id: str) -> bool:
        """Delete some runs and pieces that an earlier try has left; True if nothing is left."""

    def add_piece(self, task_id: str, batch_id: str, number: int, body: bytes | memoryview) -> None:
        """Keep a piece of the permuted batch."""

    def seal(self, task_id: str, batch_id: str, length: int) -> None:
        """Declare the pieces, `length` bytes together, the batch from now on."""

    def tidy(self, task_id: str, batch_id: str) -> bool:
        """Forget when some of the ids came, and delete some of a sealed batch's parts; True if nothing is left."""

    def untidy(self) -> list[tuple[str, str]]:
        """Task and id of sealed batches that `tidy` has not finished."""

    def waiting(self) -> list[tuple[str, str]]:
        """Task and id of batches that are sealed, tidy, and not sent yet, oldest first."""

    def sealed(self, task_id: str, batch_id: str) -> bytes | None:
        """A batch in its final random order that was not sent yet; sending it again sends the same bytes."""

    def sealed_bytes(self, task_id: str, batch_id: str) -> int | None:
        """How many bytes a sealed batch has that was not sent yet; None where there is none."""

    def piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        """A piece of a sealed batch that was not sent yet; None after the last."""

    def purge(self, task_id: str, batch_id: str) -> bool:
        """Remember that the next hop has a batch, and delete some of its bytes; True if nothing is left."""

    def unpurged(self) -> list[tuple[str, str]]:
        """Task and id of batches that `purge` has begun with and not finished."""

    def open_tasks(self) -> list[str]:
        """Tasks and rounds that have batches which are not sealed, or seats that wait for their reports."""

    def sealed_tasks(self) -> list[str]:
        """Tasks and rounds of which a batch was sealed."""

    def abandon(self, task_id: str, positions: int) -> bool:
        """Delete some of what a round has that will never be released; it has so many positions, all taken from now on.

        The ids of its reports stay known. True if nothing is left.
        """

    def waiting_bytes(self) -> int:
        """How many bytes wait to be sealed or sent on."""

    def counts(self, task_id: str) -> Counts:
        """How far a task has come."""

    def open_batches(self, task_id: str) -> list[BatchFill]:
        """Every batch of a task that is begun and not sealed, whoever has claimed it; of a hop, those that come."""

    def forget_ids(self, task_id: str) -> int:
        """Delete some ids of a task's reports, by which a second try is recognized, and of tokens that seats of it were
        given for; how many, 0 if none is left.

        Of a later hop the SHA-256s of batches that it took stay: if they are sent again, they were taken.
        """


@dataclass(frozen=True, slots=True)
class BatchTotal:
    """What one batch said, as JSON; messages that were missing or malformed; or that it is void and said nothing."""

    batch_id: str
    total: Any
    dropped: int
    void: bool


@dataclass(frozen=True, slots=True)
class Release:
    """An estimate that was published: over the first `time` users.

    `estimate` is JSON: a number, a list of them, or an object for an answer of another kind, which need not have a
    standard error, a bound or a confidence.
    """

    time: int
    estimate: Any
    standard_error: float | None
    bound: float | None
    confidence: float | None
    dropped: int
    void: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a task has come at the analyzer."""

    batches_received: int
    batches_read: int
    batches_void: int
    dropped: int
    releases: int


class AnalyzerRecords(TaskRecords, PieceRecords, Protocol):
    """An analyzer's reads and writes inside one transaction; nothing in them says who sent a message, or when."""

    def digest(self, task_id: str, batch_id: str) -> str | None:
        """The SHA-256 of a batch that was received, in one body or in pieces; it outlives what the batch said."""

    def add_batch(self, task_id: str, batch_id: str, digest: str, body: bytes) -> None:
        """Keep a batch until it is read."""

    def unread(self, most: int) -> list[tuple[str, str]]:
        """Task and id of batches that were received and not read."""

    def body(self, task_id: str, batch_id: str) -> bytes | None:
        """The ciphertexts of a batch that came in one body, until it is read."""

    def add_total(self, task_id: str, total: BatchTotal) -> None:
        """Remember what a batch said, and delete its ciphertexts; of one that came in pieces, `drop_pieces` does it."""

    def totals(self, task_id: str, batch_ids: list[str]) -> dict[str, BatchTotal]:
        """What those of these batches said that were read."""

    def state(self, task_id: str) -> Any:
        """Where the task's learner stands: a JSON document, or None at the beginning."""

    def set_state(self, task_id: str, state: Any) -> None:
        """Remember where the task's learner stands: a JSON document."""

    def add_release(self, task_id: str, release: Release) -> None:
        """Publish an estimate."""

    def last_release(self, task_id: str) -> Release | None:
        """The newest estimate that was published."""

    def releases(self, task_id: str, after: int, most: int) -> list[Release]:
        """Estimates of times after this one, oldest first."""

    def progress(self, task_id: str) -> Progress:
        """How far a task has come, or all rounds of a campaign together."""

    def add_model(self, campaign_id: str, number: int, model: SignedText) -> None:
        """Publish a model; there must be none of this number."""

    def last_model(self, campaign_id: str) -> SignedText | None:
        """The newest model that was published; None before the first."""

    def models(self, campaign_id: str, after: int, most: int) -> list[SignedText]:
        """Models of larger numbers than this, oldest first."""

    def model(self, campaign_id: str, number: int) -> SignedText | None:
        """The model of this number; None where there is none."""

    def all_totals(self, campaign_id: str) -> list[tuple[str, BatchTotal]]:
        """Every batch of a campaign's rounds that was read, with its round's id."""

    def drop_unread(self, owner: str) -> int:
        """Delete batches of a task, or of a campaign's rounds, that were not read; answers how many.

        The SHA-256 of those that were received whole stays: if they are sent again, they were taken.
        """

    def forget_totals(self, owner: str) -> int:
        """Delete what batches of a task, or of a campaign's rounds, said, and where its learner stands; how many.

        Their SHA-256s stay: if they are sent again, they were taken.
        """

    def forget_answers(self, owner: str) -> int:
        """Delete the estimates of a task, or the models of a campaign; answers how many there were."""
