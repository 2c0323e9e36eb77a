"""Opening a hop's layer in worker processes that hold its private key; only a hop of a cascade loads this."""

from collections.abc import Sequence
from functools import partial

from shuffledp.service.crypto import binding, open_all
from shuffledp.service.shuffler.layers import Bound, Chunk
from shuffledp.service.wire import OVERHEAD_BYTES
from shuffledp.service.workers import KeyWorkers


def open_layer(bound: Bound, length: int, private_raw: bytes, chunk: bytes) -> Chunk:
    """What is inside ciphertexts of this length that are bound to this; takes raw bytes, as worker processes do."""
    info = binding(*bound)
    inside = open_all(private_raw, [chunk[at : at + length] for at in range(0, len(chunk), length)], info, length)
    bad = [place for place, message in enumerate(inside) if message is None]
    nothing = bytes(length - OVERHEAD_BYTES)
    return b"".join(message or nothing for message in inside), bad


class PeelingWorkers(KeyWorkers):
    r"""Worker processes that hold a hop's private key.

    >>> from contextlib import closing
    >>> from shuffledp.service.crypto import PrivateKey
    >>> key = PrivateKey.generate()
    >>> with closing(PeelingWorkers(key, processes=1)) as workers:
    ...     sealed = key.public.seal([b"one", b"two"], binding("t", "1.0.1", 2))
    ...     workers.open([b"".join(sealed) + bytes(51)], ("t", "1.0.1", 2), 51)
    [(b'onetwo\x00\x00\x00', [2])]
    """

    def open(self, chunks: Sequence[bytes], bound: Bound, length: int) -> list[Chunk]:
        """What is inside each chunk of ciphertexts of this length, which are bound to this.

        Raises:
            ClosedError: it was closed before all were opened.
        """
        return self.map(partial(open_layer, bound, length), chunks)
