"""How sealed messages get into files: what a device makes for a task without a live service, and a writer of Parquet.

A team that has a pipeline of its own needs `sealed_report` on its devices and any way to write byte strings of one
length into a column `ciphertext`; what stands beside it in the files is not read by any job.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import DataError, ParameterError
from shuffledp.jobs.batches import binding_of
from shuffledp.jobs.job import job_at
from shuffledp.jobs.manifest import DataFile, DataManifest
from shuffledp.jobs.rows import CiphertextRows
from shuffledp.jobs.writing import write_part
from shuffledp.randomness import RandomBits
from shuffledp.service.client.making import make_reports
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES


def sealed_reports(task: Task, values: Any, *, bits: RandomBits) -> list[bytes]:
    """For each person's value the report that their device sends: ciphertexts of one length, end to end.

    Args:
        task: what is asked, of a plan with one batch.
        values: an entry or a row a person, as people have them; on a device there is one.
        bits: where noise comes from; must be secure.

    Returns:
        A report for each value: its ciphertexts, end to end.

    Raises:
        ParameterError: a value outside the plan's domain, or a task that jobs cannot do.

    >>> from shuffledp import BinarySum, Privacy
    >>> from shuffledp.service.crypto import PrivateKey
    >>> plan = BinarySum.plan(users=100, privacy=Privacy(1, 1e-6), method="coins")
    >>> task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    >>> [report] = sealed_reports(task, [1], bits=RandomBits.secure())
    >>> len(report) == plan.messages_per_user_max * 77
    True
    """
    binding_of(task)
    encoded = task.plan.encode(np.asarray(values))
    if len(encoded) > task.plan.users:
        problem = f"must be at most the task's {task.plan.users:,}"
        raise ParameterError("values", f"{len(encoded):,}", problem, "create a task for more people")
    # In a batch of everybody it does not matter which seat is whose.
    seats = [task.routing.batches_of(position) for position in range(len(encoded))]
    return make_reports(task, encoded, seats, bits=bits)


def collect_reports(reports: Iterable[bytes], out: Path, *, file_reports: int = 100_000) -> DataManifest:
    """Write reports into a new folder of Parquet files, in the order in which they come, with a manifest.

    Args:
        reports: what devices sent, each report's ciphertexts end to end.
        out: a new folder; it appears whole or not at all.
        file_reports: how many reports go into a file.

    Returns:
        What was written.

    Raises:
        DataError: a report is no row of whole ciphertexts, or there is none.
        ParameterError: the folder is not new.
    """
    rows, files, count = CiphertextRows(CIPHERTEXT_BYTES), list[DataFile](), 0
    with job_at(out, {"job": "collect"}, resume=False, can_resume=False) as job:
        held: list[bytes] = []

        def write() -> None:
            content = np.frombuffer(b"".join(held), dtype=np.uint8).reshape(-1, CIPHERTEXT_BYTES)
            files.append(write_part(job.folder, f"reports-{len(files):06}.parquet", rows, content))
            held.clear()

        for report in reports:
            if not report or len(report) % CIPHERTEXT_BYTES:
                problem = f"must be whole ciphertexts of {CIPHERTEXT_BYTES} bytes"
                raise DataError("report", f"{len(report)} bytes", problem, "keep what a device sent as it is")
            held.append(report)
            count += 1
            if len(held) == file_reports:
                write()
        if held:
            write()
        if not files:
            raise DataError("reports", 0, "must be at least one", "collect some first")
        manifest = DataManifest(rows, tuple(files), count)
        job.commit(manifest)
    return manifest
