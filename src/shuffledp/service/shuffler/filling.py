"""How full a task's open batches are, in tenths and late: for whoever watches a task and must not see people come.

The exact numbers stay here. What is answered is of the last point of a grid on the clock, however often and whenever
somebody asks, rounded down to steps of ten people or more. Nothing is looked up for a task that nobody asks about.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from shuffledp.service.fill import EVERY_SECONDS, FULL, Fill
from shuffledp.service.problems import WRONG_HOP, RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.store.contract import BatchFill, ShufflerRecords, Store
from shuffledp.service.telemetry import log

LEAST_PEOPLE = 10
"""No step is of fewer people."""
MOST_WATCHED = 64
"""Tasks and rounds that are looked at: of more, those that were asked about longest ago are not."""

_STEPS = (10, 5, 2)
# A task that nobody has asked about for so many points is not looked at any more.
_KEPT_POINTS = 6
# After the point, and never before it.
_LATER_SECONDS = 0.01

Tenths = tuple[int, ...]


def tenths(reports: int, size: int) -> int:
    """How full a batch is in tenths, rounded down; in larger steps where a tenth would be fewer than ten people.

    Args:
        reports: that are in it.
        size: how many it needs.

    >>> [tenths(reports, 100) for reports in (0, 9, 10, 49, 99, 100)]
    [0, 0, 1, 4, 9, 10]
    >>> [tenths(reports, 50) for reports in (9, 10, 49)], [tenths(reports, 20) for reports in (9, 10, 19)]
    ([0, 2, 8], [0, 5, 5])
    >>> tenths(18, 19), tenths(19, 19)
    (0, 10)
    """
    if reports >= size:
        return FULL
    steps = next((each for each in _STEPS if size >= each * LEAST_PEOPLE), 1)
    return reports * steps // size * (FULL // steps)


def tenths_by_level(routing: Routing, batches: Iterable[BatchFill]) -> Tenths:
    """For every level, lowest first: how full the newest of its open batches is; 0 where none is open.

    Args:
        routing: of the task.
        batches: its open ones.
    """
    newest: dict[int, tuple[int, int]] = {}
    for each in batches:
        place = routing.find(each.batch_id)
        if place is not None:
            level, first, _ = place
            newest[level] = max(newest.get(level, (-1, 0)), (first, tenths(each.reports, each.size)))
    return tuple(newest.get(level, (-1, 0))[1] for level in range(1, len(routing.sizes_by_level) + 1))


class Fills:
    """What was known of tasks' open batches at the last point of the grid.

    Args:
        store: where batches are.
        routings: what is known of each task, by its id.
        clock: the seconds since the epoch, whose multiples of `EVERY_SECONDS` are the grid.
    """

    def __init__(
        self, store: Store[ShufflerRecords], routings: Mapping[str, Routing], clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._routings, self._clock = store, routings, clock
        self._asked: dict[str, int] = {}
        self._known: dict[str, Tenths] = {}
        self._renewed = self._point()
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    def of(self, task_id: str) -> Fill:
        """A task's fill, or a round's: of every level a number, or None before the next point of the grid.

        Raises:
            RefusedError: this is a later hop of a cascade, whose batches come whole (`hop-wrong`).
        """
        routing = self._routings[task_id]
        if routing.hop > 1:
            words = f"this is hop {routing.hop} of {routing.hops}, to which batches come when they are full"
            raise RefusedError(WRONG_HOP, f"{words}: ask hop 1.")
        return Fill(self._asked_about(task_id) or (None,) * len(routing.sizes_by_level))

    def _asked_about(self, task_id: str) -> Tenths | None:
        """What was known at the last point of the grid; None if nobody had asked by then: it is known at the next."""
        with self._lock:
            # Asked last stands last.
            self._asked.pop(task_id, None)
            self._asked[task_id] = self._point()
            for oldest in list(self._asked)[:-MOST_WATCHED]:
                self._forget(oldest)
            return self._known.get(task_id)

    def renew(self) -> None:
        """Look at what somebody has asked about lately; nothing happens a second time at one point of the grid."""
        with self._lock:
            point = self._point()
            if point == self._renewed:
                return
            self._renewed = point
            for task_id in [each for each, last in self._asked.items() if point - last > _KEPT_POINTS]:
                self._forget(task_id)
            watched = list(self._asked)
        for task_id in watched:
            found = self._look(task_id)
            with self._lock:
                if found is None or task_id not in self._asked:
                    self._known.pop(task_id, None)
                else:
                    self._known[task_id] = found

    def _look(self, task_id: str) -> Tenths | None:
        try:
            batches = self._store.read(lambda records: records.open_batches(task_id))
            return tenths_by_level(self._routings[task_id], batches)
        except Exception as failed:
            log("fill not known", level=logging.WARNING, error=type(failed).__name__)
            return None

    def _forget(self, task_id: str) -> None:
        self._asked.pop(task_id, None)
        self._known.pop(task_id, None)

    def _point(self) -> int:
        return math.floor(self._clock() / EVERY_SECONDS)

    def start(self) -> None:
        """Look at every point of the grid from now on."""
        self._thread = threading.Thread(target=self._run, name="fill", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_SECONDS - self._clock() % EVERY_SECONDS + _LATER_SECONDS):
            self.renew()
