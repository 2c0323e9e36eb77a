"""One thread that writes: it takes all requests that wait and commits them together, so that many share one fsync."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from shuffledp.service.problems import NO_ROOM, RefusedError

R = TypeVar("R")
T = TypeVar("T")

# Requests in one commit: more would only make the first of them wait.
_MOST_TOGETHER = 512

Work = list[tuple[Callable[[R], Any], "Future[Any]"]]
"""Requests that share a commit, each with the future of its answer."""


class GroupCommit(ABC, Generic[R]):
    """The queue in front of a store: requests wait here until the writer comes to them.

    A store derives from it, opens itself, and then calls `_begin`.
    """

    def _begin(self, name: str) -> None:
        """Let the thread of this name take requests from now on."""
        self._waiting: SimpleQueue[tuple[Callable[[R], Any] | None, Future[Any]] | None] = SimpleQueue()
        self._closed, self._closing = False, threading.Lock()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @abstractmethod
    def _commit(self, work: "Work[R]") -> None:
        """Run these requests in one transaction, and resolve their futures when it is durable."""

    @abstractmethod
    def _forget(self) -> None:
        """Make sure that what was deleted is nowhere; in the writer's thread."""

    @abstractmethod
    def _let_go(self) -> None:
        """Give back what the store holds; nothing waits any more."""

    def close(self) -> None:
        """Finish what waits, then let go of the store; a second call does nothing."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._waiting.put(None)
        self._thread.join()
        self._let_go()

    def submit(self, work: Callable[[R], T]) -> "Future[T]":
        """Run this in the next commit; the future has its result once that is on disk."""
        return self._put(work)

    def submit_here(self, work: Callable[[R], T]) -> "Future[T]":
        """As `submit`: the writer waits for another process most of the time, and a loop would wait with it."""
        return self.submit(work)

    def write(self, work: Callable[[R], T]) -> T:
        """Run this in the next commit, and answer what it answers once that is on disk."""
        answer: T = self._put(work).result()
        return answer

    def forget(self) -> None:
        """Make sure that what was deleted is nowhere on disk."""
        self._put(None).result()

    def _put(self, work: Callable[[R], Any] | None) -> "Future[Any]":
        """Let the thread do this work, or forget what was deleted if it is None."""
        future: Future[Any] = Future()
        with self._closing:
            if self._closed:
                future.set_exception(RefusedError(NO_ROOM, "the store is closed: the server is about to stop."))
            else:
                self._waiting.put((work, future))
        return future

    def _run(self) -> None:
        while True:
            batch = [self._waiting.get()]
            while batch[-1] is not None and len(batch) < _MOST_TOGETHER and not self._waiting.empty():
                batch.append(self._waiting.get())
            stop = batch[-1] is None
            # What its caller gave up before it began is not begun; afterwards nobody can cancel it.
            work = [each for each in batch if each is not None and each[1].set_running_or_notify_cancel()]
            requests = [(act, future) for act, future in work if act is not None]
            if requests:
                self._commit(requests)
            for future in [future for act, future in work if act is None]:
                try:
                    self._forget()
                    future.set_result(None)
                except Exception as broken:
                    future.set_exception(broken)
            if stop:
                return
