"""What has been aggregated and what is released: no network, no database.

Every method runs inside one transaction of the records it is given. A batch is kept once (a second delivery must be
the same bytes), read once (its total appears and its ciphertexts vanish in one step), and told to the learner in the
schedule's order, whatever the order in which batches arrive. A task's answers are published as releases; of a campaign
every move of its learner publishes the next model, in the same step.
"""

import hashlib
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from shuffledp.errors import BatchError
from shuffledp.estimates import Estimate, VectorEstimate, answer_document
from shuffledp.protocols.learner import Cohort, Learner, OpenBatch, Round
from shuffledp.protocols.tallies import Tally
from shuffledp.service.analyzer.results import tally_of
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import SigningKey
from shuffledp.service.delivery import Manifest, check_manifest, check_same, take_piece
from shuffledp.service.models import model_of, signed, unchecked_model
from shuffledp.service.problems import BATCH_UNKNOWN, WRONG_LENGTH, RefusedError
from shuffledp.service.rounds import round_id, split_round
from shuffledp.service.routing import Routing
from shuffledp.service.routing import batch_id as id_of
from shuffledp.service.store.contract import AnalyzerRecords, BatchTotal, Release
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, Unpacked


@dataclass(frozen=True)
class AnalyzerDesk:
    """The analyzer's rules.

    Attributes:
        tasks: tasks, and rounds of campaigns, by their ids.
        campaigns: by their ids.
        signing: what models are signed with; None where no campaign is served.
        clock: the seconds since the epoch, by which rounds that do not fill are dropped.
        older_signing: what models of campaigns are signed with that were created before the keys were rotated.
    """

    tasks: Mapping[str, Task | RoundTask]
    campaigns: Mapping[str, Campaign] = field(default_factory=dict)
    signing: SigningKey | None = None
    clock: Callable[[], float] = time.time
    older_signing: tuple[SigningKey, ...] = ()

    def signing_of(self, campaign: Campaign) -> SigningKey | None:
        """What a campaign's models are signed with: the key that it names; None where it is not here."""
        own = [key for key in (self.signing, *self.older_signing) if key is not None]
        return next((key for key in own if key.public == campaign.signing_key), None)

    def batch_size(self, task_id: str, batch_id: str) -> int:
        """How many users a batch of a task has, or a refusal."""
        routing = self.tasks[task_id].routing
        place = routing.find(batch_id)
        if place is None:
            raise RefusedError(
                BATCH_UNKNOWN, f"the task's schedule has no batch {batch_id[:40]}: check the task's file."
            )
        return routing.schedule.batch_users(place[1], place[2])

    def batch_bytes(self, task_id: str, batch_id: str) -> int:
        """How long a batch of a task must be, or a refusal."""
        return self.tasks[task_id].routing.opened_bytes(self.batch_size(task_id, batch_id))

    def deliver(self, records: AnalyzerRecords, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch; False if the same bytes were delivered before, or nobody asks for its round any more."""
        expected = self.batch_bytes(task_id, batch_id)
        if len(body) != expected:
            raise RefusedError(
                WRONG_LENGTH, f"the batch has {len(body)} bytes and must have {expected}: send it whole."
            )
        digest = hashlib.sha256(body).hexdigest()
        known = records.digest(task_id, batch_id)
        if known is None:
            # Pieces of it that came before were its sender's of another version.
            self._throw_away(records, task_id, batch_id)
            if not self._is_asked_for(records, task_id):
                # Taken and thrown away: the shuffler deletes it, too.
                return False
            records.add_batch(task_id, batch_id, digest, body)
            return True
        check_same(batch_id, known, digest)
        return False

    def take_piece(self, records: AnalyzerRecords, task_id: str, batch_id: str, number: int, body: bytes) -> bool:
        """Keep a piece of a batch; False if it was kept before, or the batch was, or nobody asks for its round."""
        expected = self.batch_bytes(task_id, batch_id)
        if records.digest(task_id, batch_id) is not None or not self._is_asked_for(records, task_id):
            # The manifest says whether it is the same batch.
            return False
        place = {"expected": expected, "unit": CIPHERTEXT_BYTES}
        return take_piece(records, task_id, batch_id, number, body, **place)

    def take_manifest(self, records: AnalyzerRecords, task_id: str, batch_id: str, manifest: Manifest) -> bool:
        """The pieces that have come are the batch; False if it was delivered before, or nobody asks for its round."""
        expected, known = self.batch_bytes(task_id, batch_id), records.digest(task_id, batch_id)
        if known is not None:
            check_same(batch_id, known, manifest.digest)
            return False
        if not self._is_asked_for(records, task_id):
            self._throw_away(records, task_id, batch_id)
            return False
        check_manifest(records, task_id, batch_id, manifest, expected=expected)
        records.receive(task_id, batch_id, manifest.digest)
        return True

    def _throw_away(self, records: AnalyzerRecords, task_id: str, batch_id: str) -> None:
        """Pieces that nobody will read."""
        if records.incoming_bytes(task_id, batch_id):
            while not records.drop_pieces(task_id, batch_id):
                pass

    def _is_asked_for(self, records: AnalyzerRecords, task_id: str) -> bool:
        """Whether a batch is to be read: not that of a round that was dropped, or that no model ever asked for."""
        parts = split_round(task_id)
        if parts is None:
            return True
        asked = self._asked(task_id)
        state, _ = _stored(records, asked)
        cohort = asked.learner.ask(state)
        place = None if cohort is None else asked.learner.round_of(state, cohort)
        return place is not None and (place.number, place.seating) == parts[1:]

    def read(self, records: AnalyzerRecords, task_id: str, batch_id: str, messages: Unpacked) -> list[Release]:
        """Add a batch up, once, and publish every estimate, or every model, that this makes known."""
        if records.body(task_id, batch_id) is None:
            return []
        try:
            size = self.batch_size(task_id, batch_id)
            tally = tally_of(self.tasks[task_id].plan, size, messages, size)
        except BatchError:
            tally = None
        return self._add_total(records, task_id, batch_id, tally, messages.malformed)

    def read_pieces(
        self, records: AnalyzerRecords, task_id: str, batch_id: str, tally: Tally | None, malformed: int
    ) -> list[Release]:
        """Add a batch up, once, that came in pieces: of their tally, None where they are spoiled; and publish."""
        if records.pieces(task_id, batch_id) is None:
            return []
        return self._add_total(records, task_id, batch_id, tally, malformed)

    def _add_total(
        self, records: AnalyzerRecords, task_id: str, batch_id: str, tally: Tally | None, malformed: int
    ) -> list[Release]:
        mechanism = self.tasks[task_id].plan.mechanism(self.batch_size(task_id, batch_id))
        asked = self._asked(task_id)
        told, dropped, void = None, malformed, True
        if tally is not None:
            with suppress(BatchError):
                (told, dropped), void = mechanism.read(tally), False
        if void:
            told = asked.learner.stand_in(mechanism)
        total = None if told is None else asked.learner.told_document(told)
        records.add_total(task_id, BatchTotal(batch_id, total, dropped, void))
        return self._advance(records, asked)

    def open_campaign(self, records: AnalyzerRecords, campaign: Campaign) -> None:
        """Publish a campaign's first model, of nobody, unless that was done."""
        if records.last_model(campaign.id) is None:
            state = campaign.learner.start()
            self._publish(records, campaign, 0, state, campaign.learner.ask(state))

    def drop_late(self, records: AnalyzerRecords, campaign: Campaign) -> bool:
        """Go on without a round that has not filled in time, as its campaign says; answers whether there was one."""
        last = records.last_model(campaign.id)
        place = None if last is None else unchecked_model(last).round
        if place is None or place.closes is None or self.clock() < place.closes:
            return False
        asked = self._asked(round_id(campaign.id, place.number, place.seating))
        state, lost = _stored(records, asked)
        cohort = asked.learner.ask(state)
        if cohort is None:
            return False
        task_id, due = asked.due(state, cohort)
        if any(records.digest(task_id, batch_id) is not None for batch_id in due):
            # It has come, and is read sooner or later.
            return False
        nothing = {batch.level: None for batch in due.values()}
        state = asked.learner.tell(state, cohort.users, nothing)
        self._move(records, asked, state, _Lost(lost.dropped, lost.void + len(due), lost.width))
        return True

    def is_over(self, records: AnalyzerRecords, owner: str) -> bool:
        """Whether a task, or a campaign, has all its answers and nothing of it waits to be read."""
        campaign = self.campaigns.get(owner)
        asked = self._asked(owner) if campaign is None else self._asked(round_id(owner, 0, 0))
        progress = records.progress(owner)
        state, _ = _stored(records, asked)
        return progress.batches_read == progress.batches_received and asked.learner.ask(state) is None

    def _asked(self, task_id: str) -> "_Asked":
        """What is asked in a task, or in a round of a campaign."""
        parts = split_round(task_id)
        if parts is None:
            task = self.tasks[task_id]
            return _Asked(task_id, task.plan.learner(), lambda place: (task_id, task.routing))
        campaign = self.campaigns[parts[0]]
        layouts = campaign.routing.layouts
        return _Asked(
            campaign.id,
            campaign.learner,
            lambda place: (round_id(campaign.id, place.number, place.seating), layouts[place.seating]),
        )

    def _advance(self, records: AnalyzerRecords, asked: "_Asked") -> list[Release]:
        """Tell the learner every cohort whose batches are all read, in order."""
        learner = asked.learner
        state, lost = _stored(records, asked)
        published: list[Release] = []
        while (cohort := learner.ask(state)) is not None:
            task_id, due = asked.due(state, cohort)
            totals = records.totals(task_id, list(due))
            if not due or len(totals) < len(due):
                break
            if not learner.takes_void and any(total.total is None for total in totals.values()):
                # Nothing stands in for a void batch: this task has no answer.
                break
            closed: dict[int, Any] = {}
            for batch_id, batch in due.items():
                total = totals[batch_id]
                closed[batch.level] = None if total.total is None else learner.told_from(total.total, batch.mechanism)
                lost = lost.with_batch(total, learner.widening(batch.mechanism, total.dropped, total.void))
            state = learner.tell(state, cohort.users, closed)
            if asked.owner in self.campaigns:
                self._move(records, asked, state, lost)
                continue
            answer = learner.estimate(state)
            if answer is not None:
                published.append(release_of(answer, state.users, lost.dropped, lost.void, lost.width))
                records.add_release(asked.owner, published[-1])
        if published:
            records.set_state(asked.owner, {"learner": state.document(), **asdict(lost)})
        return published

    def _move(self, records: AnalyzerRecords, asked: "_Asked", state: Any, lost: "_Lost") -> None:
        """A campaign's learner stands here from now on, and the model of it is the next one."""
        last = records.last_model(asked.owner)
        assert last is not None
        records.set_state(asked.owner, {"learner": state.document(), **asdict(lost)})
        campaign = self.campaigns[asked.owner]
        self._publish(records, campaign, unchecked_model(last).number + 1, state, asked.learner.ask(state))

    def _publish(
        self, records: AnalyzerRecords, campaign: Campaign, number: int, state: Any, cohort: Cohort | None
    ) -> None:
        signing = self.signing_of(campaign)
        assert signing is not None
        seconds = campaign.waiting.seconds
        closes = None if seconds is None else self.clock() + seconds
        model = model_of(campaign, number, state, cohort, closes=closes)
        records.add_model(campaign.id, number, signed(model, signing))


@dataclass(frozen=True)
class _Asked:
    """A learner, whose it is, and under which id and routing its rounds are served."""

    owner: str
    learner: Learner[Any]
    served: Callable[[Round], tuple[str, Routing]]

    def due(self, state: Any, cohort: Cohort) -> tuple[str, dict[str, OpenBatch]]:
        """The round that a cohort sits in, and by their ids its batches that close when all of the cohort have come."""
        place = self.learner.round_of(state, cohort)
        if place is None:
            return "", {}
        task_id, routing = self.served(place)
        # All that closes now ends with the slot that is over when the cohort has come.
        end, _ = routing.schedule.place_of(place.first + cohort.users)
        closing = cohort.closing(cohort.users)
        return task_id, {id_of(level, batch.first_slot, end): batch for level, batch in closing.items()}


def _stored(records: AnalyzerRecords, asked: _Asked) -> tuple[Any, "_Lost"]:
    """Where a learner stands, and what was lost so far."""
    stored = records.state(asked.owner)
    if stored is None:
        return asked.learner.start(), _Lost()
    # Version 0.1.0 had counters only.
    state = asked.learner.resume(stored["learner"] if "learner" in stored else stored["counter"])
    return state, _Lost(stored["dropped"], stored["void"], stored["width"])


@dataclass(frozen=True, slots=True)
class _Lost:
    """What was lost so far: messages, whole batches, and how much further off that may make an estimate."""

    dropped: int = 0
    void: int = 0
    width: float = 0.0

    def with_batch(self, total: BatchTotal, width: float) -> "_Lost":
        return _Lost(self.dropped + total.dropped, self.void + total.void, self.width + width)


def release_of(answer: Any, time: int, dropped: int = 0, void: int = 0, width: float = 0.0) -> Release:
    """An answer as it is published: a number or a list of them with its error, or an object of another kind.

    Args:
        answer: what a learner answers.
        time: how many users are in it.
        dropped: messages that were missing or malformed.
        void: batches that were spoiled.
        width: how much further off both may make it, where the answer does not say so itself.
    """
    if not isinstance(answer, Estimate | VectorEstimate):
        return Release(time, answer_document(answer), None, None, None, dropped, void)
    value, bound = answer_document(answer.value), answer.bound + width
    return Release(time, value, answer.standard_error, bound, answer.confidence, dropped, void)
