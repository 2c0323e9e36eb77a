"""Tasks that end at a shuffler: what is left of them goes, but for the knowledge that they were."""

import json
from functools import partial

from shuffledp.errors import ParameterError
from shuffledp.service.ended import Ended, Purged, today
from shuffledp.service.rounds import RoundsRouting, routing_from
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.commits import abandon, claim, counts_of
from shuffledp.service.shuffler.commits import purge as purge_batch
from shuffledp.service.store.contract import Counts, ShufflerRecords, Store


def _own(records: ShufflerRecords, task_id: str) -> dict[str, Routing | RoundsRouting]:
    """A task, or a campaign and its rounds, by their ids; those that have ended are left out."""
    texts = {
        name: text
        for name, text in records.tasks().items()
        if name.partition(".")[0] == task_id and Ended.of(text) is None
    }
    return {name: routing_from(json.loads(text)) for name, text in texts.items()}


def is_over(routing: Routing | RoundsRouting, counts: Counts) -> bool:
    """Whether everybody has reported and the next hop has every batch; of a campaign nobody here knows.

    A later hop of a cascade sees no reports, and counts the batches that it has sent on.

    >>> routing = Routing(users=5, budget=1, shufflers=1, slot_users=5, every_slot=False, messages={5: 2}, layers=2)
    >>> is_over(routing, Counts(5, 0, 5, 0, 0, 1)), is_over(routing, Counts(5, 0, 5, 0, 1, 0))
    (True, False)
    >>> is_over(routing.at_hop(2), Counts(0, 0, 0, 0, 0, 1)), is_over(routing.at_hop(2), Counts(0, 0, 0, 0, 0, 0))
    (True, False)
    """
    if isinstance(routing, RoundsRouting) or counts.batches_open or counts.batches_waiting or counts.leases:
        return False
    if routing.hop == 1:
        return counts.reports == routing.users
    return counts.batches_sent == routing.batches


def end_task(store: Store[ShufflerRecords], task_id: str, *, drop: bool) -> Purged:
    """End a task, or a campaign with all its rounds: nobody is seated or heard for it any more, for good.

    Args:
        store: held by nobody else.
        task_id: which.
        drop: delete reports that wait in batches which are not full, and batches that are not sent.

    Returns:
        What was deleted.

    Raises:
        ParameterError: it is not in the store, has ended, or reports would be lost and that was not allowed.
    """
    own = store.read(lambda records: _own(records, task_id))
    if not own:
        raise ParameterError("task", task_id[:12], "must be a task of this store that goes on", "check the id")
    counts = {name: counts_of(store, name) for name in own}
    waiting = sum(each.batches_waiting for each in counts.values())
    open_ones = sum(each.batches_open for each in counts.values())
    if (waiting or open_ones) and not drop:
        problem = (
            f"must have nothing that waits, not {waiting:,} batches to be sent and {open_ones:,} that are not full"
        )
        way_out = "let the shuffler send them first, or delete them with --drop"
        raise ParameterError("task", task_id[:12], problem, way_out)
    for name, routing in own.items():
        if isinstance(routing, Routing):
            abandon(store, name, routing.users)
            _drop_waiting(store, name)
    for name in own:
        # First the word that it has ended: a device that asks again must not be told that it never reported.
        store.write(partial(_mark, name))
    ids = sum(_forget(store, name) for name in own)
    store.forget_deleted()
    return Purged(task_id, {"reports' ids": ids, "open batches": open_ones, "unsent batches": waiting})


def purge(store: Store[ShufflerRecords]) -> list[Purged]:
    """Forget the ids of reports of every task, and of every round, whose batches have all left.

    Args:
        store: held by nobody else.

    Returns:
        What was deleted, of each.
    """
    done = []
    known = store.read(lambda records: records.tasks())
    for name, text in known.items():
        if Ended.of(text) is not None:
            continue
        if is_over(routing_from(json.loads(text)), counts_of(store, name)):
            store.write(partial(_mark, name))
            done.append(Purged(name, {"reports' ids": _forget(store, name)}))
    for name, text in known.items():
        if Ended.of(text) is not None and (count := _forget(store, name)):
            # A process that was killed between the two has left some.
            done.append(Purged(name, {"reports' ids": count}))
    store.forget_deleted()
    return done


def _drop_waiting(store: Store[ShufflerRecords], task_id: str) -> None:
    for list_them in (lambda records: records.waiting(), lambda records: records.unpurged()):
        for owner, batch_id in store.read(list_them):
            if owner == task_id:
                if not claim(store, owner, batch_id):
                    problem = "must be free: a process that is gone has claimed it for another moment"
                    raise ParameterError("batch", batch_id, problem, "try again in a minute")
                purge_batch(store, owner, batch_id)


def _forget(store: Store[ShufflerRecords], task_id: str) -> int:
    count = 0
    while gone := store.write(partial(_forget_some, task_id)):
        count += gone
    return count


def _forget_some(task_id: str, records: ShufflerRecords) -> int:
    return records.forget_ids(task_id)


def _mark(task_id: str, records: ShufflerRecords) -> None:
    records.mark_ended(task_id, Ended(today()).text)
