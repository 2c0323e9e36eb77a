"""Where every report of a small service must be: what must hold after whatever happened.

The model knows every ciphertext that was ever made, so it can say of each report where it is: a count of 2 is a
duplicate and a count of 0 a loss.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from harness.looking import GONE, SENT, TIDYING, Look, SqliteLook
from harness.world import MadeReport, World, ciphertexts
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport


class WrongError(AssertionError):
    """Something that must never happen did."""


def must(truth: bool, words: str) -> None:
    """Fail with these words unless it is true."""
    if not truth:
        raise WrongError(words)


@dataclass
class Place:
    """A seat as the client that took it knows it."""

    task: Task | RoundTask
    seat: str
    batches: tuple[SeatInBatch, ...]
    ends: float
    was_late: bool = False
    gone: bool = False
    """Somebody else has its place, or its report came, or was refused: nothing may be accepted for it."""

    @property
    def spot(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        return self.task.id, tuple((batch.batch_id, batch.seat) for batch in self.batches)


@dataclass
class TrackedReport:
    """A report: acknowledged, refused, or sent without an answer that arrived."""

    report_id: str
    place: Place
    made: MadeReport
    status: str = "unknown"

    @property
    def as_sent(self) -> SentReport:
        return SentReport(self.report_id, self.place.seat, self.made.body)


@dataclass
class Seen:
    """A sealed batch as it was first seen: it must stay so."""

    body: bytes
    reports: tuple[str, ...]
    ones: int


@dataclass
class Model:
    """What clients were told, compared with what both servers have on disk."""

    world: World
    seed: int
    places: list[Place] = field(default_factory=list)
    reports: dict[str, TrackedReport] = field(default_factory=dict)
    owner: dict[bytes, tuple[str, str]] = field(default_factory=dict)
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    checked_sent: int = 0
    """How much of what was sent has been looked at."""
    look: Look = field(default_factory=SqliteLook)

    def check(self) -> None:
        found: dict[str, Counter[str]] = {report_id: Counter() for report_id in self.reports}
        shuffler = self.world.stores["shuffler"]
        parts, sealed = self.look.parts(shuffler), self.look.sealed(shuffler)
        accepted = self.look.accepted(shuffler, self.reports)
        live = self.live
        filled: Counter[tuple[str, str]] = Counter()
        tidying = {(task_id, batch_id) for task_id, batch_id, state, _ in sealed if state == TIDYING}
        for task_id, batch_id, seat, body in parts:
            owners = self._owners_of_part(batch_id, body)
            if (task_id, batch_id) in tidying:
                # What counts is in its pieces; this is being deleted.
                continue
            reports = [self.reports[report_id] for report_id in owners]
            must({one.place.task.id for one in reports} == {task_id}, "a part is in another task")
            must(min(_seat(one, batch_id) for one in reports) == seat, "a part is in another seat")
            for report_id in owners:
                found[report_id][batch_id] += 1
            filled[task_id, batch_id] += len(owners)
        on_their_way = self.world.network.sent[self.checked_sent :]
        for task_id, batch_id, body in [(t, b, body) for t, b, state, body in sealed if state < SENT] + on_their_way:
            self._see(live.get(task_id), task_id, batch_id, body)
        for task_id, batch_id, _ in on_their_way:
            must((task_id, batch_id) not in tidying, "a batch was sent while its parts were there")
        self.checked_sent = len(self.world.network.sent)
        for task_id, batch_id, state, body in sealed:
            if task_id not in live:
                continue
            must((task_id, batch_id) not in filled, "a batch is sealed and has parts")
            for report_id in self.seen[task_id, batch_id].reports:
                found[report_id][batch_id] += 1
            must(state < GONE or not body, "a batch is gone and its bytes are not")
            if state >= SENT and not self.is_over(task_id):
                must(self.kept(task_id, batch_id) is not None, "a batch was purged and the analyzer does not have it")
        self._check_reports(found, accepted)
        self._check_analyzer({(task_id, batch_id) for task_id, batch_id, _, _ in sealed})

    @property
    def live(self) -> Mapping[str, Task | RoundTask]:
        """What people report to, by its id."""
        return {task.id: task for task in self.tasks}

    def is_over(self, task_id: str) -> bool:
        """Whether it was dropped: nobody will read what its people sent."""
        return False

    def total_of(self, task_id: str, batch_id: str, seen: Seen) -> Any:
        """What the analyzer must have read from a batch."""
        return seen.ones - _half(self.live[task_id], batch_id)

    def _owners_of_part(self, batch_id: str, body: bytes) -> list[str]:
        owners = []
        while body:
            report_id, batch = self.owner[body[:CIPHERTEXT_BYTES]]
            own = b"".join(self.reports[report_id].made.pieces[batch])
            must(batch == batch_id and body.startswith(own), "a part was altered")
            owners.append(report_id)
            body = body[len(own) :]
        return owners

    def _see(self, task: Task | RoundTask | None, task_id: str, batch_id: str, body: bytes) -> None:
        """A sealed or sent body: the first of its batch is looked into, all others must be the same bytes."""
        known = self.seen.get((task_id, batch_id))
        if known is not None:
            must(known.body == body, "a batch was permuted twice")
            return
        assert task is not None
        each = Counter(ciphertexts(body))
        must(max(each.values()) == 1, "a batch has a message twice")
        owners = {self.owner[ciphertext] for ciphertext in each}
        must({batch for _, batch in owners} == {batch_id}, "a batch has another's message")
        reports = tuple(report_id for report_id, _ in owners)
        size = next(b.size for b in self.reports[reports[0]].place.batches if b.batch_id == batch_id)
        must(len(reports) == size, f"a batch of {size} left with {len(reports)} reports")
        made = [self.reports[report_id].made for report_id in reports]
        must(
            sum(len(one.pieces[batch_id]) for one in made) == len(each), "a batch has only some of a report's messages"
        )
        must(len({_seat(self.reports[report_id], batch_id) for report_id in reports}) == size, "a seat was used twice")
        in_order = b"".join(
            b"".join(self.reports[report_id].made.pieces[batch_id])
            for report_id in sorted(reports, key=lambda one: _seat(self.reports[one], batch_id))
        )
        # Three reports of three messages are in order by chance once in 362,880 times; three such batches never are.
        self.told["in order"] += in_order == body
        must(self.told["in order"] < 3, "batches are not permuted")
        self.seen[task_id, batch_id] = Seen(body, reports, sum(one.ones[batch_id] for one in made))
        self.told["sealed"] += 1

    def _check_reports(self, found: dict[str, Counter[str]], accepted: set[str]) -> None:
        for report_id, report in self.reports.items():
            counts = {found[report_id][batch.batch_id] for batch in report.place.batches} or {0, 1}
            must(max(counts) <= 1, f"a report ({report.status}) is in a batch twice")
            if self.is_over(report.place.task.id):
                # Its bytes are being deleted, or are gone.
                must(report.status != "refused" or report_id not in accepted, "a refused report was kept")
            elif report.status == "acknowledged":
                must(1 in counts and (0 not in counts or not report.place.batches), "an acknowledged report is lost")
                must(report_id in accepted, "an acknowledged report is forgotten")
            elif report.status == "refused":
                must(report_id not in accepted, "a refused report was kept")
                must(1 not in counts or not report.place.batches, "a report refused with 410 is in a batch")
            else:
                must(len(counts) == 1 or not report.place.batches, "a report is in some of its batches")

    def _check_analyzer(self, sealed: set[tuple[str, str]]) -> None:
        for task_id, batch_id, digest, body, total, dropped, void in self.look.read(self.world.stores["analyzer"]):
            known = self.seen.get((task_id, batch_id))
            if known is None:
                continue
            must((task_id, batch_id) in sealed, "the analyzer has a batch that is not sealed")
            must(digest == hashlib.sha256(known.body).hexdigest(), "the analyzer has another batch")
            must(body is None or body == known.body, "the analyzer has other bytes")
            if body is None:
                expected = self.total_of(task_id, batch_id, known)
                must((json.loads(total), dropped, void) == (expected, 0, 0), "a wrong total")

    def kept(self, task_id: str, batch_id: str) -> Any:
        return self.world.stores["analyzer"].read(lambda records: records.digest(task_id, batch_id))


def _seat(report: TrackedReport, batch_id: str) -> int:
    return next(batch.seat for batch in report.place.batches if batch.batch_id == batch_id)


@cache
def _half(task: Task | RoundTask, batch_id: str) -> int:
    place = task.routing.find(batch_id)
    assert place is not None
    mechanism: Any = task.plan.mechanism(task.routing.schedule.batch_users(place[1], place[2]))
    # Shares have no coins.
    return int(getattr(mechanism, "coins", 0)) // 2
