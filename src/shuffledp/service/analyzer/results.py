"""What is found in one piece of a batch: a tally that adds up, and the ids by which copies are recognised.

    result     length of the header, 4 bytes | header, JSON | counts, compressed | ids of the messages, 16 bytes each

It is the same whoever opened the piece, on whichever machine. A message's id is random and says nothing about anybody.
"""

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from shuffledp.errors import BatchError, DataError
from shuffledp.files import other_version
from shuffledp.messages import Batch
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.service.wire import ID_BYTES, Unpacked, unpack_piece

VERSION = 1
LARGEST_RESULT_BYTES = 64 << 20
"""No result that travels is longer, before or after its counts are compressed."""
_LENGTH = struct.Struct(">I")
_AGAIN = "open the piece again with this version"
_KINDS = {"i": np.dtype("<i8"), "u": np.dtype("<u8")}
# Ids that are looked at together for copies, about.
IDS_TOGETHER = 2 << 20


def tally_of(plan: Plan, users: int, messages: Unpacked, reports: int) -> Tally:
    """The tally of messages of a batch of so many users; one piece of it says how many reports there are.

    Raises:
        BatchError: the batch is spoiled.
    """
    # Where messages carry no labels, one that has a label is another message than the plan's.
    labels = messages.labels if plan.is_labelled or messages.labels.any() else None
    return plan.mechanism(users).tally(Batch(messages.payloads, reports, labels), messages.malformed)


@dataclass(frozen=True, slots=True, eq=False)
class PieceResult:
    """What one piece says.

    Attributes:
        tally: of its messages; None where they spoil the batch.
        malformed: ciphertexts that did not open, copies, and what is no message.
        messages: how many ciphertexts it has.
        ids: of all its messages that are no copies, 16 bytes each.
    """

    tally: Tally | None
    malformed: int
    messages: int
    ids: bytes

    @classmethod
    def of(
        cls, plan: Plan, users: int, plain: bytes, unopened: int, *, is_first: bool, without: bytes = b""
    ) -> "PieceResult":
        """The result of a piece that was opened.

        Args:
            plan: the task's.
            users: how many the batch has.
            plain: its messages end to end.
            unopened: ciphertexts that did not open.
            is_first: whether it is the piece that says how many reports the batch has.
            without: ids of messages that are copies of ones in earlier pieces.
        """
        unpacked, ids = unpack_piece(plain, without)
        unpacked = replace(unpacked, malformed=unpacked.malformed + unopened)
        messages = unpacked.payloads.size + unpacked.fillers + unpacked.malformed
        try:
            tally = tally_of(plan, users, unpacked, users if is_first else 0)
        except BatchError:
            tally = None
        return cls(tally, unpacked.malformed, messages, ids)

    def to_bytes(self) -> bytes:
        """The result as it is kept and as it travels."""
        header: dict[str, Any] = {"version": VERSION, "malformed": self.malformed, "messages": self.messages}
        packed = b""
        if self.tally is not None:
            kind = self.tally.counts.dtype.kind
            packed = zlib.compress(self.tally.counts.astype(_KINDS[kind]).tobytes(), 1)
            shape = list(self.tally.counts.shape)
            numbers = {name: getattr(self.tally, name) for name in ("reports", "messages", "malformed")}
            header["tally"] = {"kind": kind, "shape": shape, "bytes": len(packed), **numbers}
        text = json.dumps(header).encode()
        return _LENGTH.pack(len(text)) + text + packed + self.ids

    @classmethod
    def from_bytes(cls, body: bytes) -> Self:
        """The result that `to_bytes` wrote, perhaps on another machine.

        Raises:
            DataError: it is none, or of another version.
        """
        header, place = _header(body)
        try:
            found, tally, ids = header.get("tally"), None, body[place:]
            if found is not None:
                kind, shape = _KINDS[found["kind"]], [int(each) for each in found["shape"]]
                if min(shape, default=0) < 1 or int(np.prod(shape)) * kind.itemsize > LARGEST_RESULT_BYTES:
                    raise ValueError("no counts")
                raw = zlib.decompressobj().decompress(body[place : place + found["bytes"]], LARGEST_RESULT_BYTES)
                counts = np.frombuffer(raw, dtype=kind).reshape(shape).astype(kind.newbyteorder("="))
                ids = body[place + found["bytes"] :]
                tally = Tally(counts, *(_whole(found[name]) for name in ("reports", "messages", "malformed")))
            if len(ids) % ID_BYTES:
                raise ValueError("half an id")
            return cls(tally, _whole(header["malformed"]), _whole(header["messages"]), ids)
        except (KeyError, TypeError, ValueError, OverflowError, zlib.error, IndexError) as broken:
            raise DataError("result", str(broken), "must be what was found in a piece", _AGAIN) from None

    def check(self, plan: Plan, users: int, messages: int, *, is_first: bool) -> None:
        """Refuse a result that is none of this piece: it may come from another machine.

        Raises:
            DataError: of other counts than the plan's, or of another number of messages.
        """
        ids = len(self.ids) // ID_BYTES
        if self.messages != messages or not messages - ids <= self.malformed <= messages or ids > messages:
            problem = f"must be of the piece's {messages} messages"
            raise DataError("result", f"{self.messages} messages", problem, _AGAIN)
        if self.tally is None:
            return
        nothing = Unpacked(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint32), 0, 0)
        own = tally_of(plan, users, nothing, users if is_first else 0)
        kinds = [(each.counts.shape, each.counts.dtype.kind, each.reports) for each in (own, self.tally)]
        if kinds[0] != kinds[1]:
            raise DataError("result", f"counts of shape {kinds[1][0]}", f"must be as {kinds[0][0]}", _AGAIN)
        # Of messages that were read some may be none of the plan's, which are malformed, too.
        if self.tally.messages > messages - self.malformed or not self.malformed <= self.tally.malformed <= messages:
            found = f"a tally of {self.tally.messages} messages and {self.tally.malformed} malformed ones"
            problem = f"must be of {messages} messages, {self.malformed} of them malformed"
            raise DataError("result", found, problem, _AGAIN)

    def check_without(self, without: bytes) -> None:
        """Refuse a result that counts messages which were to be left out.

        Raises:
            DataError: it does.
        """
        left_out = set(_split(without))
        if left_out and not left_out.isdisjoint(_split(self.ids)):
            raise DataError("result", "copies", "must not count what was to be left out", _AGAIN)


