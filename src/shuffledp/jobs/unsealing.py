"""The tasks of `shuffledp.jobs.opening`, which need little to be started: a part is opened, a bucket rid of copies."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines.contract import Entrusted, Gathered, Rows
from shuffledp.jobs.manifest import DataFile
from shuffledp.jobs.parts import FilePart
from shuffledp.jobs.rows import CiphertextRows, MessageRows
from shuffledp.jobs.shuffling import check_nothing_lost, part_name, read_rows
from shuffledp.jobs.writing import write_part, written_before
from shuffledp.service.crypto import open_all
from shuffledp.service.wire import CIPHERTEXT_BYTES, ID_BYTES, MESSAGE_BYTES, unpack_piece
from shuffledp.shuffle.two_passes import dealt_to

OPENED = MessageRows("u8", "u4")
"""What is written of a message: its payload and its label."""
_TIMES_BYTES = 4
ROW_BYTES = 1 + MESSAGE_BYTES + _TIMES_BYTES
"""Whether it opened, what is in it, and how often it was in its part."""
_NAMED = slice(0, 1 + ID_BYTES)
_ID = slice(1, 1 + ID_BYTES)
_CONTENT = slice(1, 1 + MESSAGE_BYTES)
_TIMES = slice(1 + MESSAGE_BYTES, ROW_BYTES)


@dataclass(frozen=True, slots=True)
class OpenedCounts:
    """What became of the ciphertexts of a bucket, or of all of them.

    Attributes:
        files: what was written.
        counted: messages that count.
        fillers: messages that only fill up.
        copies: messages whose id another has, and ciphertexts that do not open and are the same bytes as another.
        nonsense: messages that are none of this wire.
        unopened: ciphertexts that did not open.
        low_ids: the first halves of the ids of all messages that are no copies, added up.
        high_ids: the second halves.
    """

    files: tuple[DataFile, ...] = ()
    counted: int = 0
    fillers: int = 0
    copies: int = 0
    nonsense: int = 0
    unopened: int = 0
    low_ids: int = 0
    high_ids: int = 0

    @property
    def all(self) -> int:
        """How many ciphertexts there were."""
        return self.counted + self.fillers + self.copies + self.nonsense + self.unopened

    @property
    def batch(self) -> str:
        """What tells these messages from any others, in whichever order: the sum of ids, which devices draw at random.

        It is no cryptographic digest: whoever chooses ids can choose it.

        >>> OpenedCounts(low_ids=(1 << 64) + 5, high_ids=1).batch
        '00000000000000010000000000000005'
        """
        return f"{self.high_ids % (1 << 64):016x}{self.low_ids % (1 << 64):016x}"


def added_up(several: Iterable[OpenedCounts]) -> OpenedCounts:
    """The counts of several buckets together."""
    given = list(several)
    files = tuple(file for each in given for file in each.files)
    numbers = [field.name for field in fields(OpenedCounts) if field.name != "files"]
    return OpenedCounts(files, **{name: sum(getattr(each, name) for each in given) for name in numbers})


@dataclass(frozen=True, slots=True)
class OpeningPart:
    """The task of a part: its ciphertexts opened, rid of copies, and dealt by a hash of their ids.

    However often one message is there, it is once in what a part hands on: its bucket stays small.
    """

    private: Entrusted
    hashing: Entrusted
    info: bytes
    columns: tuple[str, ...]
    buckets: int

    def __call__(self, part: FilePart) -> list[tuple[int, Rows]]:
        sealed = read_rows(part, CiphertextRows(CIPHERTEXT_BYTES), self.columns)
        plain = open_all(self.private.open(), [each.tobytes() for each in sealed], self.info)
        rows = np.zeros((len(sealed), ROW_BYTES), dtype=np.uint8)
        opened = np.array([message is not None for message in plain], dtype=np.bool_)
        rows[:, 0] = opened
        content = b"".join(message for message in plain if message is not None)
        rows[opened, _CONTENT] = np.frombuffer(content, dtype=np.uint8).reshape(-1, MESSAGE_BYTES)
        # What did not open has no id: its bytes stand for it.
        digests = b"".join(hashlib.sha256(each.tobytes()).digest()[:ID_BYTES] for each in sealed[~opened])
        rows[~opened, _ID] = np.frombuffer(digests, dtype=np.uint8).reshape(-1, ID_BYTES)
        first, times = _first_of_each(rows)
        rows = rows[first]
        rows[:, _TIMES] = times.astype("<u4").view(np.uint8).reshape(-1, _TIMES_BYTES)
        return dealt_to(rows, self._bucket_of(rows[:, _ID]), self.buckets)

    def _bucket_of(self, ids: Rows) -> NDArray[Any]:
        """By two keys that nobody knows: nobody can choose ids that all meet in one bucket."""
        keys = np.frombuffer(self.hashing.open(), dtype=np.uint64)
        words = np.ascontiguousarray(ids).view("<u8")
        mixed = (words[:, 0] * keys[0] + words[:, 1] * keys[1]) >> np.uint64(32)
        chosen: NDArray[Any] = mixed * np.uint64(self.buckets) >> np.uint64(32)
        return chosen.astype(np.int64)


def _first_of_each(rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each id is first, in the order of the rows, and how often it is there."""
    names = np.ascontiguousarray(rows[:, _NAMED]).view(f"V{_NAMED.stop}").ravel()
    _, first, times = np.unique(names, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], times[order]


@dataclass(frozen=True, slots=True)
class DroppingCopies:
    """The task of a bucket: of each id the first message, and of these the ones that count, in a file of their own."""

    folder: Path

    def __call__(self, gathered: Gathered) -> OpenedCounts:
        name, rows = part_name(gathered.bucket), gathered.rows.reshape(-1, ROW_BYTES)
        given = int(np.ascontiguousarray(rows[:, _TIMES]).view("<u4").sum(dtype=np.int64))
        rows = rows[_first_of_each(rows)[0]]
        opened = np.ascontiguousarray(rows[rows[:, 0] == 1, _CONTENT])
        # In the order of their ids, which are random: the order in which ciphertexts came ends here.
        ids = np.ascontiguousarray(opened[:, :ID_BYTES]).view(f"V{ID_BYTES}").ravel()
        unpacked, kept = unpack_piece(opened[np.argsort(ids, kind="stable")].tobytes())
        halves = np.frombuffer(kept, dtype="<u8").reshape(-1, 2).sum(axis=0, dtype=np.uint64)
        known = written_before(self.folder, name)
        if known is None:
            known = write_part(self.folder, name, OPENED, OPENED.joined(unpacked.payloads, unpacked.labels))
        check_nothing_lost(unpacked.payloads.size, known.rows)
        copies, unopened = given - len(rows), len(rows) - len(opened)
        numbers = (known.rows, unpacked.fillers, copies, unpacked.malformed, unopened)
        return OpenedCounts((known,), *numbers, int(halves[0]), int(halves[1]))
