"""A shuffler as a job: a data set in a uniformly random order, with nothing left of the order in which it came.

Every message chooses a bucket, and every bucket is permuted (`shuffledp.shuffle.two_passes`): each order has the same
probability, exactly, and where files end says nothing about it. All choices come from the job's key and from where a
row stands in the data, so that they are the same whoever draws them, and however often. See docs/theory/engines.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines.contract import Engine, Entrusted, Gathered, Rows
from shuffledp.engines.keyed import JobKey
from shuffledp.errors import DataError, ParameterError, TooFewReportsError
from shuffledp.jobs.job import job_at, published_before
from shuffledp.jobs.manifest import DataFile, DataManifest, DataSet
from shuffledp.jobs.parts import FilePart, columns_of, joined
from shuffledp.jobs.rows import RowFormat
from shuffledp.jobs.writing import write_part, written_before
from shuffledp.sampling.uniform import uniform_below
from shuffledp.shuffle.two_passes import buckets_for, dealt_to, permuted_rows

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much."""

RUN_ROWS = 1 << 16
"""Rows of a file whose choices come from one stream of bits: always so many, wherever parts are cut."""
PART_BYTES = 32 << 20
KEPT_FACTS = ("task", "malformed", "fillers", "copies", "batch")
"""What a manifest says of all messages together, whatever their order: all else that it may say is left out."""
_SMALLEST_BUCKET, _LARGEST_BUCKET, _MOST_SMALL = 16 << 20, 64 << 20, 1 << 10
# The rows, their new order, and the file that is made of them.
_COPIES = 4


@dataclass(frozen=True, slots=True)
class Shuffled:
    """What a job has published.

    Attributes:
        manifest: the data set.
        dropped: columns of what was given that no message has: they were not read.
    """

    manifest: DataManifest
    dropped: tuple[str, ...]


