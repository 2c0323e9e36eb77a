"""The analyzer's first half as a job: ciphertexts are opened, copies dropped, and the messages that count written.

A message's own id is inside its ciphertext. Opened messages meet by a hash of it, so that of each id exactly one is
kept over the whole data set, whichever files its copies are in.
"""

from pathlib import Path

import numpy as np

from shuffledp.engines.contract import Engine
from shuffledp.engines.keyed import JobKey
from shuffledp.errors import DataError, ParameterError, TooFewReportsError
from shuffledp.jobs.batches import OneBatch, binding_of, key_of
from shuffledp.jobs.job import job_at, published_before
from shuffledp.jobs.manifest import DataManifest, DataSet
from shuffledp.jobs.rows import CiphertextRows
from shuffledp.jobs.shuffling import (
    Progress,
    bucket_size,
    check_apart,
    check_memory,
    check_nothing_lost,
    told_of,
)
from shuffledp.jobs.unsealing import OPENED, ROW_BYTES, DroppingCopies, OpenedCounts, OpeningPart, added_up
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES
from shuffledp.shuffle.two_passes import buckets_for

# Parts are small where there are few messages, so that every core has some, and few where there are many.
_LEAST_PART, _MOST_PART, _PARTS = 1 << 12, 1 << 17, 256


def open_files(
    source: Path,
    out: Path,
    *,
    task: Task,
    keys: tuple[PrivateKey, ...],
    engine: Engine,
    column: str | None = None,
    resume: bool = False,
    key: JobKey | None = None,
    progress: Progress | None = None,
) -> DataManifest:
    """Open the ciphertexts of a task's people, and write the messages that count.

    Args:
        source: a Parquet file, or a folder of them, with a column `ciphertext`.
        out: a new folder for the messages; it appears whole or not at all.
        task: what the people were asked.
        keys: the analyzer's keys, of which one is the task's.
        engine: what does it.
        column: the column of ciphertexts, where it has another name.
        resume: go on with a job that was stopped.
        key: the job's key, for tests; a new one from the operating system if it is left out.
        progress: told how far it is.

    Returns:
        The manifest of the messages: its facts say how many were malformed.

    Raises:
        TooFewReportsError: there are fewer reports than the plan's users, or more of them do not open, say nothing or
            are copies than its honest fraction allows.
        ParameterError: the data are not what they must be. Nothing was released.
        JobStoppedError: the disk is full; nothing was released, and the job can be resumed.
    """
    info, own_key, batch = binding_of(task), key_of(task, keys), OneBatch.of(task.plan)
    check_apart(source, out)
    data = DataSet.at(source, engine, column=column)
    if data.manifest.rows != CiphertextRows(CIPHERTEXT_BYTES):
        problem = f"must be ciphertexts of {CIPHERTEXT_BYTES} bytes, as devices seal them"
        raise DataError("in", str(source), problem, "collect what devices send, unchanged")
    given = data.manifest.messages
    if given < batch.size:
        raise TooFewReportsError(batch.users, given // batch.messages)
    size = given * ROW_BYTES
    bucket_bytes = bucket_size(size)
    buckets = buckets_for(size, bucket_bytes)
    check_memory(engine, min(size, bucket_bytes))
    about = {"columns": list(data.columns), "task": task.id, "buckets": buckets}
    asked = {"job": "open", "data": data.manifest.fingerprint.hex(), **about}
    if resume and (known := published_before(out, asked)) is not None:
        return known
    with job_at(out, asked, resume=resume, key=key) as job:
        engine.spill_to(job.spills)
        rows = min(_MOST_PART, max(_LEAST_PART, given // _PARTS))
        parts = data.parts(rows * CIPHERTEXT_BYTES)
        hashing = job.key.bits("ids", 0, data.manifest.fingerprint, 0).words(2) | np.uint64(1)
        secrets = engine.entrust(own_key.raw), engine.entrust(hashing.tobytes())
        dealing = OpeningPart(*secrets, info, data.columns, buckets)
        told = told_of(progress, "opening", len(parts))
        with engine.exchange(parts, dealing, buckets, progress=told) as exchanged:
            told = told_of(progress, "dropping copies", buckets)
            found = engine.fold(exchanged, DroppingCopies(job.folder), added_up, progress=told)
        check_nothing_lost(given, found.all)
        facts = {"task": task.id, **_checked(batch, found), "batch": found.batch}
        data.check_unchanged()
        files = tuple(sorted(found.files, key=lambda file: file.name))
        manifest = DataManifest(OPENED, files, batch.users, facts)
        job.commit(manifest)
    return manifest


def _checked(batch: OneBatch, found: OpenedCounts) -> dict[str, int]:
    """How many messages are malformed, beside which copies; a data set that lacks people is refused."""
    different = found.all - found.copies
    if different > batch.size:
        problem = f"must be the plan's {batch.users:,}, of {batch.messages:,} messages each"
        way_out = "cut the data at that number, and leave the others to another task"
        raise ParameterError("reports", f"{different:,} messages", problem, way_out)
    # What does not open, says nothing or is a copy brings no noise: how few people's may be missing, the plan says.
    malformed = batch.size - found.counted - found.fillers
    batch.check_missing(malformed, f"{malformed:,} messages do not open, say nothing or are copies of others")
    return {"malformed": malformed, "fillers": found.fillers, "copies": found.copies}
