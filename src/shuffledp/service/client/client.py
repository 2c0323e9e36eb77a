"""A client: takes seats, randomizes for exactly those, encrypts, and sends the same bytes until they are acknowledged.

The life of a value: checked against the plan; a seat is taken; it is randomized and encrypted for the seat's
batches; the bytes go to the outbox; they are sent, again and again if need be; after a 2xx they leave the outbox.
Only one answer leads to new noise: the shuffler's `seat-gone`, which says that the first report never reached and
will never reach anybody. Everything else, lost answers included, leads to the same bytes.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import RandomnessError, ShuffleDPError
from shuffledp.randomness import RandomBits
from shuffledp.service.client.answers import acknowledged, results_in, seats_in
from shuffledp.service.client.calls import (
    TIMEOUT,
    AnswerError,
    Calls,
    UnreachableError,
    check_url,
    is_passing,
)
from shuffledp.service.client.making import make_reports
from shuffledp.service.client.passes import passes
from shuffledp.service.client.relayed import Relay, RelayTransport
from shuffledp.service.expiry import check_not_expired
from shuffledp.service.oblivious.padding import request_length
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import SEAT_GONE, TOO_LARGE, TOO_SLOW, WRONG_LENGTH, RefusedError
from shuffledp.service.routing import Seat
from shuffledp.service.store import open_outbox
from shuffledp.service.store.outboxes import Outbox
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import (
    ID_BYTES,
    MOST_REPORTS_AN_UPLOAD,
    SentReport,
    pack_upload,
    single_body,
)

Progress = Callable[[int], None]

MOST_UPLOAD_BYTES = 4 << 20
# Messages in the first block: a third of a second here, and within the lease on a device a hundred times slower.
_FIRST_BLOCK_MESSAGES = 2000
# So many blocks in a row may come back refused before the client says that leases are too short for it.
_MOST_BLOCKS_LOST = 5
# These two say that a report will never be kept; any other refusal leaves it in the outbox.
# Refused for its length, or for how long it took: the same in two halves may pass.
_TOO_MUCH = (TOO_LARGE.status, TOO_SLOW.status)
_NEVER_KEPT = {SEAT_GONE.name, WRONG_LENGTH.name}


@dataclass(slots=True)
class Sent:
    """What became of reports.

    Attributes:
        reports: acknowledged: the shuffler has them on disk.
        new: of these, acknowledged for the first time; the answers to the others had been lost on the way.
        retried: sent more than once: the same bytes, or new ones after a refusal.
        refused: refused, with the value no longer at hand: they reached nobody, and may be reported again.
    """

    reports: int = 0
    new: int = 0
    retried: int = 0
    refused: int = 0


class ReportError(ShuffleDPError):
    """Not everything could be reported: `sent` is acknowledged, `waiting` in the outbox, `unsent` not begun.

    What waits must not be reported again, `flush` sends it; what is unsent may be: `rows` are the places of these
    among the values of the call.

    Attributes:
        cause: what went wrong.
        sent: what the shuffler has acknowledged.
        waiting: how many reports wait in the outbox; `flush` sends them.
        unsent: how many were not begun.
        rows: the places of these among the values of the call.
    """

    def __init__(
        self, cause: ShuffleDPError, sent: Sent, waiting: int, unsent: int, rows: tuple[int, ...] = ()
    ) -> None:
        self.cause = cause
        self.sent = sent
        self.waiting = waiting
        self.unsent = unsent
        self.rows = rows
        rest = f"; {waiting} wait in the outbox: flush sends them" if waiting else ""
        super().__init__(f"{str(cause).rstrip('.')}. {sent.reports} acknowledged{rest}; {unsent} not begun.")


class Client:
    """Reports values to a shuffler, for one task; one call at a time, from any thread.

    Without an outbox file, what a killed process had not delivered is lost, and the application cannot know
    whether it was: give it one wherever a value must be counted once and a user be randomized once.

    Args:
        task: what is asked.
        shuffler_url: where the shuffler is; https unless it is this machine.
        token: the secret of the role enrol; where the task names an issuer, that issuer's tokens instead, one a person:
            the first is for the first value of a call, and so on.
        outbox: where reports wait until they are acknowledged: a file, another address of an outbox, an open one, which
            stays open, or None for memory.
        http: what sends requests; one of its own if it is left out.
        bits: where noise and ids come from; must be secure, and is if it is left out.
        patience: for how many seconds a request that fails in passing is tried again.
        sleep: what waits between tries.
        seated: told of the seats that were taken, before anything is randomized for them; what it raises ends the call.
        relay: who carries requests, so that the shuffler does not see where they come from; one report travels at a
            time then, as all requests have one length. The shuffler is asked directly if it is None.

    Raises:
        RandomnessError: the bits are seeded.
        ParameterError: an address or a token that cannot be one, or an outbox that cannot be opened.

    >>> from shuffledp import BinarySum, Privacy
    >>> from shuffledp.service.crypto import PrivateKey
    >>> plan = BinarySum.plan(users=100, privacy=Privacy(1, 1e-6), method="coins")
    >>> task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    >>> with Client(task, "https://shuffler.example", "a" * 64) as client:
    ...     client.report_many([])
    Sent(reports=0, new=0, retried=0, refused=0)
    """

    def __init__(
        self,
        task: Task | RoundTask,
        shuffler_url: str,
        token: str | Sequence[bytes],
        outbox: Outbox | Path | str | None = None,
        http: httpx.Client | None = None,
        bits: RandomBits | None = None,
        *,
        patience: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        seated: Callable[[list[Seat]], None] = lambda seats: None,
        relay: Relay | None = None,
    ) -> None:
        bits = RandomBits.secure() if bits is None else bits
        if not bits.is_secure:
            raise RandomnessError("A client draws its noise from secure bits only: seeded ones protect nobody.")
        self.task = task
        self._bits, self._seated = bits, seated
        url = check_url(shuffler_url, "shuffler")
        self._owns_http = http is None or relay is not None
        if relay is not None:
            http = httpx.Client(transport=RelayTransport(relay, request_length(task.routing), http))
        self._tokens = passes(task.gate, token)
        # Where there is an issuer, a report needs none: nobody else knows its seat.
        role = token if isinstance(token, str) else None
        self._calls = Calls(url, role, http or httpx.Client(timeout=TIMEOUT), bits, patience, sleep)
        self._calls.relay = None if relay is None else relay.url
        self._owns_outbox = not isinstance(outbox, Outbox)
        self.outbox = outbox if isinstance(outbox, Outbox) else open_outbox(outbox)
        self._lock = threading.Lock()
        self._path = f"/v1/tasks/{task.id}"
        longest = max(1, task.routing.longest_report_bytes)
        most = MOST_REPORTS_AN_UPLOAD if relay is None else 1
        self._largest_block = max(1, min(most, MOST_UPLOAD_BYTES // longest))
        self._most_flushed = most
        # Every layer of a cascade is sealed by itself.
        messages = max(1, task.routing.longest_report_messages) * (1 + task.routing.layers)
        self._block = max(1, min(self._largest_block, _FIRST_BLOCK_MESSAGES // messages))

    def __repr__(self) -> str:
        return f"Client(task {self.task.id[:12]} at {self._calls.url})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection and of the outbox; what waits in a file stays there."""
        if self._owns_http:
            self._calls.http.close()
        if self._owns_outbox:
            self.outbox.close()

    def report(self, value: Any) -> Sent:
        """Report one user's value.

        Args:
            value: as the plan's domain has it: a number, a category's name, or a row of numbers.

        Returns:
            What became of the report.

        Raises:
            ParameterError: the value lies outside the domain; nothing was sent.
            ReportError: it was not acknowledged; the error says whether it waits in the outbox.
        """
        return self._report(self._checked(np.asarray(value)[np.newaxis]), None, None)

    def report_prepared(self, values: Any) -> Sent:
        """Report users' values that are encoded already, as a device step makes them; checked before anything is sent.

        Args:
            values: an entry or a row a user.
        """
        return self._report(self.task.plan.check_values(values), None, None)

    def report_many(self, values: ArrayLike, progress: Progress | None = None, *, stream: str | None = None) -> Sent:
        """Report many users' values; all are checked before anything is sent.

        Args:
            values: an entry or a row a user.
            progress: called with the number of reports that were acknowledged so far.
            stream: a name for these values in the outbox: after a kill, the same call goes on where it stopped. The
                name is stored as it is and the values are not: do not put anything secret into it.

        Returns:
            What became of the reports.

        Raises:
            ParameterError: a value lies outside the domain; nothing was sent.
            ReportError: some were not acknowledged; the error says how many wait in the outbox, and how many do not.
        """
        if np.size(values) == 0:
            return Sent()
        return self._report(self._checked(values), stream, progress)

    def flush(self) -> Sent:
        """Send what the outbox holds, as it is; what is refused leaves it and is counted.

        Returns:
            What became of the reports.

        Raises:
            ReportError: some were not acknowledged, and are still in the outbox.
        """
        with self._lock:
            tally = Sent()
            with self._counted(tally, deque()):
                self._flush(tally)
            return tally

    def _checked(self, values: ArrayLike) -> Any:
        return self.task.plan.check_values(self.task.plan.encode(values))

    @contextmanager
    def _counted(self, tally: Sent, left: Collection[int]) -> Iterator[None]:
        """Whatever stops the work also says how far it came."""
        try:
            yield
        except (AnswerError, UnreachableError, RefusedError) as stopped:
            waiting = self.outbox.waiting(self.task.id)
            raise ReportError(stopped, tally, waiting, len(left), tuple(left)) from stopped

    def _report(self, values: Any, stream: str | None, progress: Progress | None) -> Sent:
        with self._lock:
            tally = Sent()
            if self._tokens is not None:
                self._tokens.check(len(values))
            left = deque(range(len(values)))
            with self._counted(tally, left):
                if stream is not None:
                    # First what an earlier run left: a row of it that is refused now has its value again.
                    known = len(self.outbox.rows_refused(self.task.id, stream))
                    self._flush(tally)
                    again = self.outbox.rows_refused(self.task.id, stream)
                    tally.refused -= len(again) - known
                    done = self.outbox.rows_done(self.task.id, stream)
                    left.clear()
                    left.extend([row for row in again if row < len(values)])
                    left.extend(range(done, len(values)))
                self._work_off(values, stream, left, tally, progress)
            return tally

    def _work_off(
        self, values: Any, stream: str | None, left: deque[int], tally: Sent, progress: Progress | None
    ) -> None:
        lost = 0
        while left:
            seats = self._take_seats([left[place] for place in range(min(self._block, len(left)))])
            started = time.monotonic()
            rows = [left[place] for place in range(len(seats))]
            bodies = make_reports(self.task, values[rows], [seat.batches for seat in seats], bits=self._bits)
            reports = [
                SentReport(report_id, seat.seat, body)
                for report_id, seat, body in zip(self._new_ids(len(seats)), seats, bodies, strict=True)
            ]
            self.outbox.put(self.task.id, reports, stream, rows if stream is not None else ())
            for _ in rows:
                left.popleft()
            self._fit_block(time.monotonic() - started, min(seat.lease_seconds for seat in seats))
            gone: list[str] = []
            try:
                never = self._deliver(reports, tally, gone)
            finally:
                row_of = {report.report_id: row for report, row in zip(reports, rows, strict=True)}
                left.extendleft(row_of[report_id] for report_id in reversed(gone))
            if never is not None:
                raise never
            tally.retried += len(gone)
            lost = lost + 1 if len(gone) == len(reports) else 0
            if lost >= _MOST_BLOCKS_LOST:
                words = "seats run out before reports for them are there: ask the operator for longer leases"
                raise AnswerError(SEAT_GONE.status, SEAT_GONE.name, words)
            if progress is not None:
                progress(tally.reports)

    def _fit_block(self, seconds: float, lease: float) -> None:
        """As many reports at a time as this machine makes in a small part of a lease."""
        if seconds > lease / 6:
            self._block = max(1, self._block // 2)
        elif seconds < lease / 20:
            self._block = min(self._largest_block, 2 * self._block)

    def _flush(self, tally: Sent) -> None:
        while reports := self.outbox.first(self.task.id, self._most_flushed, MOST_UPLOAD_BYTES):
            gone: list[str] = []
            never = self._deliver(reports, tally, gone)
            tally.refused += len(gone)
            if never is not None and never.kind not in _NEVER_KEPT:
                raise never

    def _take_seats(self, rows: list[int]) -> list[Seat]:
        """Seats for some of these rows, the first of them; for all where each has a token of its own."""
        # Nobody keeps a place that will not be used.
        check_not_expired(self.task.expires)
        within = "" if self.task.open_slots is None else f"&slots={self.task.open_slots}"
        if self._tokens is None:
            path = f"{self._path}/seats?count={len(rows)}{within}"
            seats = self._calls.ask("POST", path, seats_in)[0][: len(rows)]
        else:
            path = f"{self._path}/seats?count=1{within}"
            seats = [self._calls.ask("POST", path, seats_in, showing=self._tokens.shown(row))[0][0] for row in rows]
        for seat in seats:
            self._check_seat(seat)
        self._seated(seats)
        return seats

    def _check_seat(self, seat: Seat) -> None:
        """Only what the task's own routing has: in a batch that is said to be larger, everybody adds less noise."""
        position = self.task.routing.position_of(seat.batches)
        if position is None or not self.task.admits(position):
            words = "the shuffler offers a seat that the task does not have, so nothing was reported: it serves another"
            raise AnswerError(201, "seat-unknown", f"{words} task under this id, or is not to be trusted")

    def _new_ids(self, count: int) -> list[str]:
        drawn = self._bits.unsigned(count * ID_BYTES, 8).tobytes().hex()
        return [drawn[start : start + 2 * ID_BYTES] for start in range(0, len(drawn), 2 * ID_BYTES)]

    def _deliver(self, reports: list[SentReport], tally: Sent, gone: list[str]) -> AnswerError | None:
        """Send until each is acknowledged or refused; `gone` gets those whose seat was; answers any other refusal."""
        never: AnswerError | None = None
        again: set[str] = set()
        backoff = self._calls.backoff()
        while reports:
            try:
                refusals, tries = self._upload(reports)
            except AnswerError as refused:
                if refused.status not in _TOO_MUCH or len(reports) == 1:
                    raise
                half = len(reports) // 2
                first = self._deliver(reports[:half], tally, gone)
                return self._deliver(reports[half:], tally, gone) or first or never
            accepted: list[str] = []
            dropped: list[str] = []
            waiting: list[SentReport] = []
            for report, answer in zip(reports, refusals, strict=True):
                if isinstance(answer, int):
                    accepted.append(report.report_id)
                    tally.new += answer == 201
                elif answer.kind == SEAT_GONE.name:
                    dropped.append(report.report_id)
                    gone.append(report.report_id)
                elif is_passing(answer.status):
                    waiting.append(report)
                else:
                    never = answer
                    if answer.kind in _NEVER_KEPT:
                        dropped.append(report.report_id)
                        tally.refused += 1
            self.outbox.remove(accepted)
            self.outbox.refuse(dropped)
            tally.reports += len(accepted)
            if tries > 1:
                again.update(accepted)
            tally.retried += len(again.intersection(accepted))
            again.update(report.report_id for report in waiting)
            reports = waiting
            if waiting:
                backoff.wait(f"{self._calls.url} does not take {len(waiting)} reports now")
        return never

    def _upload(self, reports: list[SentReport]) -> tuple[list[int | AnswerError], int]:
        """For each report its 2xx status or why it was refused; and how often the request was sent."""
        if len(reports) > 1:
            path, body = f"{self._path}/reports", pack_upload(reports)
            ids = [report.report_id for report in reports]
            return self._calls.ask(
                "POST", path, lambda _, answer: results_in(answer, ids), content=body, media=BINARY, at_once=_TOO_MUCH
            )
        (report,) = reports
        path, body = f"{self._path}/reports/{report.report_id}", single_body(report.seat, report.body)
        try:
            status, tries = self._calls.ask("PUT", path, acknowledged, content=body, media=BINARY)
        except AnswerError as refused:
            if refused.kind not in _NEVER_KEPT:
                raise
            return [refused], 1
        return [status], tries
