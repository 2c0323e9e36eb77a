"""Jobs on files: counting against DuckDB, an exact permutation against the disk, and opening, with peak memory.

All figures are ratios in one run, or CPU: the machine may have other work. Files are made once, by streaming, in a
folder of their own, and removed at the end. With --page the figures are kept in benchmarks/measured, and the tables of
docs/howto/size-batch-jobs.md are written from them.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from batches_page import MEASURED, write_page
from report import figure, report, shown

from shuffledp.engines import LocalEngine
from shuffledp.jobs.manifest import DataFile, DataManifest
from shuffledp.jobs.rows import CiphertextRows, MessageRows, RowFormat
from shuffledp.jobs.writing import write_part
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits

# Processes that do the work begin with this file: whatever else it needs is imported where it is used.
GIGABYTE, FILE_BYTES = 1 << 30, 64 << 20
CIPHERTEXT_BYTES = 77
CATEGORIES = 100


# --- what is measured ----------------------------------------------------------------------------


def tree() -> Iterator[int]:
    """This process and its children."""
    yield os.getpid()
    todo = [os.getpid()]
    while todo:
        for thread in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            # Threads and processes come and go.
            with suppress(OSError):
                found = [int(each) for each in thread.read_text().split()]
                yield from found
                todo += found


def resident(pid: int) -> int:
    """Bytes of a process that are its own, and its part of those that it shares with others."""
    try:
        line = next(each for each in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if each[:4] == "Pss:")
        return int(line.split()[1]) << 10
    except (OSError, StopIteration, IndexError):
        return 0


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """How long a block took, its CPU with that of its children, and the most memory that all of them held at once."""
    found: dict[str, float] = {"peak": 0.0}
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.2):
            found["peak"] = max(found["peak"], sum(map(resident, tree())))

    looking = threading.Thread(target=look, daemon=True)
    before, started = os.times(), time.perf_counter()
    looking.start()
    try:
        yield found
    finally:
        found["seconds"] = time.perf_counter() - started
        done.set()
        looking.join()
        after = os.times()
        found["cpu"] = sum(after[:4]) - sum(before[:4])


def write_stream(folder: Path, rows_format: RowFormat, count: int, draw: Callable[[int], np.ndarray]) -> DataManifest:
    """A data set of so many messages, drawn and written file by file."""
    folder.mkdir(parents=True)
    a_file, files, left = FILE_BYTES // rows_format.width, list[DataFile](), count
    while left:
        rows = min(a_file, left)
        files.append(write_part(folder, f"{len(files):06}.parquet", rows_format, draw(rows)))
        left -= rows
    return DataManifest(rows_format, tuple(files))


def emptied(folder: Path) -> None:
    """Let the system forget what it holds of these files: they come from the disk again."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


# --- counting ------------------------------------------------------------------------------------


