"""Worker processes that hold a private key: decryption holds the interpreter's lock, so that others do it."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TypeVar

from shuffledp.service.crypto import PrivateKey

T = TypeVar("T")
W = TypeVar("W")

# Ciphertexts that one process opens at a time: about a tenth of a second.
AT_A_TIME = 2000

_key = b""
"""The private key, in a worker process."""


class ClosedError(Exception):
    """Not everything was opened, as the server is about to stop."""


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

    def __init__(self, key: PrivateKey, *, processes: int | None = None) -> None:
        self._key = key
        self._processes = processes or os.cpu_count() or 1
        self._closed = False
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Not forked: the server has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin, initargs=(self._key.raw,))

    def close(self) -> None:
        """Stop the workers after the parts at hand, a fraction of a second each."""
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
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._start()
            return list(self._pool.map(partial(_with_key, work), parts))
