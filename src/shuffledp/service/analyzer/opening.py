"""Opening a batch's ciphertexts in worker processes: decryption holds the interpreter's lock."""

import multiprocessing
import os
import threading
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial

from shuffledp.service.crypto import PrivateKey, binding, open_all
from shuffledp.service.wire import CIPHERTEXT_BYTES, Unpacked, unpack_messages


class ClosedError(Exception):
    """A batch was not opened whole, as the server is about to stop."""


class WorkerLostError(Exception):
    """A piece was not opened, as a worker process ended."""


# Ciphertexts that one process opens at a time: about a tenth of a second.
_AT_A_TIME = 2000


_key = b""
"""The analyzer's private key, in a worker process."""


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


def open_chunk(private_raw: bytes, info: bytes, chunk: bytes) -> tuple[bytes, int]:
    """The messages end to end, and how many ciphertexts did not open."""
    sealed = [chunk[start : start + CIPHERTEXT_BYTES] for start in range(0, len(chunk), CIPHERTEXT_BYTES)]
    opened = [message for message in open_all(private_raw, sealed, info) if message is not None]
    return b"".join(opened), len(sealed) - len(opened)


def _open_here(info: bytes, chunk: bytes) -> tuple[bytes, int]:
    return open_chunk(_key, info, chunk)


class Opener:
    """Worker processes that have the analyzer's key and are given parts of a batch.

    >>> key = PrivateKey.generate()
    >>> from contextlib import closing
    >>> with closing(Opener(key, processes=1)) as opener:
    ...     sealed = key.public.seal([bytes(16) + bytes([1]) + bytes(4) + (7).to_bytes(8)], binding("t", "1.0.1"))
    ...     opener.open(b"".join(sealed), "t", "1.0.1").payloads.tolist()
    [7]
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
        """Stop the workers after the parts at hand, a fraction of a second each; the batch stays unopened."""
        self._closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch.

        Raises:
            ClosedError: it was closed before all were opened.
        """
        info = binding(task_id, batch_id)
        try:
            parts = self._opened(body, info)
        except (CancelledError, RuntimeError) as ended:
            if self._closed:
                raise ClosedError from ended
            if not isinstance(ended, BrokenProcessPool):
                raise
            # A worker was killed, by the system perhaps when memory was short: once more with new ones.
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._start()
            parts = self._opened(body, info)
        return messages_of(parts)

    @property
    def at_once(self) -> int:
        """So many pieces that no worker waits for the next."""
        return self._processes + 1

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        """Begin with a piece of a batch: a future of its messages end to end, and of how many did not open.

        The future raises `ClosedError` if it was closed before, and `WorkerLostError` if the worker ended.

        Raises:
            ClosedError: it is closed.
        """
        act, opened = partial(_open_here, binding(task_id, batch_id), body), Future[tuple[bytes, int]]()
        try:
            try:
                work = self._pool.submit(act)
            except BrokenProcessPool:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = self._start()
                work = self._pool.submit(act)
        except RuntimeError as ended:
            raise ClosedError from ended
        work.add_done_callback(partial(self._tell, opened))
        return opened

    def _tell(self, opened: "Future[tuple[bytes, int]]", work: "Future[tuple[bytes, int]]") -> None:
        failed = CancelledError() if work.cancelled() else work.exception()
        if failed is None:
            opened.set_result(work.result())
        elif isinstance(failed, CancelledError | BrokenProcessPool):
            opened.set_exception(ClosedError() if self._closed else WorkerLostError())
        else:
            opened.set_exception(failed)

    def _opened(self, body: bytes, info: bytes) -> list[tuple[bytes, int]]:
        step = _AT_A_TIME * CIPHERTEXT_BYTES
        chunks = [body[at : at + step] for at in range(0, len(body), step)]
        return list(self._pool.map(partial(_open_here, info), chunks))


def messages_of(parts: list[tuple[bytes, int]]) -> Unpacked:
    """The messages of all chunks; ciphertexts that did not open are malformed messages."""
    unpacked = unpack_messages(b"".join(plain for plain, _ in parts))
    return replace(unpacked, malformed=unpacked.malformed + sum(unopened for _, unopened in parts))
