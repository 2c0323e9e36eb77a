"""What Spark's workers do with a part or a bucket; they import this module, and nothing of pyspark.

Rows travel as one block of bytes for each part and bucket. A part also says what it has dealt, as counts and digests:
whoever gathers a bucket looks whether it is that. A part whose task ran again and dealt otherwise is so found out,
instead of losing some rows and doubling others.
"""

import contextlib
import errno
import hashlib
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines.contract import Gathered, Rows
from shuffledp.engines.spilling import by_bucket
from shuffledp.errors import ParameterError, ShuffleDPError, WorkLostError

Block = tuple[int, int, bytes]
"""Rows of one part in one bucket: the part's number, bytes a row, the rows end to end."""

_SUMS = 1 << 64
# A disk that is full stays full.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class Raised:
    """What a task raised, on its way to whoever asked: Spark would try it again, and hand over a stack of Java's.

    Attributes:
        part: the number of the part or bucket.
        error: what was raised.
        trace: where; empty for what this package raises on purpose.
    """

    part: int
    error: Exception
    trace: str = ""

    @classmethod
    def by(cls, part: int, error: Exception) -> "Raised":
        """Take an error along, or what it says where it cannot be pickled."""
        if isinstance(error, ShuffleDPError):
            return cls(part, error)
        trace = "".join(traceback.format_exception(error))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return cls(part, RuntimeError(f"{type(error).__name__}: {error}"), trace)
        return cls(part, error, trace)

    def again(self) -> Exception:
        """The error, to be raised where it is waited for."""
        if self.trace:
            self.error.add_note(f"In a task of Spark:\n{self.trace}")
        return self.error


def tried(part: int, task: Callable[..., Any], *given: Any, folder: str | None = None) -> Any:
    """What a task answers, or what it raised.

    What another try or another machine may mend, a file that is not there or memory that is short, goes to Spark.

    Args:
        part: the number of the part or bucket.
        task: what is done.
        given: what it is done with.
        folder: where whoever asks is at work, if the task's machine has it: paths mean the same for both.
    """
    try:
        with contextlib.chdir(folder) if folder and Path(folder).is_dir() else contextlib.nullcontext():
            return task(*given)
    except Exception as error:
        if isinstance(error, OSError | MemoryError) and getattr(error, "errno", None) not in _NO_ROOM:
            raise
        return Raised.by(part, error)


@dataclass(frozen=True, slots=True)
class Tallying:
    """Tally the parts of a task, each with its number, and count them."""

    tally: Callable[[Any], Any]
    count: Callable[[int], None]
    folder: str | None = None

    def __call__(self, numbered: Iterable[tuple[int, Any]]) -> Iterator[Any]:
        for number, part in numbered:
            yield tried(number, self.tally, part, folder=self.folder)
            self.count(1)


@dataclass(frozen=True, slots=True)
class Merging:
    """Merge the tallies of a task as they come; an error stands for all of them, that of the first part."""

    merge: Callable[[Iterable[Any]], Any]

    def __call__(self, tallies: Iterable[Any]) -> Iterator[Any]:
        merged: list[Any] = []
        for each in tallies:
            merged = [self.both(merged[0], each)] if merged else [each]
        yield from merged

    def both(self, one: Any, other: Any) -> Any:
        """One tally of two, or the error of the earlier part."""
        raised = [each for each in (one, other) if isinstance(each, Raised)]
        if raised:
            return min(raised, key=lambda each: each.part)
        return tried(0, self.merge, (one, other))