def shuffle_files(
    source: Path,
    out: Path,
    *,
    engine: Engine,
    column: str | None = None,
    label: str | None = None,
    reports: int | None = None,
    at_least: int | None = None,
    resume: bool = False,
    key: JobKey | None = None,
    progress: Progress | None = None,
) -> Shuffled:
    """Permute a data set of messages uniformly, whatever its size.

    Args:
        source: a Parquet file, or a folder of them, with a column `ciphertext` of byte strings of one length, or a
            column `payload` of whole numbers and perhaps one of labels, `label`.
        out: a new folder for the permuted messages; it appears whole or not at all.
        engine: what does it.
        column: the column of ciphertexts or numbers, where it has another name.
        label: the column of labels, where it has another name.
        reports: how many reports the messages came in, where no manifest says it.
        at_least: how many reports the messages must have come in: fewer people do not hide each other.
        resume: go on with a job that was stopped.
        key: the job's key, for tests; a new one from the operating system if it is left out.
        progress: told how far it is.

    Returns:
        The manifest of the new data set, and the names of columns that were left out.

    Raises:
        TooFewReportsError: there are fewer reports than there must be; nothing was released.
        ParameterError: the data or the names are not what they must be; nothing was released.
        JobStoppedError: the disk is full; nothing was released, and the job can be resumed.
        WorkLostError: tasks died again and again; nothing was released, and the job can be resumed.
    """
    check_apart(source, out)
    data = DataSet.at(source, engine, column=column, label=label, reports=reports)
    check_enough(data.manifest.reports, at_least)
    _check_sent(data.manifest)
    rows = data.manifest.rows
    size = data.manifest.messages * rows.width
    if not size:
        raise DataError("in", str(source), "must have at least one message", "collect messages first")
    bucket_bytes = bucket_size(size)
    buckets = buckets_for(size, bucket_bytes)
    check_memory(engine, min(size, bucket_bytes))
    about = {"columns": list(data.columns), "buckets": buckets, "reports": data.manifest.reports}
    asked = {"job": "shuffle", "data": data.manifest.fingerprint.hex(), **about}
    if resume and (known := published_before(out, asked)) is not None:
        return Shuffled(known, data.dropped)
    with job_at(out, asked, resume=resume, key=key) as job:
        engine.spill_to(job.spills)
        own = engine.entrust(job.key.raw)
        parts = data.parts(min(PART_BYTES, engine.task_bytes // _COPIES))
        dealing = DealingRows(own, rows, data.columns, buckets)
        told = told_of(progress, "dealing", len(parts))
        with engine.exchange(parts, dealing, buckets, progress=told) as exchanged:
            permuting = PermutingBuckets(own, rows, job.folder, data.manifest.fingerprint)
            told = told_of(progress, "permuting", buckets)
            files = engine.fold(exchanged, permuting, joined, progress=told)
        facts = {name: fact for name, fact in data.manifest.facts.items() if name in KEPT_FACTS}
        manifest = DataManifest(rows, tuple(sorted(files, key=lambda file: file.name)), data.manifest.reports, facts)
        check_nothing_lost(data.manifest.messages, manifest.messages)
        data.check_unchanged()
        job.commit(manifest)
    return Shuffled(manifest, data.dropped)


def check_enough(reports: int | None, at_least: int | None) -> None:
    """Refuse to mix fewer reports than were asked for, or an unknown number of them.

    Raises:
        TooFewReportsError: there are fewer.
        ParameterError: nobody says how many there are.
    """
    if at_least is not None and reports is None:
        problem = "must be given where there must be enough of them, as no manifest says it"
        raise ParameterError("reports", None, problem, "add --reports N")
    if at_least is not None and reports is not None and reports < at_least:
        raise TooFewReportsError(at_least, reports)


def _check_sent(manifest: DataManifest) -> None:
    """Refuse more reports than there are messages to be in them, those that were dropped when they were opened too."""
    sent = manifest.messages + sum(int(manifest.facts.get(name, 0)) for name in ("fillers", "malformed"))
    if manifest.reports is not None and manifest.reports > sent:
        problem = f"must be at most the messages that were sent, {sent:,}"
        way_out = "count them again; where people may send none, say it to batch analyze alone"
        raise ParameterError("reports", f"{manifest.reports:,}", problem, way_out)


def check_apart(source: Path, out: Path) -> None:
    """Refuse an output among the files that are read.

    Raises:
        ParameterError: it is there.
    """
    folder = source.resolve()
    if folder in (out.resolve(), *out.resolve().parents):
        raise ParameterError("out", str(out), f"must not be in {source}, which is read", "name a folder beside it")


def bucket_size(size: int) -> int:
    """How many bytes a bucket has, about, where so many are to be permuted: whoever does it, and with how much memory.

    >>> bucket_size(10**9) >> 20, bucket_size(10**11) >> 20
    (16, 64)
    """
    return min(_LARGEST_BUCKET, max(_SMALLEST_BUCKET, size // _MOST_SMALL))


def check_memory(engine: Engine, bucket: int) -> None:
    """Refuse an engine whose tasks cannot hold a bucket.

    Raises:
        ParameterError: they cannot.
    """
    needed = _COPIES * bucket
    if engine.task_bytes < needed:
        problem = (
            f"must leave each task {needed >> 20} MB for a part of these data, and leaves {engine.task_bytes >> 20}"
        )
        raise ParameterError("memory", engine.name, problem, "give --memory more, or fewer processes")


def check_nothing_lost(given: int, found: int) -> None:
    """Refuse to publish another number of messages than there were.

    Raises:
        DataError: it is another.
    """
    if given != found:
        raise DataError("messages", f"{found:,}", f"must be all {given:,}", "run the job again: nothing was released")


def told_of(progress: Progress | None, what: str, total: int) -> Callable[[int], None] | None:
    """What an engine calls with the number of parts that are done."""
    return None if progress is None else lambda done: progress(what, done, total)


def chosen_buckets(key: JobKey, part: FilePart, buckets: int) -> NDArray[Any]:
    """The bucket of each row of a part: uniform, independent of everything else, and the same in whichever part."""
    first, end = part.first_row, part.first_row + part.rows
    runs = range(first // RUN_ROWS * RUN_ROWS, end, RUN_ROWS)
    streams = (key.bits("deal", part.file, part.fingerprint, run) for run in runs)
    # A whole run is drawn, as some rows of it may be in another part.
    drawn = np.concatenate([uniform_below(buckets, RUN_ROWS, bits=bits) for bits in streams])
    return drawn[first - runs.start : end - runs.start]


def read_rows(part: FilePart, rows_format: RowFormat, columns: Sequence[str]) -> Rows:
    """The messages of a part, a row each."""
    rows = np.empty((part.rows, rows_format.width), dtype=np.uint8)
    done = 0
    for some in columns_of(part, columns):
        packed = rows_format.packed(some)
        rows[done : done + len(packed)] = packed
        done += len(packed)
    return rows


@dataclass(frozen=True, slots=True)
class DealingRows:
    """Pass 1, the task of a part: every message to its bucket."""

    key: Entrusted
    rows_format: RowFormat
    columns: tuple[str, ...]
    buckets: int

    def __call__(self, part: FilePart) -> list[tuple[int, Rows]]:
        rows = read_rows(part, self.rows_format, self.columns)
        chosen = chosen_buckets(JobKey(self.key.open(), is_secure=True), part, self.buckets)
        return dealt_to(rows, chosen, self.buckets)


@dataclass(frozen=True, slots=True)
class PermutingBuckets:
    """Pass 2, the task of a bucket: its messages in random order, in a file of their own."""

    key: Entrusted
    rows_format: RowFormat
    folder: Path
    fingerprint: bytes

    def __call__(self, gathered: Gathered) -> tuple[DataFile, ...]:
        name, rows = part_name(gathered.bucket), gathered.rows.reshape(-1, self.rows_format.width)
        known = written_before(self.folder, name)
        if known is not None:
            check_nothing_lost(len(rows), known.rows)
            return (known,)
        bits = JobKey(self.key.open(), is_secure=True).bits("permute", gathered.bucket, self.fingerprint, 0)
        return (write_part(self.folder, name, self.rows_format, permuted_rows(rows, bits=bits)),)


def part_name(bucket: int) -> str:
    """The file of a bucket."""
    return f"part-{bucket:06}.parquet"
