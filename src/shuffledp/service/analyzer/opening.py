"""Opening a batch's ciphertexts in worker processes: decryption holds the interpreter's lock."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from shuffledp.service.crypto import PrivateKey, binding, open_all
from shuffledp.service.wire import CIPHERTEXT_BYTES, Unpacked, unpack_messages

# Ciphertexts that one process opens at a time: about a tenth of a second.
_AT_A_TIME = 2000

_KEY = b""


def _remember(private_raw: bytes) -> None:
    global _KEY
    _KEY = private_raw


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
        # Not forked: the server has threads.
        self._pool = ProcessPoolExecutor(
            processes or os.cpu_count() or 1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_remember,
            initargs=(key.raw,),
        )

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
        step = _AT_A_TIME * CIPHERTEXT_BYTES
        work = [self._pool.submit(_open_chunk, body[at : at + step], info) for at in range(0, len(body), step)]
        parts = [future.result() for future in work]
        unpacked = unpack_messages(b"".join(plain for plain, _ in parts))
        unopened = sum(failed for _, failed in parts)
        return Unpacked(unpacked.payloads, unpacked.labels, unpacked.fillers, unpacked.malformed + unopened)


def open_here(key: PrivateKey, body: bytes, task_id: str, batch_id: str) -> Unpacked:
    """The same in this process, for tests and small batches."""
    _remember(key.raw)
    plain, unopened = _open_chunk(body, binding(task_id, batch_id))
    unpacked = unpack_messages(plain)
    return Unpacked(unpacked.payloads, unpacked.labels, unpacked.fillers, unpacked.malformed + unopened)