def _split(ids: bytes) -> Iterator[bytes]:
    return (ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES))


def _header(body: bytes) -> tuple[dict[str, Any], int]:
    """The header of a result, and where what follows begins."""
    try:
        (length,) = _LENGTH.unpack_from(body)
        place = _LENGTH.size + length
        header = json.loads(body[_LENGTH.size : place])
        version = header["version"]
    except (struct.error, ValueError, TypeError, KeyError, RecursionError):
        raise DataError("result", "something else", "must be what was found in a piece", _AGAIN) from None
    if version != VERSION:
        raise other_version("result.version", version, VERSION, _AGAIN)
    return dict(header), place


def ids_in(body: bytes) -> bytes:
    """The ids of a result, without reading its counts."""
    header, place = _header(body)
    tally = header.get("tally")
    return body[place + (0 if tally is None else tally["bytes"]) :]


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 1 << 62:
        raise ValueError(f"{number} is no count")
    return number


Ids = Iterable[tuple[int, bytes]]
"""Pieces' numbers, ascending, each with the ids that it has, which are different."""


def copies_among(pieces: Callable[[], Ids], count: int, *, bits: RandomBits) -> dict[int, bytes]:
    """Which ids occur in several pieces: for every piece the ids that an earlier one has, end to end.

    The ids are looked through several times, each time at another part of them, so that memory does not grow with them.
    Which part an id is in is drawn: nobody can choose ids that are all in one.

    Args:
        pieces: what goes through them once more.
        count: how many ids there are.
        bits: where the parts come from.

    >>> first, second = b"a" * 16, b"b" * 16
    >>> copies_among(lambda: [(0, first), (2, second + first), (3, first)], 4, bits=RandomBits.seeded(1))
    {2: b'aaaaaaaaaaaaaaaa', 3: b'aaaaaaaaaaaaaaaa'}
    """
    keys, parts = bits.words(2) | np.uint64(1), max(1, -(-count // IDS_TOGETHER))
    found: dict[int, list[bytes]] = {}
    for part in range(parts):
        for piece, copy in _copies_of_part(pieces(), keys, part, parts):
            found.setdefault(piece, []).append(copy)
    return {piece: b"".join(copies) for piece, copies in sorted(found.items())}


def _copies_of_part(pieces: Ids, keys: Any, part: int, parts: int) -> Iterator[tuple[int, bytes]]:
    """Piece and id of every copy whose hash is in one of so many parts of all hashes."""
    hashes, ids, numbers = [], [], []
    for piece, body in pieces:
        words = np.frombuffer(body, dtype="<u8").reshape(-1, 2)
        mixed = (words[:, 0] * keys[0] + words[:, 1] * keys[1]) >> np.uint64(32)
        mine = np.flatnonzero(mixed * np.uint64(parts) >> np.uint64(32) == part)
        hashes.append(mixed[mine])
        ids.append(words[mine])
        numbers.append(np.full(mine.size, piece, dtype=np.int64))
    if not hashes:
        return
    hashed, words, owners = np.concatenate(hashes), np.concatenate(ids), np.concatenate(numbers)
    order = np.argsort(hashed, kind="stable")
    same = np.flatnonzero(hashed[order[1:]] == hashed[order[:-1]])
    candidates = np.unique(np.concatenate((order[same], order[same + 1])))
    seen: set[bytes] = set()
    # In the order of pieces: the first of each id stays.
    for at in candidates.tolist():
        name = words[at].tobytes()
        if name in seen:
            yield int(owners[at]), name
        seen.add(name)