def write_as_others_do(folder: Path, count: int, draw: Callable[[int], np.ndarray]) -> None:
    """Files of numbers as pyarrow writes them if it is told nothing: with room for missing ones, compressed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    for number, start in enumerate(range(0, count, 1 << 25)):
        table = pa.table({"payload": draw(min(1 << 25, count - start))})
        pq.write_table(table, folder / f"{number:06}.parquet")


def counting(folder: Path, count: int, kind: str, threads: int, *, own: bool) -> list[dict]:
    """`batch analyze` of a histogram's messages, and DuckDB's GROUP BY of the same files with as many threads."""
    import duckdb

    from shuffledp.jobs.analyzing import analyze_files
    from shuffledp.protocols.catalogue import PROTOCOLS

    plan: Any = PROTOCOLS["histogram"].plan(
        users=count, privacy=Privacy(1, 1e-12), method="decoys", categories=CATEGORIES
    )
    dtype, data = np.dtype(kind), folder / kind
    choose = np.random.default_rng(1)

    def numbers(rows: int) -> np.ndarray:
        return choose.integers(0, CATEGORIES, rows, dtype=dtype)

    if own:
        as_bytes = lambda rows: numbers(rows).view(np.uint8).reshape(rows, dtype.itemsize)  # noqa: E731
        write_stream(data, MessageRows(kind), count, as_bytes)
    else:
        write_as_others_do(data, count, numbers)
    seconds: dict[str, list[float]] = {"ours": [], "duckdb": []}
    cpu: dict[str, list[float]] = {"ours": [], "duckdb": []}
    peak, counts = 0.0, None
    for _ in range(3):
        emptied(data)
        with watched() as ours, LocalEngine(processes=threads, memory=GIGABYTE) as engine:
            found = analyze_files(data, plan, engine=engine, reports=count)
        emptied(data)
        connection = duckdb.connect()
        connection.execute(f"SET threads={threads}")
        with watched() as theirs:
            query = f"SELECT payload, count(*) FROM '{data}/*.parquet' GROUP BY payload ORDER BY payload"
            counts = [row[1] for row in connection.execute(query).fetchall()]
        connection.close()
        assert counts == found.tally.counts[:CATEGORIES].tolist()
        for name, each in (("ours", ours), ("duckdb", theirs)):
            seconds[name].append(each["seconds"])
            cpu[name].append(each["cpu"])
        peak = max(peak, ours["peak"])
    size = sum(path.stat().st_size for path in data.iterdir())
    shutil.rmtree(data)
    times = ", ".join(f"{a:.1f}/{b:.1f} s" for a, b in zip(seconds["ours"], seconds["duckdb"], strict=True))
    name = f"counting {count:.0e} messages of {kind}{', as jobs write them' if own else ''}"
    return [
        figure(
            f"{name}: time beside DuckDB's",
            min(seconds["ours"]) / min(seconds["duckdb"]),
            "<=",
            1.3,
            f"{times}, {threads} threads, {size / 1e9:.2f} GB of files; with processes' start, without fingerprints",
        ),
        figure(f"{name}: peak memory, MB", peak / 1e6, "<=", 1000, "of all processes together"),
        shown(f"{name}: CPU beside DuckDB's", min(cpu["ours"]) / min(cpu["duckdb"]), f"{min(cpu['ours']):.1f} s"),
        shown(f"counting {kind}{' of jobs' * own}: ns of one core a message", min(cpu["ours"]) / count * 1e9, ""),
    ]


# --- permuting -----------------------------------------------------------------------------------


def disk_seconds(source: Path, target: Path) -> float:
    """How long it takes to read these files and write the same bytes durably, and nothing else."""
    target.mkdir()
    emptied(source)
    started = time.perf_counter()
    for path in sorted(source.glob("*.parquet")):
        content = path.read_bytes()
        with (target / path.name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    took = time.perf_counter() - started
    shutil.rmtree(target)
    return took


def permuting(folder: Path, count: int, processes: int) -> list[dict]:
    """An exact permutation of messages of 77 bytes, in a gigabyte."""
    from shuffledp.jobs.shuffling import shuffle_files

    bits = RandomBits.seeded(1)

    def draw(rows: int) -> np.ndarray:
        found = np.empty(rows * CIPHERTEXT_BYTES, dtype=np.uint8)
        bits.fill(found)
        return found.reshape(rows, CIPHERTEXT_BYTES)

    write_stream(folder / "in", CiphertextRows(CIPHERTEXT_BYTES), count, draw)
    disk = disk_seconds(folder / "in", folder / "copy")
    emptied(folder / "in")
    stages: dict[str, float] = {}
    started = time.perf_counter()

    def progress(what: str, done: int, total: int) -> None:
        if done == total:
            stages[what] = time.perf_counter() - started

    with watched() as found, LocalEngine(processes=processes, memory=GIGABYTE) as engine:
        done = shuffle_files(folder / "in", folder / "out", engine=engine, progress=progress)
    assert done.manifest.messages == count
    disk = (disk + disk_seconds(folder / "in", folder / "copy")) / 2
    shutil.rmtree(folder / "in")
    shutil.rmtree(folder / "out")
    name = f"permuting {count:.0e} messages of {CIPHERTEXT_BYTES} bytes"
    parts = ", ".join(f"{what} until {at:.0f} s" for what, at in stages.items())
    return [
        figure(f"{name}: peak memory, MB", found["peak"] / 1e6, "<=", 1000, "of all processes together"),
        shown(
            f"{name}: times the disk's reading and writing",
            found["seconds"] / disk,
            f"{found['seconds']:.0f} s beside {disk:.0f} s; {parts}; {len(done.manifest.files)} files",
        ),
        shown("permuting: ns of one core a message", found["cpu"] / count * 1e9, f"{found['cpu']:.0f} s of CPU"),
        shown("the disk: bytes a second, read and written", count * CIPHERTEXT_BYTES / disk, "durably"),
    ]


# --- opening -------------------------------------------------------------------------------------


def opening(folder: Path, count: int) -> list[dict]:
    """Messages a second and core, by one process and by two."""
    from shuffledp.engines.keyed import JobKey
    from shuffledp.jobs.collecting import collect_reports, sealed_reports
    from shuffledp.jobs.opening import open_files
    from shuffledp.protocols.catalogue import PROTOCOLS
    from shuffledp.service.crypto import PrivateKey
    from shuffledp.service.task import Task

    plan: Any = PROTOCOLS["binary-sum"].plan(users=count, privacy=Privacy(1, 1e-9), method="rr")
    key = PrivateKey.generate()
    task = Task.create(plan, key.public, bits=RandomBits.secure())
    reports = sealed_reports(task, np.arange(count) % 2, bits=RandomBits.secure())
    collect_reports(reports, folder / "sealed")
    rows, rates = [], {}
    for processes in (1, 2):
        out = folder / f"opened-{processes}"
        with watched() as found, LocalEngine(processes=processes, memory=GIGABYTE) as engine:
            open_files(folder / "sealed", out, task=task, keys=(key,), engine=engine, key=JobKey.seeded(1))
        rates[processes] = count / found["cpu"]
        note = f"{count / found['seconds']:,.0f} a second by the clock, {found['peak'] / 1e6:.0f} MB"
        rows.append(shown(f"opening by {processes}: messages a second of one core's CPU", rates[processes], note))
    digests = {
        hashlib.sha256((folder / f"opened-{each}" / "manifest.json").read_bytes()).hexdigest() for each in (1, 2)
    }
    rows.append(figure("opening: data sets of one and two processes that differ", len(digests) - 1, "<=", 0, ""))
    return rows


def keep(rows: list[dict]) -> None:
    """Keep these figures, in the place of older ones of the same name, and write the page."""
    cores = f"{multiprocessing.cpu_count()} cores of {machine()}, Python {platform.python_version()}"
    known = json.loads(MEASURED.read_text("utf-8"))["figures"] if MEASURED.exists() else []
    figures = {each["name"]: each for each in (*known, *rows)}
    today = datetime.now(UTC).date().isoformat()
    document = {"schema": 1, "date": today, "machine": cores, "figures": list(figures.values())}
    MEASURED.write_text(json.dumps(document, indent=2, default=float) + "\n", "utf-8")
    write_page(document)


def machine() -> str:
    """What the processor calls itself."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return platform.machine()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=float, default=1e9, help="messages to count")
    parser.add_argument("--permute", type=float, default=1e8, help="messages to permute")
    parser.add_argument("--open", type=float, default=200_000, help="messages to open")
    parser.add_argument("--only", choices=["counting", "permuting", "opening"])
    parser.add_argument("--kinds", nargs="+", default=["u1", "u2"], help="how wide counted messages are")
    files = ["others", "jobs"]
    parser.add_argument("--files", nargs="+", choices=files, default=files, help="whose files are counted")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, help="where files are made for a while")
    parser.add_argument("--page", action="store_true", help="keep the figures, and write the page of them")
    asked = parser.parse_args()
    rows: list[dict] = []
    folder = Path(tempfile.mkdtemp(prefix="shuffledp-batches-", dir=asked.folder))
    try:
        if asked.only in (None, "counting"):
            for kind in asked.kinds:
                for files in asked.files:
                    rows += counting(folder, int(asked.count), kind, asked.processes, own=files == "jobs")
        if asked.only in (None, "permuting"):
            rows += permuting(folder, int(asked.permute), asked.processes)
        if asked.only in (None, "opening"):
            rows += opening(folder, int(asked.open))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if asked.page:
        keep(rows)
    return report("Batches", rows)


if __name__ == "__main__":
    sys.exit(main())
