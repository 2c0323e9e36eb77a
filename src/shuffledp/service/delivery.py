"""How a batch that is too large for one body travels: piece by piece, then a manifest that makes it received.

    piece      whole ciphertexts, about a megabyte; durable before it is acknowledged; sent again it is the same bytes
    manifest   how many pieces and bytes, the SHA-256 of all bytes, and the SHA-256 over the pieces' own SHA-256s

The receiver keeps pieces in any order, each once. The manifest is checked against what it has: then, and not before, in
one step, the batch is there. These are the rules of both sides; they know no network and no database.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol, Self

from shuffledp.service.problems import BAD_REQUEST, BATCH_DIFFERS, PIECES_MISSING, WRONG_LENGTH, RefusedError

VERSION = 1
# A batch that is no longer than this travels in one body.
WHOLE_BATCH_BYTES = 16 << 20
LARGEST_PIECE_BYTES, LARGEST_MANIFEST_BYTES = 1 << 20, 4096
# Of the largest batch there are a tenth as many; a receiver keeps a list of them in memory.
MOST_PIECES = 1 << 16
# What older senders send in one body; no longer one is read into memory.
LARGEST_WHOLE_BYTES = 256 << 20
_SHA256 = 64


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a batch in pieces must be.

    Attributes:
        pieces: how many there are, numbered from 0.
        bytes: how many bytes they have together.
        digest: the SHA-256 of all bytes, by which the batch is known however it travelled.
        checks: the SHA-256 over the SHA-256s of the pieces in their order, which the receiver compares with its own.

    >>> sending = Sending()
    >>> sending.add(b"one"); sending.add(b"two")
    >>> manifest = sending.manifest()
    >>> manifest.pieces, manifest.bytes, Manifest.from_text(manifest.text) == manifest
    (2, 6, True)
    """

    pieces: int
    bytes: int
    digest: str
    checks: str

    @property
    def text(self) -> str:
        """The manifest as JSON."""
        return json.dumps({"version": VERSION, **asdict(self)})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The manifest that a sender wrote.

        Raises:
            RefusedError: it is none, or of another version.
        """
        try:
            document: Any = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or document.get("version") != VERSION:
            raise RefusedError(BAD_REQUEST, f"a manifest is a JSON object of version {VERSION}: use one version.")
        counts: Any
        digests: Any
        counts, digests = (
            (document.get("pieces"), document.get("bytes")),
            (document.get("digest"), document.get("checks")),
        )
        whole = all(type(count) is int and 1 <= count < 1 << 50 for count in counts)
        if not whole or not all(isinstance(each, str) and len(each) == _SHA256 for each in digests):
            raise RefusedError(BAD_REQUEST, "a manifest has pieces, bytes, digest and checks: send all of them.")
        return cls(*counts, *digests)


class Sending:
    """What a sender knows of a batch of which it has sent some pieces, in their order."""

    def __init__(self) -> None:
        self._pieces = self._bytes = 0
        self._whole, self._checks = hashlib.sha256(), hashlib.sha256()

    def add(self, piece: bytes) -> None:
        """The next piece."""
        self._whole.update(piece)
        self._checks.update(hashlib.sha256(piece).digest())
        self._pieces, self._bytes = self._pieces + 1, self._bytes + len(piece)

    def manifest(self) -> Manifest:
        """The manifest of all pieces so far."""
        return Manifest(self._pieces, self._bytes, self._whole.hexdigest(), self._checks.hexdigest())


def recut(bodies: Iterable[bytes], unit: int) -> Iterator[bytes]:
    """Bodies end to end, cut so that each holds whole messages of `unit` bytes; the same cuts every time.

    >>> list(recut([b"abc", b"defg", b"hi"], 2))
    [b'ab', b'cdef', b'gh', b'i']
    """
    left = b""
    for body in bodies:
        joined = left + body if left else body
        end = len(joined) - len(joined) % unit
        if end:
            yield joined if end == len(joined) else joined[:end]
        left = joined[end:]
    if left:
        yield left


def check_same(batch_id: str, known: str, digest: str) -> None:
    """Refuse a batch that was delivered before with other bytes.

    Raises:
        RefusedError: the SHA-256 that is known of it is another.
    """
    if known != digest:
        raise RefusedError(BATCH_DIFFERS, f"batch {batch_id} was delivered with other bytes: it is kept as it was.")


class IncomingRecords(Protocol):
    """A receiver's batches in pieces inside one transaction."""

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        """How many bytes of a batch have come in pieces so far."""

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        """The SHA-256 of a piece that has come; None if it has not."""

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        """Number and SHA-256 of all pieces that have come, in the order of their numbers."""

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        """Keep a new piece."""


def take_piece(
    records: IncomingRecords, task_id: str, batch_id: str, number: int, body: bytes, *, expected: int, unit: int
) -> bool:
    """Keep a piece of a batch that is not received yet; False if it was kept before.

    Args:
        records: the receiver's.
        task_id: the task.
        batch_id: the batch.
        number: the piece's, from 0.
        body: its bytes.
        expected: how many bytes the whole batch has.
        unit: how long a ciphertext is.

    Raises:
        RefusedError: no whole ciphertexts, more bytes than the batch has, too many pieces, or other bytes under a known
            number.
    """
    if not body or len(body) % unit:
        raise RefusedError(WRONG_LENGTH, f"a piece has whole ciphertexts of {unit} bytes, not {len(body)} bytes.")
    digest, known = hashlib.sha256(body).hexdigest(), records.incoming_digest(task_id, batch_id, number)
    if known is not None:
        if known != digest:
            words = f"piece {number} of batch {batch_id} was delivered with other bytes: it is kept as it was."
            raise RefusedError(BATCH_DIFFERS, words)
        return False
    if number >= MOST_PIECES:
        words = f"a batch has at most {MOST_PIECES:,} pieces, and this is number {number}: send larger ones."
        raise RefusedError(WRONG_LENGTH, words)
    if number >= expected // unit or records.incoming_bytes(task_id, batch_id) + len(body) > expected:
        words = f"batch {batch_id} must have {expected} bytes, and with piece {number} it has more: send it as it is."
        raise RefusedError(WRONG_LENGTH, words)
    records.add_incoming(task_id, batch_id, number, digest, body)
    return True


def check_manifest(records: IncomingRecords, task_id: str, batch_id: str, manifest: Manifest, *, expected: int) -> None:
    """Refuse a manifest of other pieces than those that have come, or of a batch of another length.

    Raises:
        RefusedError: another length, a piece that has not come (`pieces-missing`: send all again), or other pieces.
    """
    if manifest.bytes != expected:
        words = f"the batch has {manifest.bytes} bytes and must have {expected}: send it whole."
        raise RefusedError(WRONG_LENGTH, words)
    found = records.incoming_digests(task_id, batch_id)
    there = records.incoming_bytes(task_id, batch_id)
    is_whole = len(found) == manifest.pieces and [number for number, _ in found] == list(range(len(found)))
    if not is_whole or there != expected:
        words = f"{len(found)} pieces of {there} bytes are here, not {manifest.pieces} of {expected}: send them again."
        raise RefusedError(PIECES_MISSING, words)
    checks = hashlib.sha256(b"".join(bytes.fromhex(digest) for _, digest in found)).hexdigest()
    if checks != manifest.checks:
        raise RefusedError(BATCH_DIFFERS, f"the pieces of batch {batch_id} are others than the manifest's.")
