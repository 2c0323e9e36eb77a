"""Work in the background of a server: done when something wakes it, and again and again until it is finished."""

import logging
import threading
from collections.abc import Callable

from shuffledp.service.problems import RefusedError
from shuffledp.service.telemetry import log

# Between tries: doubled up to the second. A wake-up must not turn a server that is down into a busy loop.
_FIRST_WAIT, _LONGEST_WAIT, _PAUSE = 0.2, 10.0, 1.0


class Chores:
    """A thread that calls `work`, which answers whether nothing is left to do.

    >>> done = threading.Event()
    >>> chores = Chores("an example", lambda: not done.set())
    >>> chores.start(); done.wait(5); chores.stop()
    True
    """

    def __init__(self, name: str, work: Callable[[], bool]) -> None:
        self._work = work
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def is_stopping(self) -> bool:
        """Whether work should end as soon as it can."""
        return self._stop.is_set()

    def start(self) -> None:
        """Begin, with what an earlier process left."""
        self._wake.set()
        self._thread.start()

    def wake(self) -> None:
        """There is something to do."""
        self._wake.set()

    def ask_to_stop(self) -> None:
        """End as soon as it can, which is not waited for."""
        self._stop.set()
        self._wake.set()

    def stop(self) -> None:
        """Finish what is at hand."""
        self.ask_to_stop()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait = _FIRST_WAIT
        while not self.is_stopping:
            self._wake.wait(timeout=wait)
            self._wake.clear()
            if self._is_done():
                wait = _LONGEST_WAIT
            else:
                wait = min(2 * wait, _LONGEST_WAIT)
                self._stop.wait(min(wait, _PAUSE))

    def _is_done(self) -> bool:
        try:
            return self._work()
        except RefusedError as refused:
            log("store refused", level=logging.ERROR, detail=refused.detail)
        except Exception as failed:
            log("chore failed", level=logging.ERROR, error=type(failed).__name__)
        return False
