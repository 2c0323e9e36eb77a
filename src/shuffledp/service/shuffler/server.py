"""A shuffler on its store: what HTTP calls, and the two chores in the background, sealing and sending on.

In a cascade it is one hop: it takes its layer off what it seals, and what it sends goes to the hop after it.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.delivery import LARGEST_WHOLE_BYTES, Manifest
from shuffledp.service.ended import Ended
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import RefusedError
from shuffledp.service.rounds import RoundsRouting, owner_of, routing_from, split_round
from shuffledp.service.routing import Routing, Seat
from shuffledp.service.server import TaskServer
from shuffledp.service.shuffler.commits import abandon, counts_of
from shuffledp.service.shuffler.desk import LEASE_SECONDS, MOST_WAITING_BYTES, ShufflerDesk
from shuffledp.service.shuffler.filling import Fills
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.layers import Layer
from shuffledp.service.shuffler.own_hop import OwnHop
from shuffledp.service.shuffler.receiving import HopDesk
from shuffledp.service.shuffler.sealing import BatchSealer
from shuffledp.service.shuffler.sending import BatchSender, Post
from shuffledp.service.shuffler.uploads import Accepting, Answer, Upload, Uploads
from shuffledp.service.store.contract import ShufflerRecords, Store
from shuffledp.service.telemetry import log
from shuffledp.service.wire import SentReport


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
        self.received = self.metrics.counter("batches_received", "Batches kept that the hop before has sent.")
        self._uploads = Uploads(store, self._accept, self._accepted)
        is_stopping = lambda: self._chores.is_stopping  # noqa: E731
        self.sealer = BatchSealer(store, lambda: self.desk, self.sizes, self.metrics, is_stopping)
        unit = lambda task_id: self.desk.routings[task_id].left_bytes  # noqa: E731
        self.sender = BatchSender(store, self._answer_of, unit, self.sizes.whole, self.metrics, is_stopping)
        self._sealing = threading.Lock()
        self.fills = Fills(store, self.tasks, clock)

    def start(self) -> None:
        """Begin the chore, and look at open batches for whoever asks how full they are."""
        super().start()
        self.fills.start()

    @property
    def hop(self) -> int | None:
        """Which hop of cascades it is, from 1; None where it serves no cascade."""
        return None if self.desk.layer is None else self.desk.layer.hop

    def stop(self) -> None:
        """End the chore at hand; a batch whose layer is being taken off is left as it came."""
        self._chores.ask_to_stop()
        self._own.close()
        self.fills.stop()
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
        if routing.issuer is None:
            return
        known: dict[str, Routing | RoundsRouting] = {**self.tasks, **self.campaigns}
        # Another process on the same store may have been given some.
        for name, text in self._store.read(lambda records: records.tasks()).items():
            if name not in known and name == owner_of(name) and Ended.of(text) is None:
                known[name] = routing_from(json.loads(text))
        for other, each in known.items():
            if each.issuer is None or owner_of(other) == task_id:
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

    def _taken(self, records: ShufflerRecords, task_id: str, batch_id: str) -> str | None:
        return records.received(task_id, batch_id)

    def batch_bytes(self, task_id: str, batch_id: str) -> int:
        """How long a batch of the hop before this one may be that comes now, or a refusal."""
        # Of a task that has ended the routing is gone.
        taken = self.was_taken(task_id, batch_id)
        return LARGEST_WHOLE_BYTES if taken else self.incoming.batch_bytes(task_id, batch_id)

    def deliver(self, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch of the hop before this one, on disk when this returns; False if it was delivered before."""
        if self.was_taken(task_id, batch_id, hashlib.sha256(body).hexdigest()):
            return False
        return self._received(task_id, lambda records: self.incoming.receive(records, task_id, batch_id, body))

    def take_piece(self, task_id: str, batch_id: str, number: int, body: bytes) -> bool:
        """Keep a piece of a batch, on disk when this returns; False if it was kept before, or is not needed."""
        if self.was_taken(task_id, batch_id):
            return False
        self._store.write(lambda records: self._open_round(records, task_id))
        return self._store.write(lambda records: self.incoming.take_piece(records, task_id, batch_id, number, body))

    def take_manifest(self, task_id: str, batch_id: str, manifest: Manifest) -> bool:
        """The pieces that have come are the batch; False if it was delivered before."""
        if self.was_taken(task_id, batch_id, manifest.digest):
            return False
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

    def accept_all(self, uploads: list[Upload]) -> Accepting:
        """Accept several uploads' reports; each upload's answers are told to its own function after the commit.

        Returns:
            What is done when the commit of these uploads is.
        """
        return self._uploads.accept_all(uploads)

    def _accept(self, records: ShufflerRecords, task_id: str, reports: list[SentReport]) -> list[Answer]:
        return self.desk.accept(records, task_id, reports)

    def _accepted(self, count: int, fills: bool) -> None:
        self.reports.inc(count)
        if fills:
            self._chores.wake()

    def counts(self, task_id: str) -> dict[str, Any]:
        """How far a task has come."""
        return asdict(counts_of(self._store, task_id))

    def _leaves(self) -> list[str]:
        known = self._store.read(lambda records: records.tasks())
        counts = [counts_of(self._store, task_id) for task_id in known]
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
        with self._sealing:
            self._abandon_dropped()
            return self.sealer.seal_full()

    def send_waiting(self) -> bool:
        """Send sealed batches on, oldest first; the same bytes until they are taken. True if none is left."""
        return self.sender.send_waiting()

    def _answer_of(self, path: str, body: bytes, media: str = BINARY) -> int:
        """The status of the next hop's answer."""
        return self._post(path, body) if media == BINARY else self._post(path, body, media)

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
                abandon(self._store, task_id, self.tasks[task_id].users)
                log("round abandoned", level=30, round=parts[1])


def _routing_of_round(campaign: RoundsRouting, task_id: str) -> Routing | None:
    parts = split_round(task_id)
    return None if parts is None else campaign.of_round(*parts[1:])
