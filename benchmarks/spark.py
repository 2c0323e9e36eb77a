"""Spark beside the local engine on the same cores: a count and a permutation, and what tasks that do not repeat cost.

Ratios in one run: the machine may have other work. Both engines are running before the clock starts; how long Spark
takes to start is said by itself. The last figure is Spark without this package: rows dealt by fresh randomness in every
attempt, and an executor that is killed while they are gathered.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from batches import CIPHERTEXT_BYTES, write_stream
from report import figure, report, shown

from shuffledp.engines import Engine, JobKey, LocalEngine
from shuffledp.engines.spark import SparkEngine
from shuffledp.errors import WorkLostError
from shuffledp.jobs.rows import CiphertextRows, MessageRows
from shuffledp.privacy import Privacy

CATEGORIES = 100
BUCKETS = 8


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = action()
    return time.perf_counter() - started, found


def counting(folder: Path, rows: int, engines: dict[str, Engine]) -> list[dict]:
    """`batch analyze` of a histogram's messages, by both engines in turn."""
    from shuffledp.jobs.analyzing import analyze_files
    from shuffledp.protocols.catalogue import PROTOCOLS

    plan: Any = PROTOCOLS["histogram"].plan(
        users=rows, privacy=Privacy(1, 1e-12), method="decoys", categories=CATEGORIES
    )
    choose = np.random.default_rng(1)
    write_stream(
        folder, MessageRows("u1"), rows, lambda some: choose.integers(0, CATEGORIES, (some, 1), dtype=np.uint8)
    )
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    answers = set()
    for _ in range(3):
        for name, engine in engines.items():
            took, found = timed(lambda engine=engine: analyze_files(folder, plan, engine=engine, reports=rows))
            seconds[name].append(took)
            answers.add(str(found.release))
    assert len(answers) == 1, "the engines do not agree"
    best = {name: min(each) for name, each in seconds.items()}
    beside = f"{best['spark']:.1f} s and {best['local']:.1f} s for {rows:,.0f} messages"
    return [figure("Count on Spark, times the local engine", best["spark"] / best["local"], "<=", 4, beside)]


def permuting(folder: Path, rows: int, engines: dict[str, Engine]) -> list[dict]:
    """`batch shuffle` of ciphertexts, by both engines: the same bytes."""
    from shuffledp.jobs.shuffling import shuffle_files

    choose = np.random.default_rng(2)
    write_stream(
        folder / "in",
        CiphertextRows(CIPHERTEXT_BYTES),
        rows,
        lambda some: choose.integers(0, 256, (some, CIPHERTEXT_BYTES), dtype=np.uint8),
    )
    seconds, found = {}, []
    for name, engine in engines.items():
        asked = {"engine": engine, "key": JobKey.seeded(1)}
        seconds[name], made = timed(lambda name=name, asked=asked: shuffle_files(folder / "in", folder / name, **asked))
        found.append(made.manifest)
    assert found[0] == found[1], "the engines do not agree"
    size = rows * CIPHERTEXT_BYTES / 1e6
    beside = f"{seconds['spark']:.1f} s and {seconds['local']:.1f} s for {size:,.0f} MB, the same bytes"
    return [
        figure("Permutation on Spark, times the local engine", seconds["spark"] / seconds["local"], "<=", 6, beside)
    ]


def chosen_anew(count: int) -> np.ndarray:
    """Buckets that nobody can choose again."""
    return np.frombuffer(os.urandom(count), dtype=np.uint8) % BUCKETS


def retried(folder: Path, rows: int, parts: int = 8) -> list[dict]:
    """Rows that are lost or doubled when an executor is killed, and nobody looks; and whether we notice."""
    from pyspark import SparkContext

    each, mark = rows // parts, folder / "killed"

    def deal(part: int) -> Iterable[tuple[int, np.ndarray]]:
        numbers, chosen = np.arange(part * each, (part + 1) * each, dtype=np.uint32), chosen_anew(each)
        return [(bucket, numbers[chosen == bucket].view(np.uint8).reshape(-1, 4)) for bucket in range(BUCKETS)]

    def die_once(bucket: int) -> None:
        if bucket == 1 and not mark.exists():
            mark.touch()
            above = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
            os.kill(int(above), signal.SIGKILL)
            time.sleep(2)

    def gather(bucket: int, blocks: Iterable[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
        found = [block for _, block in blocks]
        die_once(bucket)
        yield np.concatenate(found).reshape(-1).view(np.uint32)

    def look(gathered: Any) -> int:
        die_once(gathered.bucket)
        return len(gathered.rows)

    # A master's executors have their own disks: what a dead one has dealt is gone.
    quick = {"spark.shuffle.io.maxRetries": "1", "spark.shuffle.io.retryWait": "1s", "spark.executor.memory": "1g"}
    with SparkEngine(master="local-cluster[2,1,1024]", settings=quick) as engine:
        context = SparkContext.getOrCreate()
        dealt = context.parallelize(range(parts), parts).flatMap(deal).partitionBy(BUCKETS, int)
        # Everything is dealt before anything is gathered.
        assert dealt.getNumPartitions() == BUCKETS
        numbers = np.concatenate(dealt.mapPartitionsWithIndex(gather).collect())
        assert mark.exists()
        mark.unlink()
        times = np.bincount(numbers, minlength=parts * each)
        noticed = False
        try:
            with engine.exchange(range(parts), deal, BUCKETS) as exchanged:
                engine.fold(exchanged, look, sum)
        except WorkLostError:
            noticed = True
        assert mark.exists()
    lost, doubled = int(np.count_nonzero(times == 0)), int(np.count_nonzero(times > 1))
    beside = f"of {parts * each:,} rows, and {doubled:,} doubled: one of two executors killed while rows were gathered"
    return [
        shown("Rows lost without keyed randomness", lost, beside),
        figure("The same job on the engine is refused", noticed, ">=", 1, "WorkLostError, nothing released"),
    ]


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=float, default=1e8, help="messages that are counted")
    asked.add_argument("--permuted", type=float, default=5e6, help="ciphertexts that are permuted")
    asked.add_argument("--retried", type=float, default=5e6, help="rows that are dealt while an executor is killed")
    given = asked.parse_args()
    cores = len(os.sched_getaffinity(0))
    folder = Path(tempfile.mkdtemp(prefix="shuffledp-bench-"))
    rows: list[dict] = []
    try:
        started, spark = timed(lambda: SparkEngine(master=f"local[{cores},4]"))
        with spark, LocalEngine(processes=cores) as local:
            first, _ = timed(lambda: spark.fold([1], abs, sum))
            again, _ = timed(lambda: spark.fold(range(100), abs, sum))
            rows.append(shown("Seconds until Spark is there", started, f"and {first:.1f} s for the first task"))
            rows.append(shown("Milliseconds a task", again / 100 * 1000, "of 100 that do nothing"))
            timed(lambda: local.fold(range(cores + 1), abs, sum))
            engines: dict[str, Engine] = {"local": local, "spark": spark}
            rows += counting(folder / "messages", int(given.rows), engines)
            shutil.rmtree(folder / "messages")
            rows += permuting(folder, int(given.permuted), engines)
        rows += retried(folder, int(given.retried))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report("Spark", rows)


if __name__ == "__main__":
    sys.exit(main())
