"""Work for engines that a test can look through: rows that know where they are from, dealt by a job's key."""

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shuffledp.engines import Entrusted, Gathered, JobKey
from shuffledp.engines.contract import Rows
from shuffledp.sampling.uniform import uniform_below

PARTS = [(number, 400 + number) for number in range(6)]


def rows_of(part: tuple[int, int]) -> Rows:
    number, count = part
    rows = np.zeros((count, 6), dtype=np.uint8)
    rows[:, 0] = number
    rows[:, 1:5] = np.arange(count, dtype=">u4").view(np.uint8).reshape(count, 4)
    return rows


@dataclass(frozen=True)
class Dealing:
    """Deals a part's rows to buckets, by bits of the job's key; the first to deal a part may be killed."""

    key: Entrusted
    killed: Path | None = None

    def __call__(self, part: tuple[int, int]) -> Iterable[tuple[int, Rows]]:
        if self.killed is not None and part[0] == 3 and not self.killed.exists():
            self.killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        bits = JobKey(self.key.open(), False).bits("deal", part[0], b"", 0)
        rows, chosen = rows_of(part), uniform_below(5, part[1], bits=bits)
        return [(bucket, rows[chosen == bucket]) for bucket in range(5)]


def seen(gathered: Gathered) -> dict[int, bytes]:
    return {gathered.bucket: gathered.rows.tobytes()}


def both(several: Iterable[dict[int, bytes]]) -> dict[int, bytes]:
    return {bucket: rows for each in several for bucket, rows in each.items()}


def kill_me(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def own_number(_: int) -> set[int]:
    """The number of the process that works."""
    return {os.getpid()}


def joined(several: Iterable[set[int]]) -> set[int]:
    return set().union(*several)