@dataclass(frozen=True, slots=True)
class Numbering:
    """Say for each task's tally which of fewer tasks merges it."""

    groups: int

    def __call__(self, task: int, tallies: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        return ((task % self.groups, each) for each in tallies)


@dataclass(frozen=True, slots=True, eq=False)
class DealtRows:
    """What all parts dealt to each bucket.

    Attributes:
        width: bytes a row; 0 where there is none.
        counts: how many rows.
        sums: the digests of its blocks, added up, so that their order does not matter.
    """

    width: int
    counts: NDArray[np.int64]
    sums: NDArray[np.uint64]

    @staticmethod
    def merge(several: "Iterable[DealtRows]") -> "DealtRows":
        """What all these parts dealt.

        Raises:
            ParameterError: rows of different widths.
        """
        found = list(several)
        widths = {each.width for each in found} - {0}
        if len(widths) > 1:
            raise ParameterError("rows", sorted(widths), "must be of one width", "pad them")
        counts = np.sum([each.counts for each in found], axis=0)
        return DealtRows(max(widths, default=0), counts, np.sum([each.sums for each in found], axis=0, dtype=np.uint64))


def digest(block: Block) -> int:
    """64 bits that tell a block from any other one."""
    part, width, data = block
    if not data:
        return 0
    found = hashlib.sha256(part.to_bytes(8, "big") + width.to_bytes(4, "big"))
    found.update(data)
    return int.from_bytes(found.digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class DealingOut:
    """Deal the parts of a task: a block for each bucket, and behind the last bucket what was dealt."""

    bucket_of: Callable[[Any], Iterable[tuple[int, Rows]]]
    buckets: int
    count: Callable[[int], None]
    folder: str | None = None

    def __call__(self, numbered: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        for number, part in numbered:
            rows = tried(number, self._dealt, part, folder=self.folder)
            if isinstance(rows, Raised):
                yield self.buckets, rows
                continue
            width = max((each.shape[1] for each in rows.values()), default=0)
            dealt = DealtRows(width, np.zeros(self.buckets, dtype=np.int64), np.zeros(self.buckets, dtype=np.uint64))
            for bucket in list(rows):
                each = rows.pop(bucket)
                block = number, width, np.ascontiguousarray(each).tobytes()
                dealt.counts[bucket], dealt.sums[bucket] = len(each), digest(block)
                if block[2]:
                    yield bucket, block
            yield self.buckets, dealt
            self.count(1)

    def _dealt(self, part: Any) -> dict[int, Rows]:
        return by_bucket(self.bucket_of(part), self.buckets)


def without_keys(records: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """What was sent to a task, without where it was sent."""
    return (each for _, each in records)


@dataclass(frozen=True, slots=True)
class Gathering:
    """Put a bucket together in the order of the parts, and tally it; the task behind the last bucket has none."""

    tally: Callable[[Gathered], Any]
    dealt: DealtRows
    count: Callable[[int], None]
    folder: str | None = None

    def __call__(self, bucket: int, records: Iterable[tuple[int, Block]]) -> Iterator[Any]:
        if bucket < len(self.dealt.counts):
            blocks = sorted(without_keys(records), key=lambda block: block[0])
            yield tried(bucket, self._tallied, bucket, blocks, folder=self.folder)
            self.count(1)

    def _tallied(self, bucket: int, blocks: list[Block]) -> Any:
        count, width = int(self.dealt.counts[bucket]), self.dealt.width
        total = sum(map(digest, blocks)) % _SUMS
        length = sum(len(data) for _, _, data in blocks)
        if length != count * width or total != int(self.dealt.sums[bucket]):
            raise WorkLostError(
                f"Bucket {bucket} holds other rows than were dealt to it: a task that was run again has dealt its part "
                "otherwise than before, so that rows are lost or doubled; draw its bits from the job's key and the "
                "part alone. Nothing was released."
            )
        rows = np.empty((count, width), dtype=np.uint8)
        flat, done = rows.reshape(-1), 0
        # Each block goes as soon as it is copied.
        blocks.reverse()
        while blocks:
            data = np.frombuffer(blocks.pop()[2], dtype=np.uint8)
            flat[done : done + len(data)] = data
            done += len(data)
        return self.tally(Gathered(bucket, rows))
