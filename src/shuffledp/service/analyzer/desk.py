"""What has been aggregated and what is released: no network, no database.

Every method runs inside one transaction of the records it is given. A batch is kept once (a second delivery must be
the same bytes), read once (its total appears and its ciphertexts vanish in one step), and told to the plan's learner in
the schedule's order, whatever the order in which batches arrive.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shuffledp.errors import BatchError
from shuffledp.estimates import Estimate, VectorEstimate, answer_document
from shuffledp.messages import Batch
from shuffledp.service.problems import BATCH_DIFFERS, BATCH_UNKNOWN, WRONG_LENGTH, RefusedError
from shuffledp.service.routing import batch_id as id_of
from shuffledp.service.store.contract import AnalyzerRecords, BatchTotal, Release
from shuffledp.service.task import Task
from shuffledp.service.wire import Unpacked


@dataclass(frozen=True)
class AnalyzerDesk:
    """The analyzer's rules."""

    tasks: Mapping[str, Task]

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
        return self.tasks[task_id].routing.batch_bytes(self.batch_size(task_id, batch_id))

    def deliver(self, records: AnalyzerRecords, task_id: str, batch_id: str, body: bytes) -> bool:
        """Keep a batch; False if the same bytes were delivered before."""
        expected = self.batch_bytes(task_id, batch_id)
        if len(body) != expected:
            raise RefusedError(
                WRONG_LENGTH, f"the batch has {len(body)} bytes and must have {expected}: send it whole."
            )
        digest = hashlib.sha256(body).hexdigest()
        known = records.digest(task_id, batch_id)
        if known is None:
            records.add_batch(task_id, batch_id, digest, body)
            return True
        if known != digest:
            raise RefusedError(BATCH_DIFFERS, f"batch {batch_id} was delivered with other bytes: it is kept as it was.")
        return False

    def read(self, records: AnalyzerRecords, task_id: str, batch_id: str, messages: Unpacked) -> list[Release]:
        """Add a batch up, once, and publish every estimate that this makes known."""
        if records.body(task_id, batch_id) is None:
            return []
        size, plan = self.batch_size(task_id, batch_id), self.tasks[task_id].plan
        mechanism = plan.mechanism(size)
        # Where messages carry no labels, one that has a label is another message than the plan's.
        labels = messages.labels if plan.is_labelled or messages.labels.any() else None
        void = False
        try:
            told, dropped = mechanism.read(mechanism.tally(Batch(messages.payloads, size, labels), messages.malformed))
        except BatchError:
            told, dropped, void = plan.learner().stand_in(mechanism), messages.malformed, True
        total = None if told is None else plan.learner().told_document(told)
        records.add_total(task_id, BatchTotal(batch_id, total, dropped, void))
        return self._advance(records, task_id)

    def _advance(self, records: AnalyzerRecords, task_id: str) -> list[Release]:
        """Tell the learner every cohort whose batches are all read, in order."""
        task = self.tasks[task_id]
        learner, routing = task.plan.learner(), task.routing
        stored = records.state(task_id)
        lost = _Lost()
        if stored is None:
            state = learner.start()
        else:
            # Version 0.1.0 had counters only.
            state = learner.resume(stored["learner"] if "learner" in stored else stored["counter"])
            lost = _Lost(stored["dropped"], stored["void"], stored["width"])
        published: list[Release] = []
        while (cohort := learner.ask(state)) is not None:
            # All that closes now ends with the slot that is over when the cohort has come.
            end, _ = routing.schedule.place_of(state.users + cohort.users)
            due = {id_of(level, batch.first_slot, end): batch for level, batch in cohort.closing(cohort.users).items()}
            totals = records.totals(task_id, list(due))
            if not due or len(totals) < len(due):
                break
            if any(total.total is None for total in totals.values()):
                # Nothing stands in for a void batch: this task has no answer.
                break
            closed: dict[int, Any] = {}
            for batch_id, batch in due.items():
                total = totals[batch_id]
                closed[batch.level] = learner.told_from(total.total)
                lost = lost.with_batch(total, learner.widening(batch.mechanism, total.dropped, total.void))
            state = learner.tell(state, cohort.users, closed)
            answer = learner.estimate(state)
            if answer is not None:
                published.append(_release(answer, state.users, lost))
                records.add_release(task_id, published[-1])
        if published:
            records.set_state(task_id, {"learner": state.document(), **asdict(lost)})
        return published


@dataclass(frozen=True, slots=True)
class _Lost:
    """What was lost so far: messages, whole batches, and how much further off that may make an estimate."""

    dropped: int = 0
    void: int = 0
    width: float = 0.0

    def with_batch(self, total: BatchTotal, width: float) -> "_Lost":
        return _Lost(self.dropped + total.dropped, self.void + total.void, self.width + width)


def _release(answer: Any, time: int, lost: _Lost) -> Release:
    """An answer as it is published: a number or a list of them with its error, or an object of another kind."""
    if not isinstance(answer, Estimate | VectorEstimate):
        return Release(time, answer_document(answer), None, None, None, lost.dropped, lost.void)
    value, bound = answer_document(answer.value), answer.bound + lost.width
    return Release(time, value, answer.standard_error, bound, answer.confidence, lost.dropped, lost.void)
