"""What travels: messages of one length, reports, and batches. No message says who sent it, or when.

    message    16 random bytes | 1 if it counts, 0 if it only fills up | label, 4 bytes | payload, 8 bytes
    ciphertext encapsulated key, 32 bytes | the message | tag, 16 bytes
    report     the ciphertexts of the batches that the seat is in, lowest level first
    upload     for each report: its id, 16 bytes | its seat, 16 bytes | length, 4 bytes | the report
    batch      ciphertexts in random order

All numbers are big-endian. A message's own id is inside the ciphertext, for the analyzer's check for copies; the
report's id is outside, for retries, and ends at the shuffler: nothing links the two.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.errors import DataError
from shuffledp.messages import Payloads
from shuffledp.randomness import RandomBits

VERSION = 1
ID_BYTES = 16
_MESSAGE = np.dtype([("id", f"V{ID_BYTES}"), ("counts", "u1"), ("label", ">u4"), ("payload", ">u8")])
MESSAGE_BYTES = _MESSAGE.itemsize
OVERHEAD_BYTES = 48
CIPHERTEXT_BYTES = MESSAGE_BYTES + OVERHEAD_BYTES
MOST_REPORTS_AN_UPLOAD = 1000
# Larger ones than some megabytes are permuted, sent and opened piece by piece (see `delivery`). Up to here that is
# tried: ids of 56 million messages are looked through for copies in about fifteen passes.
LARGEST_BATCH_BYTES = 4 << 30

_ID = re.compile(f"[0-9a-f]{{{2 * ID_BYTES}}}")
_FRAME = struct.Struct(f">{ID_BYTES}s{ID_BYTES}sI")


def new_id(*, bits: RandomBits) -> str:
    """A random id in hexadecimal."""
    return bits.unsigned(ID_BYTES, 8).tobytes().hex()


def new_seat(position: int, *, bits: RandomBits) -> str:
    """A seat's id: its position, which its client learns anyway, and 10 random bytes that nobody can guess.

    >>> position_of(new_seat(42, bits=RandomBits.seeded(1)))
    42
    """
    return f"{position:012x}{bits.unsigned(10, 8).tobytes().hex()}"


def position_of(seat: str) -> int:
    """The position that a seat's id claims."""
    return int(seat[:12], 16)


def is_id(text: Any) -> bool:
    """Whether this is an id as `new_id` makes them."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def pack_messages(payloads: Payloads, labels: Payloads | None, total: int, *, bits: RandomBits) -> list[bytes]:
    """One user's messages about one batch, filled up to `total` with ones that do not count.

    >>> packed = pack_messages(np.array([7], dtype=np.uint8), None, 3, bits=RandomBits.seeded(0))
    >>> len(packed), {len(message) for message in packed}, unpack_messages(b"".join(packed)).payloads.tolist()
    (3, {29}, [7])
    """
    if payloads.size > total:
        raise DataError("messages", payloads.size, f"must be at most {total}", "the plan and the routing disagree")
    rows = np.zeros(total, dtype=_MESSAGE)
    rows["id"] = bits.unsigned(total * ID_BYTES, 8).view(f"V{ID_BYTES}")
    counted = rows[: payloads.size]
    counted["counts"] = 1
    if labels is not None:
        counted["label"] = labels
    counted["payload"] = payloads
    packed: list[bytes] = rows.view(f"V{MESSAGE_BYTES}").tolist()
    return packed


@dataclass(frozen=True, slots=True, eq=False)
class Unpacked:
    """The messages that count, each once; how many only filled up, and how many were copies or nonsense."""

    payloads: Payloads
    labels: Payloads
    fillers: int
    malformed: int


def unpack_messages(plain: bytes) -> Unpacked:
    """Messages end to end, in any order."""
    return unpack_piece(plain)[0]


def unpack_piece(plain: bytes, without: bytes = b"") -> tuple[Unpacked, bytes]:
    """Messages end to end, in any order, of a piece of a batch; and the ids of those that are no copies, end to end.

    Args:
        plain: the messages.
        without: ids of messages that are copies, as other pieces have the originals.
    """
    rows = np.frombuffer(plain, dtype=_MESSAGE)
    # A copy has its original's id: the first of each id stays.
    _, first = np.unique(rows["id"], return_index=True)
    kept = rows[np.sort(first)]
    if without:
        kept = kept[~np.isin(kept["id"], np.frombuffer(without, dtype=f"V{ID_BYTES}"))]
    counted, fillers = kept[kept["counts"] == 1], int(np.count_nonzero(kept["counts"] == 0))
    payloads, labels = counted["payload"].astype(np.uint64), counted["label"].astype(np.uint32)
    return Unpacked(payloads, labels, fillers, len(rows) - len(counted) - fillers), kept["id"].tobytes()


@dataclass(frozen=True, slots=True)
class SignedText:
    """A text that anybody may read, and its signature in base64url."""

    text: str
    signature: str

    def document(self) -> dict[str, str]:
        """Text and signature as JSON."""
        return {"text": self.text, "signature": self.signature}

    @classmethod
    def from_document(cls, document: Any) -> "SignedText":
        """Text and signature, unchecked.

        Raises:
            DataError: it has not both.
        """
        found = (document.get("text"), document.get("signature")) if isinstance(document, dict) else (None, None)
        if not isinstance(found[0], str) or not isinstance(found[1], str):
            raise DataError("model", type(document).__name__, "must be a text and its signature", "fetch it again")
        return cls(found[0], found[1])


@dataclass(frozen=True, slots=True)
class SentReport:
    """A report as it is uploaded: its own id, the seat that it was made for, its ciphertexts."""

    report_id: str
    seat: str
    body: bytes


def pack_upload(reports: list[SentReport]) -> bytes:
    """Several reports in one body."""
    return b"".join(
        _FRAME.pack(bytes.fromhex(report.report_id), bytes.fromhex(report.seat), len(report.body)) + report.body
        for report in reports
    )


def unpack_upload(body: bytes) -> Iterator[SentReport]:
    """The reports of one body, or an error that says where it breaks off.

    >>> sent = [SentReport("00" * 16, "ff" * 16, b"abc")]
    >>> list(unpack_upload(pack_upload(sent))) == sent
    True
    """
    place = 0
    while place < len(body):
        if len(body) - place < _FRAME.size:
            raise DataError("body", f"{len(body)} bytes", f"must not end in a frame at {place}", "send it whole")
        report_id, seat, length = _FRAME.unpack_from(body, place)
        place += _FRAME.size
        if len(body) - place < length:
            raise DataError("body", f"{len(body)} bytes", f"must not end in a report at {place}", "send it whole")
        yield SentReport(report_id.hex(), seat.hex(), body[place : place + length])
        place += length


def single_body(seat: str, body: bytes) -> bytes:
    """The body of one report sent alone: its seat, then its ciphertexts."""
    return bytes.fromhex(seat) + body


def split_single_body(body: bytes) -> tuple[str, bytes]:
    """Seat and ciphertexts of a report that was sent alone."""
    if len(body) < ID_BYTES:
        raise DataError("body", f"{len(body)} bytes", f"must begin with a seat of {ID_BYTES} bytes", "send it whole")
    return body[:ID_BYTES].hex(), body[ID_BYTES:]
