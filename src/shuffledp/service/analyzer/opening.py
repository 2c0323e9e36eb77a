"""Opening a batch's ciphertexts in worker processes."""

from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from shuffledp.service.crypto import binding, open_all
from shuffledp.service.wire import CIPHERTEXT_BYTES, Unpacked, unpack_messages
from shuffledp.service.workers import AT_A_TIME, KeyWorkers


def open_chunk(private_raw: bytes, info: bytes, chunk: bytes) -> tuple[bytes, int]:
    """The messages end to end, and how many ciphertexts did not open."""
    sealed = [chunk[start : start + CIPHERTEXT_BYTES] for start in range(0, len(chunk), CIPHERTEXT_BYTES)]
    opened = [message for message in open_all(private_raw, sealed, info) if message is not None]
    return b"".join(opened), len(sealed) - len(opened)


def _open(info: bytes, private_raw: bytes, chunk: bytes) -> tuple[bytes, int]:
    return open_chunk(private_raw, info, chunk)


class Opener(KeyWorkers):
    """Worker processes that have the analyzer's key and are given parts of a batch.

    >>> from contextlib import closing
    >>> from shuffledp.service.crypto import PrivateKey
    >>> key = PrivateKey.generate()
    >>> with closing(Opener(key, processes=1)) as opener:
    ...     sealed = key.public.seal([bytes(16) + bytes([1]) + bytes(4) + (7).to_bytes(8)], binding("t", "1.0.1"))
    ...     opener.open(b"".join(sealed), "t", "1.0.1").payloads.tolist()
    [7]
    """

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch.

        Raises:
            ClosedError: it was closed before all were opened.
        """
        step = AT_A_TIME * CIPHERTEXT_BYTES
        chunks = [body[at : at + step] for at in range(0, len(body), step)]
        return messages_of(self.map(partial(_open, binding(task_id, batch_id)), chunks))

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        """Begin with a piece of a batch: a future of its messages end to end, and of how many did not open.

        The future raises `ClosedError` if it was closed before, and `WorkerLostError` if the worker ended.

        Raises:
            ClosedError: it is closed.
        """
        return self.begin(partial(_open, binding(task_id, batch_id)), body)


def messages_of(parts: list[tuple[bytes, int]]) -> Unpacked:
    """The messages of all chunks; ciphertexts that did not open are malformed messages."""
    unpacked = unpack_messages(b"".join(plain for plain, _ in parts))
    return replace(unpacked, malformed=unpacked.malformed + sum(unopened for _, unopened in parts))
