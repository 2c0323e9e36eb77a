"""Taking a hop's layer off every message of a batch.

A message that does not open, or is a copy of another one in the batch, gives way to random bytes that are drawn anew,
as many as are inside of the others: the count stays, the batch is not held up, and nothing of it goes on but that there
is one message fewer. The next hop cannot open such bytes either and draws its own, and the analyzer counts a malformed
message, without knowing at which hop it was lost. A copy would mark its original: whoever sent both could look for what
comes out twice.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shuffledp.randomness import RandomBits
from shuffledp.service.wire import OVERHEAD_BYTES
from shuffledp.service.workers import AT_A_TIME

if TYPE_CHECKING:
    from shuffledp.service.crypto import PublicKey

_NAME_BYTES = 16

Chunk = tuple[bytes, list[int]]
"""What is inside some ciphertexts, end to end, with zeros where one did not open; and the places of those."""

Bound = tuple[str, str, int]
"""What a layer is bound to: the task, the batch, and the number of its hop."""


class Peeling(Protocol):
    """What takes a layer off: worker processes, or this one in tests."""

    def open(self, chunks: Sequence[bytes], bound: Bound, length: int) -> list[Chunk]:
        """What is inside each chunk of ciphertexts of this length, which are bound to this."""

    def close(self) -> None:
        """Let go of what it holds."""


@dataclass(frozen=True, slots=True)
class Peeled:
    """A batch without a hop's layer, in the order in which it came.

    Attributes:
        body: its messages, end to end.
        unopened: how many did not open and were replaced.
        copies: how many were copies of another message of the batch and were replaced.
    """

    body: bytes
    unopened: int = 0
    copies: int = 0


@dataclass(frozen=True)
class Layer:
    """A hop's own layer: which hop it is, the public key that people seal it for, and what opens it.

    Attributes:
        hop: its number, from 1.
        key: what tasks must name as this hop's key.
        opener: holds the private key.
    """

    hop: int
    key: "PublicKey"
    opener: Peeling

    def peel(
        self,
        body: bytes,
        task_id: str,
        batch_id: str,
        length: int,
        *,
        bits: RandomBits,
        suspects: "Suspects | None" = None,
    ) -> Peeled:
        """Messages of a batch without this layer.

        Args:
            body: ciphertexts of this length, end to end: all of the batch, or some.
            task_id: what the layer is bound to.
            batch_id: what the layer is bound to.
            length: of a ciphertext when it comes here.
            bits: what messages that give way are replaced with.
            suspects: where they are some, what finds copies of others.
        """
        step = AT_A_TIME * length
        chunks = [body[at : at + step] for at in range(0, len(body), step)]
        opened = self.opener.open(chunks, (task_id, batch_id, self.hop), length)
        bad = [place + number * AT_A_TIME for number, (_, some) in enumerate(opened) for place in some]
        copied = copies_in(body, length) if suspects is None else suspects.copies_in(body, length)
        copies = np.setdiff1d(copied, bad)
        inside = length - OVERHEAD_BYTES
        rows = np.frombuffer(b"".join(chunk for chunk, _ in opened), dtype=np.uint8).reshape(-1, inside)
        gone = np.concatenate([np.asarray(bad, dtype=np.int64), copies])
        if gone.size:
            rows = rows.copy()
            rows[gone] = bits.unsigned(gone.size * inside, 8).reshape(-1, inside)
        return Peeled(rows.tobytes(), len(bad), int(copies.size))


def copies_in(body: bytes, length: int) -> NDArray[np.int64]:
    """The places of ciphertexts that came before in the same body, byte for byte.

    HPKE seals whatever is around a key into the ciphertext: nobody who cannot open one can make another of the same
    message, so that copies are what is equal.

    >>> copies_in(b"abcabcxyzabc", 3).tolist()
    [1, 3]
    """
    rows = np.frombuffer(body, dtype=f"V{length}")
    _, first = np.unique(rows, return_index=True)
    is_copy = np.ones(len(rows), dtype=bool)
    is_copy[first] = False
    return np.flatnonzero(is_copy)


class Suspects:
    """What finds copies in a batch that is looked at part by part: first all of it with `look`, then with `copies_in`.

    It remembers eight bytes of every message, a hash under a key that nobody can know; and then of every hash that
    several messages have, 25 bytes. A batch has as many messages as its task says, n of them, or it is refused: a hop
    before this one that doubles everything makes it remember n / 2 such hashes, 12.5 n bytes, and nothing more.

    Args:
        bits: where the key comes from.

    >>> suspects = Suspects(bits=RandomBits.seeded(1))
    >>> for part in (b"abcxyz", b"uvwabc"): suspects.look(part, 3)
    >>> suspects.copies_in(b"abcxyz", 3).tolist(), suspects.copies_in(b"uvwabc", 3).tolist()
    ([], [1])
    """

    def __init__(self, *, bits: RandomBits) -> None:
        self._key = bits.unsigned(32, 8).tobytes()
        self._seen_hashes: list[NDArray[np.uint64]] = []
        self._repeated: NDArray[np.uint64] | None = None
        # Of each hash that several messages have: the name of the first of them, once it was met. Names that are others
        # under the same hash are by chance, of one in 2^64 pairs.
        self._is_met, self._names = np.zeros(0, dtype=bool), np.zeros((0, _NAME_BYTES), dtype=np.uint8)
        self._others: set[bytes] = set()

    def look(self, body: bytes, length: int) -> None:
        """Some messages of the batch, each once."""
        self._seen_hashes.append(self._hashes(body, length))

    def copies_in(self, body: bytes, length: int) -> NDArray[np.int64]:
        """The places of messages in this part that came before in it, or in a part that was asked for before."""
        if self._repeated is None:
            hashes = np.sort(np.concatenate(self._seen_hashes)) if self._seen_hashes else np.empty(0, dtype=np.uint64)
            self._repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
            self._is_met = np.zeros(self._repeated.size, dtype=bool)
            self._names = np.zeros((self._repeated.size, _NAME_BYTES), dtype=np.uint8)
            self._seen_hashes.clear()
        hashes = self._hashes(body, length)
        places = np.flatnonzero(np.isin(hashes, self._repeated))
        numbers = np.searchsorted(self._repeated, hashes[places])
        names = (self._digest(body[at * length : (at + 1) * length], _NAME_BYTES) for at in places.tolist())
        rows = zip(places.tolist(), numbers.tolist(), names, strict=True)
        return np.array([place for place, number, name in rows if self._was_met(number, name)], dtype=np.int64)

    def _was_met(self, number: int, name: bytes) -> bool:
        """Whether a message of this name was met before, under the hash of this number; from now on it was."""
        if not self._is_met[number]:
            self._is_met[number], self._names[number] = True, np.frombuffer(name, dtype=np.uint8)
            return False
        if self._names[number].tobytes() == name or name in self._others:
            return True
        self._others.add(name)
        return False

    def _hashes(self, body: bytes, length: int) -> NDArray[np.uint64]:
        rows = memoryview(body)
        hashed = b"".join(self._digest(rows[at : at + length], 8) for at in range(0, len(body), length))
        return np.frombuffer(hashed, dtype=np.uint64)

    def _digest(self, message: bytes | memoryview, size: int) -> bytes:
        return hashlib.blake2b(message, digest_size=size, key=self._key).digest()
