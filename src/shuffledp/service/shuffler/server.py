"""A shuffler on its store: what HTTP calls, and the two chores in the background, sealing and sending on.

In a cascade it is one hop: it takes its layer off what it seals, and what it sends goes to the hop after it.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol

import httpx

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.addresses import refuse_plain_http
from shuffledp.service.delivery import Manifest
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import RefusedError
from shuffledp.service.rounds import RoundsRouting, owner_of, split_round
from shuffledp.service.routing import Routing, Seat
from shuffledp.service.server import TaskServer
from shuffledp.service.shuffler.desk import LEASE_SECONDS, MOST_WAITING_BYTES, Accepted, ShufflerDesk
from shuffledp.service.shuffler.large import BatchSizes, LargeBatch
from shuffledp.service.shuffler.layers import Layer, Suspects
from shuffledp.service.shuffler.own_hop import OwnHop
from shuffledp.service.shuffler.receiving import HopDesk
from shuffledp.service.shuffler.sending import BatchSender
from shuffledp.service.store.contract import ClaimLostError, Counts, ShufflerRecords, Store
from shuffledp.service.telemetry import log
from shuffledp.service.wire import SentReport
from shuffledp.service.workers import ClosedError


class Post(Protocol):
    """Sends a body of this media type to a path of the next hop; answers the HTTP status."""

    def __call__(self, path: str, body: bytes, media: str = BINARY) -> int:
        """The status of the answer to one request."""


Answer = Accepted | RefusedError
Outcome = list[Answer] | BaseException
"""What became of an upload's reports, or why nothing did."""

Answered = Callable[[Outcome], None]
"""Is told an upload's outcome, in the store's own thread."""

Upload = tuple[str, list[SentReport], Answered]
_task_of = itemgetter(0)


def post_to(url: str, token: str) -> Post:
    """Sends to the server at this address, over one connection."""
    refuse_plain_http(url, "analyzer")
    client = httpx.Client(base_url=url, timeout=60.0, headers={"Authorization": f"Bearer {token}"})

    def post(path: str, body: bytes, media: str = BINARY) -> int:
        return client.post(path, content=body, headers={"Content-Type": media}).status_code

    return post


