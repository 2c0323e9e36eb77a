"""Tasks that end at an analyzer: what is left of their batches goes; their answers stay until they go, too."""

from dataclasses import replace
from functools import partial

from shuffledp.errors import ParameterError
from shuffledp.service.analyzer.needing import is_over
from shuffledp.service.analyzer.server import loaded
from shuffledp.service.campaign import Campaign
from shuffledp.service.ended import Ended, Purged, today
from shuffledp.service.store.contract import AnalyzerRecords, Store
from shuffledp.service.task import Task


def end_task(store: Store[AnalyzerRecords], task_id: str, *, drop: bool) -> Purged:
    """End a task or a campaign: no batch is taken or read for it any more; its answers can still be asked for.

    Args:
        store: held by nobody else.
        task_id: which.
        drop: delete batches that were not read.

    Returns:
        What was deleted.

    Raises:
        ParameterError: it is not in the store, has ended, or a batch would be lost and that was not allowed.
    """

    def end(records: AnalyzerRecords) -> int:
        text = records.task(task_id)
        if text is None or Ended.of(text) is not None:
            raise ParameterError("task", task_id[:12], "must be a task of this store that goes on", "check the id")
        progress = records.progress(task_id)
        unread = progress.batches_received - progress.batches_read
        if unread and not drop:
            problem = f"must have no batch that waits, not {unread:,} that were not read"
            way_out = "let the analyzer read them, or delete them with --drop"
            raise ParameterError("task", task_id[:12], problem, way_out)
        records.mark_ended(task_id, Ended(today(), text).text)
        return records.drop_unread(task_id)

    count = store.write(end)
    store.forget_deleted()
    return Purged(task_id, {"unread batches": count})


def purge(store: Store[AnalyzerRecords], *, answers: bool) -> list[Purged]:
    """Delete what batches said of every task that has ended, and with `answers` its estimates and models, too.

    Args:
        store: held by nobody else.
        answers: whether nothing is kept but that it was.

    Returns:
        What was deleted, of each.
    """
    done = []
    for task_id, text in store.read(lambda records: records.tasks()).items():
        ended = Ended.of(text)
        if ended is None:
            known = loaded(text)
            if not store.read(partial(_is_over, known)):
                continue
            ended = Ended(today(), text)
        what = store.write(partial(_forget, task_id, ended, answers))
        if any(what.values()) or Ended.of(text) is None:
            done.append(Purged(task_id, what))
    store.forget_deleted()
    return done


def _is_over(known: Task | Campaign, records: AnalyzerRecords) -> bool:
    return is_over(records, known)


def _forget(task_id: str, ended: Ended, answers: bool, records: AnalyzerRecords) -> dict[str, int]:
    kept = replace(ended, task=None) if answers else ended
    records.mark_ended(task_id, kept.text)
    # Nothing waits to be read; a process that was killed may have left pieces of what was.
    records.drop_unread(task_id)
    what = {"batches' totals": records.forget_totals(task_id)}
    return what | ({"answers": records.forget_answers(task_id)} if answers else {})
