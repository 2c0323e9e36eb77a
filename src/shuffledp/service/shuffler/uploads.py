"""Uploads that are accepted together: all that have arrived when the store comes to it share a commit."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from shuffledp.service.problems import RefusedError
from shuffledp.service.shuffler.commits import ShufflerStore
from shuffledp.service.shuffler.desk import Accepted
from shuffledp.service.store.contract import ShufflerRecords
from shuffledp.service.telemetry import log
from shuffledp.service.wire import SentReport

Answer = Accepted | RefusedError
Outcome = list[Answer] | BaseException
"""What became of an upload's reports, or why nothing did."""

Answered = Callable[[Outcome], None]
"""Is told an upload's outcome, in the store's own thread."""

Upload = tuple[str, list[SentReport], Answered]
_task_of = itemgetter(0)
# An event loop that accepts more at once itself would keep others waiting.
_MOST_HERE = 500

Accepting = Future[tuple[list[Answer], bool]]
"""Is done when uploads are accepted, or refused."""


class Accept(Protocol):
    """Accepts reports of one task inside a transaction."""

    def __call__(self, records: ShufflerRecords, task_id: str, reports: list[SentReport]) -> list[Answer]:
        """What becomes of each report, in their order."""


class Uploads:
    """What takes one process's uploads to its store.

    Args:
        store: where reports are kept.
        accept: what decides about the reports of one task.
        accepted: told after every commit how many reports were new, and whether a batch is full.
    """

    def __init__(self, store: ShufflerStore, accept: Accept, accepted: Callable[[int, bool], None]) -> None:
        self._store, self._accept, self._accepted = store, accept, accepted
        self._arriving = threading.Lock()
        self._arrived: list[Upload] = []
        self._accepting: Accepting = Future()

    def accept_all(self, uploads: list[Upload]) -> Accepting:
        """Accept several uploads' reports; each upload's answers are told to its own function after the commit.

        Returns:
            What is done when the commit of these uploads is.
        """
        with self._arriving:
            is_first = not self._arrived
            self._arrived += uploads
        if is_first:
            try:
                self._accepting = self._accept_together(sum(len(reports) for _, reports, _ in uploads))
            except BaseException as failed:
                # Nobody will come for them, and the next must be the first again.
                _tell_all(self._take(), failed)
                raise
        return self._accepting

    def _take(self) -> list[Upload]:
        with self._arriving:
            taken, self._arrived = self._arrived, []
        return taken

    def _accept_together(self, count: int) -> Accepting:
        """Accept all reports, about so many, that have arrived when the store comes to it; answer after the commit."""
        taken: list[Upload] = []

        def accept(records: ShufflerRecords) -> tuple[list[Answer], bool]:
            # By task: a stable sort, so that the answers are in the order of `taken`. A store may run this again if
            # nothing came of the first time: those that were taken then are still there.
            taken[:] = sorted([*taken, *self._take()], key=_task_of)
            answers: list[Answer] = []
            for task_id, uploads in groupby(taken, key=_task_of):
                answers += self._accept(records, task_id, [report for _, some, _ in uploads for report in some])
            return answers, bool(records.full_batches())

        def answer(done: Accepting) -> None:
            failed = done.exception()
            if failed is not None:
                # If the commit ended before it came to this, all that wait are refused; the next is the first again.
                _tell_all(taken or self._take(), failed)
                return
            answers, fills = done.result()
            place = 0
            for upload in taken:
                end = place + len(upload[1])
                _tell(upload, answers[place:end])
                place = end
            self._accepted(sum(isinstance(said, Accepted) and said.new for said in answers), fills)

        submit = self._store.submit_here if count <= _MOST_HERE else self._store.submit
        accepting = submit(accept)
        accepting.add_done_callback(answer)
        return accepting


def _tell_all(uploads: list[Upload], answers: Outcome) -> None:
    for upload in uploads:
        _tell(upload, answers)


def _tell(upload: Upload, answers: Outcome) -> None:
    """One who cannot be told does not keep it from the others."""
    try:
        upload[2](answers)
    except Exception as failed:
        log("an answer was lost", level=40, error=type(failed).__name__)
