"""How a piece travels to whoever opens it: a header, ids that are copies of earlier ones, and the ciphertexts.

lease      length of the header, 4 bytes | header, JSON | ids to leave out, 16 bytes each | ciphertexts
"""

import json
import struct
from dataclasses import dataclass
from typing import Any

from shuffledp.errors import DataError
from shuffledp.service.analyzer.openings import OpeningLease, PieceToOpen
from shuffledp.service.wire import CIPHERTEXT_BYTES, ID_BYTES, is_id

VERSION = 1
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class LeasedPiece(PieceToOpen):
    """A piece as an opener gets it.

    Attributes:
        seconds: how long it is this opener's.
        body: its ciphertexts.
    """

    seconds: float
    body: bytes


def pack_lease(lease: OpeningLease, seconds: float, body: bytes) -> bytes:
    """A lease as it travels."""
    header = {
        "version": VERSION,
        **{name: getattr(lease, name) for name in ("lease", "task_id", "batch_id", "users", "piece")},
        "without": len(lease.without) // ID_BYTES,
        "seconds": seconds,
    }
    text = json.dumps(header).encode()
    return _LENGTH.pack(len(text)) + text + lease.without + body


def unpack_lease(packed: bytes) -> LeasedPiece:
    """The piece that an analyzer gave out.

    Raises:
        DataError: it is none, or of another version.

    >>> lease = OpeningLease("0" * 32, "t", "1.0.1", 3, 5, b"", None)
    >>> unpack_lease(pack_lease(lease, 60.0, bytes(77))).piece
    5
    """
    way_out = "use one version of shuffledp on both sides"
    try:
        (length,) = _LENGTH.unpack_from(packed)
        place = _LENGTH.size + length
        header: Any = json.loads(packed[_LENGTH.size : place])
        version = header["version"]
        names: tuple[str, str, str] = (header["lease"], header["task_id"], header["batch_id"])
        counts = [header[name] for name in ("users", "piece", "without")]
        seconds = float(header["seconds"])
    except (struct.error, ValueError, TypeError, KeyError, RecursionError):
        raise DataError("lease", "something else", "must be a piece to open", way_out) from None
    if version != VERSION:
        raise DataError("lease.version", version, f"must be {VERSION}", way_out)
    end = place + counts[2] * ID_BYTES if all(type(count) is int and count >= 0 for count in counts) else -1
    if end < 0 or not is_id(names[0]) or (len(packed) - end) % CIPHERTEXT_BYTES or end >= len(packed):
        raise DataError("lease", "other fields", "must be a piece to open", way_out)
    return LeasedPiece(*names, counts[0], counts[1], packed[place:end], seconds, packed[end:])
