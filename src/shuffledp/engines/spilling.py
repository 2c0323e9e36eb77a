"""Rows on their way from parts to buckets, on a disk: encrypted, since they stand in the order in which they came.

A file a part, with its buckets one after the other: a bucket is read from all files in the order of the parts. The key
lives in memory alone and ends with the exchange, so that what a killed process leaves behind says nothing.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from shuffledp.engines.contract import Rows
from shuffledp.errors import DataError, ParameterError


@dataclass(frozen=True, slots=True)
class Spilled:
    """Where the rows of one part are: for each bucket how many, end to end in the order of buckets.

    Attributes:
        part: the number of the part.
        width: bytes a row.
        counts: how many rows went to which bucket.
    """

    part: int
    width: int
    counts: dict[int, int]


def _cipher(key: bytes, part: int, bucket: int) -> Any:
    # 32 bits of blocks are left: 64 GiB of one part in one bucket.
    start = part.to_bytes(8, "big") + bucket.to_bytes(4, "big") + bytes(4)
    return Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()


def _path(folder: Path, part: int) -> Path:
    return folder / f"part-{part}"


def by_bucket(dealt: Iterable[tuple[int, Rows]], buckets: int) -> dict[int, Rows]:
    """What one part deals, by bucket.

    Raises:
        ParameterError: a bucket that is none, or twice, or rows of different widths.
    """
    found: dict[int, Rows] = {}
    for bucket, rows in dealt:
        if not 0 <= bucket < buckets or bucket in found:
            raise ParameterError("bucket", bucket, f"must lie in 0..{buckets - 1} and come once", "deal a part at once")
        found[bucket] = rows
    widths = {rows.shape[1] for rows in found.values()}
    if len(widths) > 1:
        raise ParameterError("rows", sorted(widths), "must be of one width", "pad them")
    return dict(sorted(found.items()))


def spill(folder: Path, key: bytes, part: int, dealt: Iterable[tuple[int, Rows]], buckets: int) -> Spilled:
    """Write what one part deals to its buckets; a task that is run again writes the same over it.

    Raises:
        ParameterError: a bucket that is none, or twice, or rows of different widths.
    """
    rows_of = by_bucket(dealt, buckets)
    writing = _path(folder, part).with_suffix(f".{os.getpid()}")
    with open(writing, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        for bucket, rows in rows_of.items():
            file.write(_cipher(key, part, bucket).update(np.ascontiguousarray(rows).data))
    writing.replace(_path(folder, part))
    width = max((rows.shape[1] for rows in rows_of.values()), default=0)
    return Spilled(part, width, {bucket: len(rows) for bucket, rows in rows_of.items()})


@dataclass(frozen=True, slots=True, eq=False)
class BucketPlaces:
    """Where the rows of one bucket are: of each part that has any, from which byte on, and how many bytes.

    Attributes:
        bucket: the number of the bucket.
        width: bytes a row.
        places: a row a part, ascending: the part, the first byte in its file, and how many bytes.
    """

    bucket: int
    width: int
    places: NDArray[np.int64]


class Places(Sequence[BucketPlaces]):
    """Where the rows of all buckets are; of each it is worked out when it is asked for.

    Args:
        spilled: what was written, in the order of the parts.
        buckets: how many buckets there are.
    """

    def __init__(self, spilled: Sequence[Spilled], buckets: int) -> None:
        self._parts = np.array([each.part for each in spilled], dtype=np.int64)
        self._width = max((each.width for each in spilled), default=0)
        self._lengths = np.zeros((len(spilled), buckets), dtype=np.int64)
        for row, each in zip(self._lengths, spilled, strict=True):
            row[list(each.counts)] = list(each.counts.values())
        self._lengths *= self._width
        self._ends = np.cumsum(self._lengths, axis=1)

    def __len__(self) -> int:
        return self._lengths.shape[1]

    def __getitem__(self, bucket: Any) -> Any:
        lengths, ends = self._lengths[:, bucket], self._ends[:, bucket]
        places = np.stack((self._parts, ends - lengths, lengths), axis=1)
        return BucketPlaces(bucket, self._width, places[lengths > 0])


def gather(folder: Path, key: bytes, where: BucketPlaces) -> Rows:
    """All rows of a bucket, in the order of the parts.

    Raises:
        DataError: a file is shorter than what was written to it.
    """
    flat = np.empty(int(where.places[:, 2].sum()), dtype=np.uint8)
    done = 0
    for part, begin, length in where.places.tolist():
        with _path(folder, part).open("rb") as file:
            file.seek(begin)
            read = file.read(length)
        if len(read) != length:
            raise DataError("spilled rows", len(read), f"must be {length} bytes", "free the disk, and run again")
        _cipher(key, part, where.bucket).update_into(read, flat[done : done + length].data)
        done += length
    return flat.reshape(-1, where.width) if where.width else flat.reshape(0, 0)
