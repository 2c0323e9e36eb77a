"""An analyzer on its store: what HTTP calls, and the chore in the background, reading batches."""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from shuffledp.errors import ParameterError
from shuffledp.files import kind_of_document
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.analyzer.piecework import PieceOpening, PieceWork
from shuffledp.service.campaign import Campaign
from shuffledp.service.charging import charge
from shuffledp.service.crypto import PrivateKey, PublicKey, SigningKey
from shuffledp.service.delivery import LARGEST_WHOLE_BYTES, Manifest
from shuffledp.service.models import unchecked_model
from shuffledp.service.problems import NOT_FOUND, TASK_UNKNOWN, RefusedError
from shuffledp.service.rounds import split_round
from shuffledp.service.server import TaskServer
from shuffledp.service.store.contract import AnalyzerRecords, Progress, Release, Store
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.telemetry import log
from shuffledp.service.wire import SignedText, Unpacked
from shuffledp.service.workers import ClosedError


class Opening(PieceOpening, Protocol):
    """What opens ciphertexts: worker processes, or this one in tests."""

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch."""

    def close(self) -> None:
        """Let go of what it holds."""


class AnalyzerServer(TaskServer[AnalyzerRecords, Task | RoundTask, Campaign]):
    """One process's analyzer: keeps what is delivered, reads it once, publishes.

    Args:
        store: where everything is kept; closed by `stop`.
        key: what new tasks are encrypted to.
        opener: what decrypts batches with it; closed by `stop`.
        signing: what models of campaigns are signed with; without it campaigns are refused.
        clock: the seconds since the epoch, by which rounds that do not fill are dropped.
        ledger: the population's budget, which a task or a campaign is charged to before it is served for the first
            time; one that would pass it is refused.
        older: what decrypts batches of tasks that name an older key, by the key; closed by `stop`.
        older_signing: what models of campaigns are signed with that name an older key.

    Raises:
        ParameterError: a task of the store goes on and names a key that is not here.
    """

    def __init__(
        self,
        store: Store[AnalyzerRecords],
        *,
        key: PrivateKey,
        opener: Opening,
        signing: SigningKey | None = None,
        clock: Callable[[], float] = time.time,
        ledger: Path | None = None,
        older: Mapping[PublicKey, Opening] | None = None,
        older_signing: tuple[SigningKey, ...] = (),
    ) -> None:
        super().__init__("analyzer", store, loaded, Campaign.round_of_id, self._do_chores)
        self._public, self._ledger = key.public, ledger
        self._openers: dict[PublicKey, Opening] = {**(older or {}), key.public: opener}
        self.desk = AnalyzerDesk(self.tasks, self.campaigns, signing, clock, older_signing)
        self._newest: dict[str, SignedText] = {}
        self._remembering = threading.Lock()
        for known in (*self.tasks.values(), *self.campaigns.values()):
            self._check_keys(known)
        for campaign in self.campaigns.values():
            self._remember_newest(campaign.id)
        self._chunks = self.metrics.counter("pieces_received", "Pieces of large batches kept.")
        opened = self.metrics.counter("pieces_opened", "Pieces of large batches counted.")
        self.work = PieceWork(
            store, self.tasks.__getitem__, self._opener_of, lambda: self._chores.is_stopping, lambda: opened.inc()
        )
        self.received = self.metrics.counter("batches_received", "Batches kept.")
        self.read_batches = self.metrics.counter("batches_read", "Batches added up.")
        self.messages = self.metrics.counter("messages_opened", "Ciphertexts opened.")
        self.opening_seconds = self.metrics.counter("opening_seconds", "Time spent opening.")
        self.released = self.metrics.counter("releases", "Estimates published.")

    def stop(self) -> None:
        """Leave the batch at hand for the next time, and let go of what opens batches and of the store."""
        self._chores.ask_to_stop()
        for opener in self._openers.values():
            opener.close()
        super().stop()

    def _leaves(self) -> list[str]:
        found = [self.progress(task_id) for task_id in (*self.tasks, *self.campaigns)]
        read = sum(each.batches_read for each in found)
        unread = sum(each.batches_received for each in found) - read
        released = sum(each.releases for each in found)
        models = sum(unchecked_model(self.newest_model(each)).number for each in self.campaigns)
        return [
            f"{read:,} {'batch' if read == 1 else 'batches'} read, {unread:,} that are not",
            f"{released:,} {'estimate' if released == 1 else 'estimates'} released",
            *([f"{models:,} {'model' if models == 1 else 'models'} learned"] if self.campaigns else []),
        ]

    def _is_campaign(self, known: Task | RoundTask | Campaign) -> bool:
        return isinstance(known, Campaign)

    def add_task(self, text: str) -> tuple[str, bool]:
        """Serve a task or a campaign that is encrypted to a key of this analyzer; its id, and whether it is new."""
        known = loaded(text)
        if known.public_key not in self._openers:
            raise ParameterError(
                "public_key",
                known.public_key.text,
                f"must be this analyzer's (new tasks are encrypted to {self._public.text})",
                "start the analyzer again if its keys were rotated; else name the folder that it was created with",
            )
        if isinstance(known, Campaign):
            self._check_signing(known)
        if self._ledger is not None and known.id not in {*self.tasks, *self.campaigns}:
            charge(self._ledger, known)
        if not isinstance(known, Campaign):
            return self._serve(known.id, text, known)
        served = self._serve(known.id, text, known, lambda records: self.desk.open_campaign(records, known))
        self._remember_newest(known.id)
        return served

    @property
    def public_keys(self) -> list[str]:
        """The texts of the public halves of all keys that it opens with, the current one first."""
        return sorted((key.text for key in self._openers), key=lambda text: (text != self._public.text, text))

    def _check_keys(self, known: Task | RoundTask | Campaign) -> None:
        """Refuse to start without a key that is needed: batches would be read as if nobody had sent anything."""
        has_signing = not isinstance(known, Campaign) or self.desk.signing_of(known) is not None
        if known.id in self.ended or (known.public_key in self._openers and has_signing):
            return
        if self._store.read(lambda records: self.desk.is_over(records, known.id)):
            return
        if known.public_key not in self._openers:
            what = "campaign" if isinstance(known, Campaign) else "task"
            problem = f"must be in the folder of keys: {what} {known.id[:12]} of the store needs it"
            way_out = "put it back, or end that with `shuffledp store end`; the shuffler keeps its batches until then"
            raise ParameterError("public_key", known.public_key.text, problem, way_out)
        self._check_signing(cast(Campaign, known))

    def _check_signing(self, campaign: Campaign) -> None:
        signing = self.desk.signing
        if signing is None:
            raise _unsigned(campaign.id)
        if self.desk.signing_of(campaign) is None:
            problem = f"must be this analyzer's, {signing.public.text}"
            raise ParameterError("signing_key", campaign.signing_key.text, problem, "create the campaign again")

    def _remember_newest(self, campaign_id: str) -> SignedText:
        """Devices are answered from memory."""
        # One at a time: whoever read an older model must not put it in the place of a newer one.
        with self._remembering:
            newest = self._store.read(lambda records: records.last_model(campaign_id))
            assert newest is not None
            self._newest[campaign_id] = newest
        return newest

    def task(self, task_id: str) -> Task:
        """A task that is served here, and no round of a campaign.

        Raises:
            RefusedError: it is not.
        """
        found = self.tasks[task_id]
        if split_round(task_id) is not None:
            raise RefusedError(TASK_UNKNOWN, f"{task_id[:12]} is a round of a campaign: see /v1/campaigns.")
        return cast(Task, found)

    def campaign(self, campaign_id: str) -> Campaign:
        """A campaign that is served here.

        Raises:
            RefusedError: it is not.
        """
        found = self.campaigns.get(campaign_id)
        if found is None:
            words = f"campaign {campaign_id[:12]} is not served here: check the campaign's file."
            raise RefusedError(TASK_UNKNOWN, words)
        return found

    def newest_model(self, campaign_id: str) -> SignedText:
        """The newest model of a campaign, from memory."""
        self.campaign(campaign_id)
        newest = self._newest.get(campaign_id)
        return self._remember_newest(campaign_id) if newest is None else newest

    def model(self, campaign_id: str, number: int) -> SignedText:
        """The model of this number."""
        self.campaign(campaign_id)
        found = self._store.read(lambda records: records.model(campaign_id, number))
        if found is None:
            raise RefusedError(NOT_FOUND, f"there is no model {number} yet: the newest is at models/newest.")
        return found

    def models(self, campaign_id: str, after: int, most: int) -> list[SignedText]:
        """Models of larger numbers than this, oldest first."""
        return self._store.read(lambda records: records.models(campaign_id, after, most))

    def _taken(self, records: AnalyzerRecords, task_id: str, batch_id: str) -> str | None:
        return records.digest(task_id, batch_id)

    def batch_bytes(self, task_id: str, batch_id: str) -> int:
        """How long a batch may be that comes now, or a refusal."""
        # Of a task that has ended the document may be gone.
        return LARGEST_WHOLE_BYTES if self.was_taken(task_id, batch_id) else self.desk.batch_bytes(task_id, batch_id)

    def deliver(self, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch, on disk when this returns; False if it was delivered before."""
        if self.was_taken(task_id, batch_id, hashlib.sha256(body).hexdigest()):
            return False
        new = self._store.write(lambda records: self.desk.deliver(records, task_id, batch_id, body))
        if new:
            self.received.inc()
            self._chores.wake()
        return new

    def take_piece(self, task_id: str, batch_id: str, number: int, body: bytes) -> bool:
        """Keep a piece of a batch, on disk when this returns; False if it was kept before, or is not needed."""
        if self.was_taken(task_id, batch_id):
            return False
        new = self._store.write(lambda records: self.desk.take_piece(records, task_id, batch_id, number, body))
        self._chunks.inc(new)
        return new

    def take_manifest(self, task_id: str, batch_id: str, manifest: Manifest) -> bool:
        """The pieces that have come are the batch; False if it was delivered before."""
        if self.was_taken(task_id, batch_id, manifest.digest):
            return False
        new = self._store.write(lambda records: self.desk.take_manifest(records, task_id, batch_id, manifest))
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

    def _do_chores(self) -> bool:
        """Read what was delivered, and drop rounds that did not fill in time; False while some may yet be dropped."""
        self.read_all()
        self.drop_late()
        return all(campaign.waiting.seconds is None for campaign in self.campaigns.values())

    def drop_late(self) -> int:
        """Go on without rounds that have not filled in time, as their campaigns say; answers how many there were."""
        count = 0
        for campaign in list(self.campaigns.values()):
            if campaign.waiting.seconds is None or campaign.id in self.ended:
                continue
            act = partial(self.desk.drop_late, campaign=campaign)
            if self._store.write(act):
                count += 1
                self._remember_newest(campaign.id)
                log("round dropped", campaign=campaign.id[:12])
        return count

    def read_all(self) -> int:
        """Open and add up every batch that is kept and not read."""
        count = 0
        for task_id, batch_id in self._store.read(lambda records: records.left_pieces()):
            self._drop_pieces(task_id, batch_id)
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
            # More may come for ever: what was read so far is forgotten now.
            self._store.forget_deleted()
        # What was deleted is still in the log: empty it.
        self._store.forget_deleted()
        return count

    def _opener_of(self, task_id: str) -> Opening:
        """What has the key that a task names, which need not be the current one."""
        return self._openers[self.tasks[task_id].public_key]

    def _read(self, task_id: str, batch_id: str) -> None:
        started = time.perf_counter()
        if self._store.read(lambda records: records.pieces(task_id, batch_id)) is None:
            body = self._store.read(lambda records: records.body(task_id, batch_id))
            if body is None:
                return
            messages = self._opener_of(task_id).open(body, task_id, batch_id)
            opened, malformed = messages.payloads.size + messages.fillers + messages.malformed, messages.malformed
            seconds = time.perf_counter() - started
            published = self._store.write(lambda records: self.desk.read(records, task_id, batch_id, messages))
        else:
            folded = self.work.fold(task_id, batch_id, self.desk.batch_size(task_id, batch_id))
            opened, malformed = folded.messages, folded.malformed
            seconds = time.perf_counter() - started
            read = partial(self.desk.read_pieces, tally=folded.tally, malformed=malformed)
            published = self._store.write(lambda records: read(records, task_id, batch_id))
            self._drop_pieces(task_id, batch_id)
        campaign_id, _, place = task_id.partition(".")
        about: dict[str, Any] = {"releases": len(published)}
        if campaign_id in self.campaigns:
            about = {"round": place, "model": unchecked_model(self._remember_newest(campaign_id)).number}
        self.read_batches.inc()
        self.messages.inc(opened)
        self.opening_seconds.inc(seconds)
        self.released.inc(len(published))
        log("batch read", task=task_id[:12], batch=batch_id, malformed=malformed, **about)

    def _drop_pieces(self, task_id: str, batch_id: str) -> None:
        while not self._store.write(lambda records: records.drop_pieces(task_id, batch_id)):
            pass


def loaded(text: str) -> Task | Campaign:
    """A task or a campaign from its text."""
    try:
        kind = kind_of_document(json.loads(text))
    except (ValueError, RecursionError):
        kind = None
    return Campaign.from_text(text) if kind == "a campaign" else Task.from_text(text)


def _unsigned(campaign_id: str) -> ParameterError:
    problem = "needs a key that models are signed with"
    return ParameterError("campaign", campaign_id[:12], problem, "make keys with this version: `shuffledp keys FOLDER`")
