"""What has been aggregated and what is released: no network, no database.

Every method runs inside one transaction of the records it is given. A batch is kept once (a second delivery must be
the same bytes), read once (its total appears and its ciphertexts vanish in one step), and told to the counter in
the schedule's order, whatever the order in which batches arrive.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.continual.counter import Counter, CounterState
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import BatchError
from shuffledp.messages import Batch
from shuffledp.protocols.plan import Plan
from shuffledp.schedules.joined import joined_batches
from shuffledp.service.analyzer.records import BatchTotal, Records, Release
from shuffledp.service.problems import BATCH_DIFFERS, BATCH_UNKNOWN, TASK_UNKNOWN, WRONG_LENGTH, RefusedError
from shuffledp.service.routing import batch_id as id_of
from shuffledp.service.task import Task
from shuffledp.service.wire import Unpacked


@dataclass(frozen=True)
class Desk:
    """The analyzer's rules."""

    tasks: Mapping[str, Task]

    def task(self, task_id: str) -> Task:
        """The task, or a refusal."""
        found = self.tasks.get(task_id)
        if found is None:
            raise RefusedError(TASK_UNKNOWN, f"task {task_id[:12]} is not served here: check the task's file.")
        return found

    def batch_bytes(self, task_id: str, batch_id: str) -> int:
        """How long a batch of a task must be, or a refusal."""
        routing = self.task(task_id).routing
        place = routing.find(batch_id)
        if place is None:
            raise RefusedError(
                BATCH_UNKNOWN, f"the task's schedule has no batch {batch_id[:40]}: check the task's file."
            )
        return routing.batch_bytes((place[2] - place[1]) * routing.slot_users)

    def deliver(self, records: Records, task_id: str, batch_id: str, body: bytes) -> bool:
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

    def read(self, records: Records, task_id: str, batch_id: str, messages: Unpacked) -> list[Release]:
        """Add a batch up, once, and publish every estimate that this makes known."""
        if records.body(task_id, batch_id) is None:
            return []
        task = self.task(task_id)
        plan = task.plan
        if isinstance(plan, CounterPlan):
            records.add_total(task_id, _counted(task, plan, batch_id, messages))
            return self._advance(records, task_id, plan)
        return self._single(records, task_id, plan, batch_id, messages)

    def _single(self, records: Records, task_id: str, plan: Plan, batch_id: str, messages: Unpacked) -> list[Release]:
        """A task of one round: the estimate is the batch's."""
        batch = Batch(messages.payloads, plan.users, messages.labels if plan.is_labelled else None)
        try:
            estimate = plan.learner().plan.analyze(batch)
        except BatchError:
            records.add_total(task_id, BatchTotal(batch_id, None, messages.malformed, True))
            return []
        # Where a plan cannot know how many messages there were, those that did not open are what is missing.
        more = max(0, messages.malformed - estimate.dropped)
        value = np.asarray(estimate.value).tolist()
        records.add_total(task_id, BatchTotal(batch_id, value, estimate.dropped + more, False))
        release = Release(
            time=plan.users,
            estimate=value,
            standard_error=estimate.standard_error,
            bound=estimate.bound + more * plan.message_influence,
            confidence=estimate.confidence,
            dropped=estimate.dropped + more,
            void=0,
        )
        records.add_release(task_id, release)
        return [release]

    def _advance(self, records: Records, task_id: str, plan: CounterPlan) -> list[Release]:
        """Tell the counter every slot whose batches are all read, in order."""
        counter = Counter(plan)
        stored = records.state(task_id)
        state = counter.start() if stored is None else CounterState.from_document(stored["counter"])
        dropped, void, width = (0, 0, 0.0) if stored is None else (stored["dropped"], stored["void"], stored["width"])
        published = []
        while state.users + plan.slot_users <= plan.users:
            slot = state.users // plan.slot_users
            due = [
                (level, id_of(level, first, end), (end - first) * plan.slot_users)
                for level, first, end in joined_batches(plan.schedule, slot, every_slot=plan.estimator == "combined")
                if end == slot + 1
            ]
            totals = records.totals(task_id, [batch_id for _, batch_id, _ in due])
            if len(totals) < len(due) or not due:
                break
            closed: dict[int, Any] = {}
            for level, batch_id, size in due:
                total = totals[batch_id]
                closed[level] = _as_total(total.total)
                dropped += total.dropped
                void += total.void
                # Each message that is missing moves a sum by a step; a void batch counts as its middle, rounded.
                halves = size * plan.domain.reach + plan.domain.step / 2
                width += plan.domain.step * total.dropped + (halves if total.void else 0.0)
            state = counter.tell(state, plan.slot_users, closed)
            estimate = counter.estimate(state)
            published.append(
                Release(
                    time=state.users,
                    estimate=np.asarray(estimate.value).tolist(),
                    standard_error=estimate.standard_error,
                    bound=estimate.bound + width,
                    confidence=estimate.confidence,
                    dropped=dropped,
                    void=void,
                )
            )
            records.add_release(task_id, published[-1])
        if published:
            kept = {"counter": state.document(), "dropped": dropped, "void": void, "width": width}
            records.set_state(task_id, kept)
        return published


def _counted(task: Task, plan: CounterPlan, batch_id: str, messages: Unpacked) -> BatchTotal:
    """What a batch of a running sum says; a batch that says nothing counts as its middle, and is void."""
    place = task.routing.find(batch_id)
    if place is None:
        raise RefusedError(BATCH_UNKNOWN, f"the task's schedule has no batch {batch_id}: check the task's file.")
    size = (place[2] - place[1]) * plan.slot_users
    mechanism = plan.mechanism(size)
    labels = messages.labels if plan.domain.coordinates > 1 or messages.labels.any() else None
    try:
        total, dropped = mechanism.read(mechanism.tally(Batch(messages.payloads, size, labels)))
    except BatchError:
        middle = round(size * plan.domain.middle / plan.domain.step)
        total = middle if plan.domain.coordinates == 1 else [middle] * plan.domain.coordinates
        return BatchTotal(batch_id, total, messages.malformed, True)
    # A lost message and a filler that counts may hide each other: what did not open is missing in any case.
    return BatchTotal(batch_id, np.asarray(total).tolist(), max(dropped, messages.malformed), False)


def _as_total(stored: Any) -> Any:
    return np.array(stored, dtype=np.int64) if isinstance(stored, list) else int(stored)
