"""Files of a data set as an engine's tasks read them: looked at once each, then read in parts of some rows."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError
from shuffledp.jobs.rows import BYTES, FIXED
from shuffledp.tables.complaints import no_extra
from shuffledp.tables.reading import is_installed

_BATCH_ROWS = 1 << 16
# Pages are read from the disk as they are needed: a group of rows may be larger than memory.
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some rows of a file, one after the other.

    Attributes:
        file: the file's number in the data set.
        path: where it is.
        fingerprint: the SHA-256 of the whole file.
        first_row: the number of the first row in the file.
        groups: the first group of rows of the file in which they are, and the one after the last.
        skipped: how many rows of these groups come before.
        rows: how many rows.
    """

    file: int
    path: str
    fingerprint: bytes
    first_row: int
    groups: tuple[int, int]
    skipped: int
    rows: int


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What was seen of one file.

    Attributes:
        name: relative to the data set's folder.
        path: where it is.
        size: how many bytes it has.
        sha256: of its bytes, in hexadecimal; empty where nobody needs it.
        stamp: number and time of last writing, by which the file system knows it.
        columns: names and kinds of its columns.
        groups: how many rows each group of rows has.
        lengths: of columns of byte strings, the length of those that were seen.
    """

    name: str
    path: str
    size: int
    sha256: str
    stamp: tuple[int, int]
    columns: tuple[tuple[str, str], ...]
    groups: tuple[int, ...]
    lengths: tuple[tuple[str, int], ...]

    def is_unchanged(self) -> bool:
        """Whether the file is still the one that was looked at, as far as the file system knows."""
        try:
            return _stamp(Path(self.path)) == (self.size, self.stamp)
        except FileNotFoundError:
            return False

    def parts(self, number: int, rows: int) -> Iterator[FilePart]:
        """The file in parts: whole groups of rows together up to so many rows, or pieces of a group that has more."""
        fingerprint, begin, first, held = bytes.fromhex(self.sha256), 0, 0, 0
        for group, count in enumerate((*self.groups, 0)):
            is_end = group == len(self.groups)
            if held and (is_end or held + count > rows):
                yield FilePart(number, self.path, fingerprint, first, (begin, group), 0, held)
                first, begin, held = first + held, group, 0
            if count > rows:
                for skipped in range(0, count, rows):
                    taken = min(rows, count - skipped)
                    place = (group, group + 1)
                    yield FilePart(number, self.path, fingerprint, first + skipped, place, skipped, taken)
                first, begin = first + count, group + 1
            else:
                held += count


@dataclass(frozen=True, slots=True)
class Looking:
    """The task that looks at one file of a folder, and takes its fingerprint unless nobody needs it."""

    folder: Path
    fingerprints: bool = True

    def __call__(self, name: str) -> tuple[LookedAt, ...]:
        path = self.folder / name
        before = _stamp(path)
        with opened(str(path)) as parquet:
            schema = parquet.schema_arrow
            columns = tuple((field.name, str(field.type)) for field in schema)
            if len(dict(columns)) < len(columns):
                raise DataError("file", str(path), "must have a name for each column once", "write it again")
            about = parquet.metadata
            groups = tuple(about.row_group(each).num_rows for each in range(about.num_row_groups))
            lengths = tuple(_lengths(parquet, columns))
        digest = ""
        if self.fingerprints:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        if _stamp(path) != before:
            raise DataError("file", str(path), "must not change while a job looks at it", "let it be written whole")
        size, stamp = before
        return (LookedAt(name, str(path), size, digest, stamp, columns, groups, lengths),)


def _stamp(path: Path) -> tuple[int, tuple[int, int]]:
    """A file's size, and by what the file system knows it."""
    now = path.stat()
    return now.st_size, (now.st_ino, now.st_mtime_ns)


def joined(several: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """What several tasks found, one after the other."""
    return tuple(each for one in several for each in one)


def _lengths(parquet: Any, columns: Sequence[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    for name, kind in columns:
        if kind.startswith(FIXED):
            yield name, int(kind.removeprefix(FIXED).rstrip("]"))
        elif kind in BYTES:
            for batch in parquet.iter_batches(batch_size=1, columns=[name], use_threads=False):
                if batch.num_rows:
                    value = batch.column(0)[0].as_py()
                    yield name, -1 if value is None else len(value)
                    break


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A Parquet file, open until the block ends.

    Raises:
        DataError: it is torn, or none, or pyarrow is not installed.
        OSError: the system cannot read it, for now or at all: another try may mend that.
        MemoryError: there is too little for it.
    """
    if not is_installed("pyarrow"):
        raise no_extra("file", path, "pyarrow", "tables", "use the live service")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as parquet:
            yield parquet
    except (pa.ArrowException, OSError) as broken:
        # Of what a file has in it pyarrow says the same with an OSError that has no number.
        number = getattr(broken, "errno", None)
        if number is not None:
            # pyarrow names the file in its words alone.
            raise OSError(number, os.strerror(number), path) from broken
        if isinstance(broken, MemoryError):
            raise
        raise DataError("file", path, "must be a whole and undamaged Parquet file", "write it again") from broken


def columns_of(part: FilePart, names: Sequence[str], batch_rows: int = _BATCH_ROWS) -> Iterator[list[Any]]:
    """The columns of a part, some rows at a time, as arrays of pyarrow's.

    Raises:
        DataError: the file is torn, or has fewer rows than it had.
    """
    skipped, left = part.skipped, part.rows
    with opened(part.path) as parquet:
        groups = range(*part.groups)
        if groups.stop > parquet.num_row_groups:
            raise DataError("file", part.path, "must not change while a job reads it", "run the job again")
        batches = parquet.iter_batches(batch_rows, row_groups=groups, columns=list(names), use_threads=False)
        for batch in batches:
            passed = min(skipped, batch.num_rows)
            skipped -= passed
            taken = min(left, batch.num_rows - passed)
            left -= taken
            if taken:
                yield [batch.column(name).slice(passed, taken) for name in names]
            if not left:
                return
    raise DataError("file", part.path, f"must have the rows that it had, {left:,} more", "run the job again")
