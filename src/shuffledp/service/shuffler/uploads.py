"""Uploads that are accepted together: all that have arrived when the store comes to it share a commit."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
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
_MOST_HERE, _MOST_BYTES_HERE = 500, 2 << 20


@dataclass(slots=True, eq=False)
class Accepting:
    """Uploads that share a commit.

    Attributes:
        uploads: whose, in the order of their answers.
        is_done: whether they were accepted or refused; true before the first of them is told.
    """

    uploads: list[Upload] = field(default_factory=list)
    is_done: bool = False

    def tell_all(self, answers: Outcome) -> None:
        """All have the same outcome."""
        self.is_done = True
        for upload in self.uploads:
            _tell(upload, answers)
        self.uploads = []

    def tell_each(self, answers: list[Answer]) -> None:
        """These are the answers to all reports, in the order of the uploads."""
        self.is_done, place = True, 0
        for upload in self.uploads:
            end = place + len(upload[1])
            _tell(upload, answers[place:end])
            place = end
        # Whoever looks whether it is done keeps no report.
        self.uploads = []


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
        # Those that the store has not come to yet.
        self._open: Accepting | None = None

    def accept_all(self, uploads: list[Upload]) -> Accepting:
        """Accept several uploads' reports; each upload's answers are told to its own function after the commit.

        Returns:
            What is done when the commit of these uploads is; those of other threads may share it.
        """
        with self._arriving:
            is_first = self._open is None
            accepting = self._open = self._open or Accepting()
            accepting.uploads += uploads
        if is_first:
            try:
                self._accept_together(accepting, _is_small(uploads))
            except BaseException as failed:
                # Nobody will come for them, and the next must be the first again.
                self._close(accepting)
                accepting.tell_all(failed)
                raise
        return accepting

    def _close(self, accepting: Accepting) -> None:
        """Whoever comes from now on is in another commit."""
        with self._arriving:
            if self._open is accepting:
                self._open = None

    def _accept_together(self, accepting: Accepting, is_small: bool) -> None:
        """Accept all reports that have arrived when the store comes to it; answer after the commit."""

        def accept(records: ShufflerRecords) -> tuple[list[Answer], bool, bool]:
            # A store may run this again if nothing came of the first time.
            self._close(accepting)
            # By task: a stable sort.
            accepting.uploads.sort(key=_task_of)
            answers: list[Answer] = []
            for task_id, uploads in groupby(accepting.uploads, key=_task_of):
                reports = [report for _, some, _ in uploads for report in some]
                try:
                    answers += self._accept(records, task_id, reports)
                except RefusedError as refused:
                    # A task that takes no reports is no reason to refuse another's.
                    answers += [refused] * len(reports)
            return answers, bool(records.full_batches()), records.has_backlog()

        def answer(done: "Future[tuple[list[Answer], bool, bool]]") -> None:
            failed = done.exception()
            if failed is not None:
                # The commit may have ended before it came to this: all that wait are refused.
                self._close(accepting)
                accepting.tell_all(failed)
                return
            answers, fills, has_backlog = done.result()
            accepting.tell_each(answers)
            self._accepted(sum(isinstance(said, Accepted) and said.new for said in answers), fills)
            if has_backlog:
                self._store.submit(lambda records: records.work_off()).add_done_callback(_worked_off)

        submit = self._store.submit_here if is_small else self._store.submit
        submit(accept).add_done_callback(answer)


def _is_small(uploads: list[Upload]) -> bool:
    """Whether these can be accepted in some milliseconds."""
    count = length = 0
    for _, reports, _ in uploads:
        count += len(reports)
        length += sum(len(report.body) for report in reports)
    return count <= _MOST_HERE and length <= _MOST_BYTES_HERE


def _worked_off(done: "Future[None]") -> None:
    """What was put off is put off once more if it cannot be done; a bug among the reasons is told."""
    failed = done.exception()
    if failed is not None and not isinstance(failed, RefusedError):
        log("put off once more", level=40, error=type(failed).__name__)


def _tell(upload: Upload, answers: Outcome) -> None:
    """One who cannot be told does not keep it from the others."""
    try:
        upload[2](answers)
    except Exception as failed:
        log("an answer was lost", level=40, error=type(failed).__name__)