class ShufflerServer(TaskServer[ShufflerRecords, Routing, RoundsRouting]):
    """One process's shuffler: serves the tasks of its store, seals and sends what is full.

    Args:
        store: where everything is kept; closed by `stop`.
        post: how sealed batches reach the next hop.
        clock: the seconds since the epoch, which leases run by.
        lease_seconds: how long a seat waits for its report.
        most_waiting_bytes: new reports are refused while more than this waits to be sent on.
        sizes: how much of a large batch is in memory at a time.
        layer: which hop of cascades this is, and what takes its layer off; None where it serves no cascade.

    Raises:
        ParameterError: the store has tasks of another hop, or of another key.
    """

    def __init__(
        self,
        store: Store[ShufflerRecords],
        *,
        post: Post,
        clock: Callable[[], float] = time.time,
        lease_seconds: float = LEASE_SECONDS,
        most_waiting_bytes: int = MOST_WAITING_BYTES,
        layer: Layer | None = None,
        sizes: BatchSizes | None = None,
    ) -> None:
        self._post, self._own, self.sizes = post, OwnHop(layer), sizes or BatchSizes()
        super().__init__("shuffler", store, self._own.load, _routing_of_round, self._seal_and_send)
        self.desk = ShufflerDesk(
            routings=self.tasks,
            bits=RandomBits.secure(),
            clock=clock,
            lease_seconds=lease_seconds,
            most_waiting_bytes=most_waiting_bytes,
            has_room=store.has_room,
            layer=layer,
        )
        self.incoming = HopDesk(self.desk)
        self.seats = self.metrics.counter("seats", "Seats given out.")
        self.reports = self.metrics.counter("reports", "Reports accepted.")
        self.sealed = self.metrics.counter("batches_sealed", "Batches permuted and kept.")
        self.sent = self.metrics.counter("batches_sent", "Batches that the next hop has.")
        self.received = self.metrics.counter("batches_received", "Batches kept that the hop before has sent.")
        self.peeled = self.metrics.counter("messages_peeled", "Messages that a layer was taken off.")
        self.replaced = self.metrics.counter("messages_replaced", "Messages that gave way to random bytes.", "why")
        self.peeling_seconds = self.metrics.counter("peeling_seconds", "Time spent taking layers off.")
        pieces_sent = self.metrics.counter("pieces_sent", "Pieces of large batches that the next hop has.")
        unit = lambda task_id: self.desk.routings[task_id].left_bytes  # noqa: E731
        self._sender = BatchSender(store, self._answer_of, unit, lambda: self._chores.is_stopping, pieces_sent.inc)
        self.waiting = self.metrics.gauge("waiting_bytes", "Sealed and not sent yet.")
        self._arriving, self._sealing = threading.Lock(), threading.Lock()
        self._arrived: list[Upload] = []

    def stop(self) -> None:
        """End the chore at hand; a batch whose layer is being taken off is left as it came."""
        self._chores.ask_to_stop()
        self._own.close()
        super().stop()

    def add_task(self, text: str) -> tuple[str, bool]:
        """Serve a task or a campaign, of which only the routing is read and kept; its id, and whether it is new.

        Raises:
            ParameterError: it is a cascade, and this is none of its hops.
        """
        task_id, routing = self._own.read(text)
        self._check_issuer(task_id, routing)
        return self._serve(task_id, self._own.kept(routing), routing)

    @property
    def cautions(self) -> list[str]:
        """Tasks in which nobody is kept from taking part twice."""
        known: dict[str, Routing | RoundsRouting] = {**self.tasks, **self.campaigns}
        shared = [task_id[:12] for task_id, each in known.items() if each.issuer is None and each.hop == 1]
        named = dict.fromkeys(map(owner_of, shared))
        words = "whoever has the token for enrol takes part as often as they like, which is for trials"
        return [f"{words}: {', '.join(named)} (create a task with --issuer to let people in once)"] if named else []

    def _check_issuer(self, task_id: str, routing: Routing | RoundsRouting) -> None:
        """A key that two tasks had would let people use both their tokens in one of them."""
        known: dict[str, Routing | RoundsRouting] = {**self.tasks, **self.campaigns}
        for other, each in known.items():
            if routing.issuer is None or each.issuer is None or owner_of(other) == task_id:
                continue
            if each.issuer.key == routing.issuer.key:
                problem = f"must have a key of its own, not that of task {other[:12]}"
                way_out = "make one with `shuffledp keys make FOLDER --issuer NAME`, and create the task again"
                raise ParameterError("issuer", routing.issuer.name, problem, way_out)

    def _is_campaign(self, known: Routing | RoundsRouting) -> bool:
        return isinstance(known, RoundsRouting)

    def knows(self, task_id: str) -> bool:
        """Whether a task, or a round's campaign, is known without asking the store."""
        return task_id in self.tasks or task_id.partition(".")[0] in self.campaigns

    def _found(self, task_id: str) -> Routing | None:
        """Another process on the same store may have been given a task, or a campaign."""
        self.check_goes_on(task_id)
        if not self.knows(task_id):
            owner = task_id.partition(".")[0]
            text = self._store.read(lambda records: records.task(owner))
            if text is None:
                return None
            self._hold(owner, self._load(text))
        return self.tasks[task_id] if task_id in self.tasks else self._round(task_id)

    def take_seats(
        self, task_id: str, count: int, slots: int | None = None, token: str | None = None
    ) -> "Future[list[Seat]]":
        """Up to so many seats, at least one, in the first so many slots if they are given; for a token its one seat."""

        def take(records: ShufflerRecords) -> list[Seat]:
            self._open_round(records, task_id)
            seats = [self.desk.take_seat(records, task_id, slots, token)]
            if token is not None:
                return seats
            # Fewer may be left than were asked for.
            with suppress(RefusedError):
                while len(seats) < count:
                    seats.append(self.desk.take_seat(records, task_id, slots))
            return seats

        return self._store.submit(take)

    def _open_round(self, records: ShufflerRecords, task_id: str) -> None:
        """A round that somebody sits down in for the first time is served from then on."""
        if task_id not in self.tasks and (routing := self._found(task_id)) is not None:
            records.add_task(task_id, self._own.kept(routing))

    def deliver(self, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch of the hop before this one, on disk when this returns; False if it was delivered before."""
        return self._received(task_id, lambda records: self.incoming.receive(records, task_id, batch_id, body))

    def take_piece(self, task_id: str, batch_id: str, number: int, body: bytes) -> bool:
        """Keep a piece of a batch, on disk when this returns; False if it was kept before, or is not needed."""
        self._store.write(lambda records: self._open_round(records, task_id))
        return self._store.write(lambda records: self.incoming.take_piece(records, task_id, batch_id, number, body))

    def take_manifest(self, task_id: str, batch_id: str, manifest: Manifest) -> bool:
        """The pieces that have come are the batch; False if it was delivered before."""
        return self._received(
            task_id, lambda records: self.incoming.take_manifest(records, task_id, batch_id, manifest)
        )

    def _received(self, task_id: str, take: Callable[[ShufflerRecords], bool]) -> bool:
        """Take a batch in one commit, with its round if that is new here; answers whether it is new."""

        def act(records: ShufflerRecords) -> bool:
            self._open_round(records, task_id)
            return take(records)

        new = self._store.write(act)
        if new:
            self.received.inc()
            self._chores.wake()
        return new

    def accept_all(self, uploads: list[Upload]) -> None:
        """Accept several uploads' reports; each upload's answers are told to its own function after the commit."""
        with self._arriving:
            is_first = not self._arrived
            self._arrived += uploads
        if not is_first:
            return
        try:
            self._accept_together()
        except BaseException as failed:
            # Nobody will come for them, and the next must be the first again.
            _tell_all(self._take(), failed)
            raise

    def _take(self) -> list[Upload]:
        with self._arriving:
            taken, self._arrived = self._arrived, []
        return taken

    def _accept_together(self) -> None:
        """Accept all reports that have arrived when the store comes to it; answer after the commit."""
        taken: list[Upload] = []

        def accept(records: ShufflerRecords) -> tuple[list[Answer], bool]:
            # By task: a stable sort, so that the answers are in the order of `taken`. A store may run this again if
            # nothing came of the first time: those that were taken then are still there.
            taken[:] = sorted([*taken, *self._take()], key=_task_of)
            answers: list[Answer] = []
            for task_id, uploads in groupby(taken, key=_task_of):
                answers += self.desk.accept(records, task_id, [report for _, some, _ in uploads for report in some])
            return answers, bool(records.full_batches())

        def answer(done: "Future[tuple[list[Answer], bool]]") -> None:
            failed = done.exception()
            if failed is not None:
                # If the commit ended before it came to this, all that wait are refused; the next is the first again.
                _tell_all(taken or self._take(), failed)
                return
            answers, fills = done.result()
            left = iter(answers)
            for upload in taken:
                _tell_all([upload], list(islice(left, len(upload[1]))))
            self.reports.inc(sum(isinstance(said, Accepted) and said.new for said in answers))
            if fills:
                self._chores.wake()

        self._store.submit(accept).add_done_callback(answer)

    def counts(self, task_id: str) -> dict[str, Any]:
        """How far a task has come."""
        return asdict(self._store.read(lambda records: records.counts(task_id)))

    def _leaves(self) -> list[str]:
        known = self._store.read(lambda records: records.tasks())
        counts = [self._store.read(partial(_counts_of, task_id)) for task_id in known]
        open_batches, waiting = (
            sum(getattr(each, name) for each in counts) for name in ("batches_open", "batches_waiting")
        )
        leases = sum(each.leases for each in counts)
        return [
            f"{sum(each.reports for each in counts):,} reports acknowledged, {open_batches:,} open batches",
            f"{waiting:,} full batches that are not delivered",
            f"{leases:,} seats that wait for a report",
        ]

    def _seal_and_send(self) -> bool:
        all_sealed = all_sent = False
        try:
            try:
                all_sealed = self.seal_full()
            finally:
                # Sending makes room, which sealing may lack.
                all_sent = self.send_waiting()
        finally:
            # Whatever went wrong: what was deleted is still in the log, which may be what fills the disk.
            self._store.forget_deleted()
        return all_sealed and all_sent

    def seal_full(self) -> bool:
        """Permute and keep every full batch; what an earlier process left half done is finished first. True if all are.

        A batch that cannot be sealed waits, and does not hold up the others.
        """
        all_sealed = True
        with self._sealing:
            self._abandon_dropped()
            untidy = [(self._tidy, *key) for key in self._store.read(lambda records: records.untidy())]
            full = [(self._seal, *key) for key in self._store.read(lambda records: records.full_batches())]
            for act, task_id, batch_id in untidy + full:
                try:
                    if self._claim(task_id, batch_id):
                        act(task_id, batch_id)
                except RefusedError:
                    raise
                except ClosedError:
                    log("batch left with its layer", task=task_id[:12], batch=batch_id)
                    return False
                except Exception as failed:
                    log("batch not sealed", level=40, batch=batch_id, error=type(failed).__name__)
                    import traceback

                    traceback.print_exc()
                    all_sealed = False
        return all_sealed

    def _abandon_dropped(self) -> None:
        """Where a campaign drops rounds: those that are not full while a later one was are never released, and go."""
        dropping = {name for name, campaign in self.campaigns.items() if campaign.drops}
        if not dropping:
            return
        sealed = self._store.read(lambda records: [split_round(each) for each in records.sealed_tasks()])
        latest: dict[str, int] = {}
        for campaign_id, number, _ in filter(None, sealed):
            latest[campaign_id] = max(number, latest.get(campaign_id, 0))
        for task_id in self._store.read(lambda records: records.open_tasks()):
            parts = split_round(task_id)
            if parts is not None and parts[0] in dropping and parts[1] < latest.get(parts[0], 0):
                positions = self.tasks[task_id].users
                self._until_done(partial(_abandon, task_id, positions))
                log("round abandoned", level=30, round=parts[1])

    def _seal(self, task_id: str, batch_id: str) -> None:
        """Piece by piece, a commit each: reports go on being accepted between them."""
        started = time.perf_counter()
        length = self._store.read(lambda records: records.full_bytes(task_id, batch_id))
        if length is None:
            return
        if self._store.read(lambda records: records.has_draft(task_id, batch_id)):
            self._until_done(lambda records: records.drop_draft(task_id, batch_id))
        if length > self.sizes.whole:
            peel = partial(self._peel, task_id, batch_id)
            large = LargeBatch(self._store, self.desk, self.sizes, task_id, batch_id, length, peel)
            is_tidy = large.seal(lambda: self._chores.is_stopping)
        else:
            is_tidy = self._seal_whole(task_id, batch_id)
        if is_tidy is None:
            return
        if not is_tidy:
            self._tidy(task_id, batch_id)
        self.sealed.inc()
        log("batch sealed", task=task_id[:12], batch=batch_id, seconds=round(time.perf_counter() - started, 3))

    def _peel(self, task_id: str, batch_id: str, body: bytes, suspects: Suspects | None = None) -> bytes:
        """Messages of a batch without this hop's layer, which are counted; as they came where it has none."""
        routing, started = self.desk.routings[task_id], time.perf_counter()
        if not routing.layers:
            return body
        peeled = self.desk.peeled(task_id, batch_id, body, suspects)
        self.peeling_seconds.inc(time.perf_counter() - started)
        self.peeled.inc(len(body) // routing.ciphertext_bytes)
        for why, count in (("unopened", peeled.unopened), ("copy", peeled.copies)):
            self.replaced.labels(why).inc(count)
        if peeled.unopened or peeled.copies:
            facts = {"unopened": peeled.unopened, "copies": peeled.copies}
            log("messages replaced", level=30, task=task_id[:12], batch=batch_id, **facts)
        return peeled.body

    def _seal_whole(self, task_id: str, batch_id: str) -> bool | None:
        """A batch that fits into memory; answers whether it is tidy, and None if it was not sealed."""
        # A full batch changes no more: it is read, peeled and permuted while others write.
        body = self._store.read(lambda records: self.desk.full_batch(records, task_id, batch_id))
        if not body:
            return None
        pieces = self.desk.permuted_batch(task_id, self._peel(task_id, batch_id, body))
        for number, piece in enumerate(pieces[:-1]):
            if self._chores.is_stopping:
                # What is written is a draft, which the next process drops.
                return None
            self._store.write(partial(_add_piece, task_id, batch_id, number, piece))
        return self._store.write(lambda records: self.desk.seal(records, task_id, batch_id, pieces))

    def _answer_of(self, path: str, body: bytes, media: str = BINARY) -> int:
        """The status of the next hop's answer."""
        return self._post(path, body) if media == BINARY else self._post(path, body, media)

    def _claim(self, task_id: str, batch_id: str) -> bool:
        """Whether a batch is this process's to seal and to send; another's is left alone."""
        return self._store.write(lambda records: records.claim(task_id, batch_id))

    def _until_done(self, work: Callable[[ShufflerRecords], bool]) -> None:
        """Commit after commit: others write between them."""
        while not self._store.write(work):
            pass

    def _tidy(self, task_id: str, batch_id: str) -> None:
        self._until_done(lambda records: records.tidy(task_id, batch_id))

    def _purge(self, task_id: str, batch_id: str) -> None:
        self._until_done(lambda records: records.purge(task_id, batch_id))

    def send_waiting(self) -> bool:
        """Send sealed batches on, oldest first; the same bytes until they are taken. True if none is left.

        A batch that is refused waits, and does not hold up the others.
        """
        refused = False
        for task_id, batch_id in self._store.read(lambda records: records.unpurged()):
            if self._claim(task_id, batch_id):
                self._purge(task_id, batch_id)
        waiting = self._store.read(lambda records: records.waiting())
        if waiting:
            # Nothing leaves while the log still tells in which order it came.
            self._store.forget_deleted()
        try:
            for task_id, batch_id in waiting:
                if self._chores.is_stopping:
                    return False
                if self._claim(task_id, batch_id) and not self._send(task_id, batch_id):
                    refused = True
        except httpx.HTTPError as failed:
            log("next hop unreachable", level=30, error=type(failed).__name__)
            refused = True
        self.waiting.set(self._store.read(lambda records: records.waiting_bytes()))
        # The bytes that were sent are in the log, too: tried again until it is empty.
        self._store.forget_deleted()
        return not refused

    def _send(self, task_id: str, batch_id: str) -> bool:
        length = self._store.read(lambda records: records.sealed_bytes(task_id, batch_id))
        if length is None:
            return True
        is_taken = self._sender.send_pieces if length > self.sizes.whole else self._sender.send_whole
        try:
            if not is_taken(task_id, batch_id):
                return False
            self._purge(task_id, batch_id)
        except ClaimLostError:
            # It took so long that another process sends it, too: the same bytes, which are taken once.
            log("batch sent by another", level=30, batch=batch_id)
            return True
        self.sent.inc()
        return True


def _tell_all(uploads: list[Upload], answers: Outcome) -> None:
    """One who cannot be told does not keep it from the others."""
    for _, _, answered in uploads:
        try:
            answered(answers)
        except Exception as failed:
            log("an answer was lost", level=40, error=type(failed).__name__)


def _routing_of_round(campaign: RoundsRouting, task_id: str) -> Routing | None:
    parts = split_round(task_id)
    return None if parts is None else campaign.of_round(*parts[1:])


def _abandon(task_id: str, positions: int, records: ShufflerRecords) -> bool:
    return records.abandon(task_id, positions)


def _counts_of(task_id: str, records: ShufflerRecords) -> Counts:
    return records.counts(task_id)


def _add_piece(task_id: str, batch_id: str, number: int, piece: memoryview, records: ShufflerRecords) -> None:
    records.add_piece(task_id, batch_id, number, piece)
