"""Worker processes that hold a private key: decryption holds the interpreter's lock, so that others do it."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from shuffledp.service.crypto import PrivateKey

T = TypeVar("T")
W = TypeVar("W")

# Ciphertexts that one process opens at a time: about a tenth of a second.
AT_A_TIME = 2000

_key = b""
"""The private key, in a worker process."""


class ClosedError(Exception):
    """Not everything was opened, as the server is about to stop."""


class WorkerLostError(Exception):
    """A piece was not opened, as a worker process ended."""


def _begin(private_raw: bytes) -> None:
    """A worker's first act: it is handed the key once, and not with every part of a batch."""
    global _key
    _key = private_raw
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def _end_with_the_server() -> None:
    """A server that was killed leaves nobody behind who knows the key."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _with_key(work: Callable[[bytes, W], T], part: W) -> T:
    return work(_key, part)


class KeyWorkers:
    """Processes that have a key and are given parts of some work.

    Args:
        key: what they are handed when they begin.
        processes: how many; one a core if it is left out.
    """

    def __init__(self, key: "PrivateKey", *, processes: int | None = None) -> None:
        self._key = key
        self._processes = processes or os.cpu_count() or 1
        self._closed = False
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Not forked: the server has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin, initargs=(self._key.raw,))

    def close(self) -> None:
        """Stop the workers after the parts at hand, a fraction of a second each; the rest stays unopened."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, work: Callable[[bytes, W], T], parts: Sequence[W]) -> list[T]:
        """What a function of the module's top level answers for the key and each part, in their order.

        Raises:
            ClosedError: they were closed before all was done.
        """
        try:
            return list(self._pool.map(partial(_with_key, work), parts))
        except (CancelledError, RuntimeError) as ended:
            if self._closed:
                raise ClosedError from ended
            if not isinstance(ended, BrokenProcessPool):
                raise
            # A worker was killed, by the system perhaps when memory was short: once more with new ones.
            self._start_again()
            return list(self._pool.map(partial(_with_key, work), parts))

    def _start_again(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = self._start()

    @property
    def at_once(self) -> int:
        """So many parts that no worker waits for the next."""
        return self._processes + 1

    def begin(self, work: Callable[[bytes, W], T], part: W) -> "Future[T]":
        """Begin with a part: a future of what a function of the module's top level answers for the key and it.

        The future raises `ClosedError` if they were closed before, and `WorkerLostError` if the worker ended.

        Raises:
            ClosedError: they are closed.
        """
        act, done = partial(_with_key, work, part), Future[T]()
        try:
            try:
                under_way = self._pool.submit(act)
            except BrokenProcessPool:
                self._start_again()
                under_way = self._pool.submit(act)
        except RuntimeError as ended:
            raise ClosedError from ended
        under_way.add_done_callback(partial(self._tell, done))
        return done

    def _tell(self, done: "Future[T]", under_way: "Future[T]") -> None:
        failed = CancelledError() if under_way.cancelled() else under_way.exception()
        if failed is None:
            done.set_result(under_way.result())
        elif isinstance(failed, CancelledError | BrokenProcessPool):
            done.set_exception(ClosedError() if self._closed else WorkerLostError())
        else:
            done.set_exception(failed)
