"""Opening a batch's ciphertexts in worker processes: decryption holds the interpreter's lock."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

from shuffledp.service.crypto import PrivateKey, binding, open_all
from shuffledp.service.wire import CIPHERTEXT_BYTES, Unpacked, unpack_messages

# Ciphertexts that one process opens at a time: about a tenth of a second.
_AT_A_TIME = 2000

_KEY = b""


def _remember(private_raw: bytes) -> None:
    global _KEY
    _KEY = private_raw


def _begin(private_raw: bytes) -> None:
    """A worker's first act."""
    _remember(private_raw)
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def _end_with_the_server() -> None:
    """A server that was killed leaves nobody behind who knows the key."""
    server = multiprocessing.parent_process()
    if server is not None:
        server.join()
        os._exit(1)


def _open_chunk(chunk: bytes, info: bytes) -> tuple[bytes, int]:
    """The messages end to end, and how many ciphertexts did not open."""
    sealed = [chunk[start : start + CIPHERTEXT_BYTES] for start in range(0, len(chunk), CIPHERTEXT_BYTES)]
    opened = [message for message in open_all(_KEY, sealed, info) if message is not None]
    return b"".join(opened), len(sealed) - len(opened)


class Opener:
    """Worker processes that hold the analyzer's key.

    >>> key = PrivateKey.generate()
    >>> with Opener(key, processes=1) as opener:
    ...     sealed = key.public.seal([bytes(16) + bytes([1]) + bytes(4) + (7).to_bytes(8)], binding("t", "1.0.1"))
    ...     opener.open(b"".join(sealed), "t", "1.0.1").payloads.tolist()
    [7]
    """

    def __init__(self, key: PrivateKey, *, processes: int | None = None) -> None:
        self._key = key
        self._processes = processes or os.cpu_count() or 1
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Not forked: the server has threads.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._processes, mp_context=context, initializer=_begin, initargs=(self._key.raw,))

    def __enter__(self) -> "Opener":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the workers."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch."""
        info = binding(task_id, batch_id)
        try:
            parts = self._opened(body, info)
        except BrokenProcessPool:
            # A worker was killed, by the system perhaps when memory was short: once more with new ones.
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._start()
            parts = self._opened(body, info)
        return _together(parts)

    def _opened(self, body: bytes, info: bytes) -> list[tuple[bytes, int]]:
        step = _AT_A_TIME * CIPHERTEXT_BYTES
        work = [self._pool.submit(_open_chunk, body[at : at + step], info) for at in range(0, len(body), step)]
        return [future.result() for future in work]


def open_here(key: PrivateKey, body: bytes, task_id: str, batch_id: str) -> Unpacked:
    """All messages of a batch, opened in this process: for tests and small batches."""
    _remember(key.raw)
    return _together([_open_chunk(body, binding(task_id, batch_id))])


def _together(parts: list[tuple[bytes, int]]) -> Unpacked:
    """The messages of all chunks; ciphertexts that did not open are malformed messages."""
    unpacked = unpack_messages(b"".join(plain for plain, _ in parts))
    return replace(unpacked, malformed=unpacked.malformed + sum(unopened for _, unopened in parts))
