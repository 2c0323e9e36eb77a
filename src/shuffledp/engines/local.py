"""All cores of this machine: a process a core, parts handed out one by one, what they leave merged as it comes."""

import multiprocessing
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from shuffledp.engines.contract import Engine, Exchanged, Gathered, Progress, Rows
from shuffledp.engines.spilling import BucketPlaces, Places, Spilled, gather, spill
from shuffledp.errors import ParameterError, WorkLostError
from shuffledp.randomness import RandomBits

P = TypeVar("P")
T = TypeVar("T")

GIGABYTE = 1 << 30
# What an interpreter with numpy and pyarrow takes before it has any data.
_INTERPRETER = 110 << 20
_LEAST_TASK = 8 << 20
# The largest block that the allocator may learn to keep.
_LARGEST_KEPT = 31 << 20
# A pool in which a process ended is started anew so often: whoever is killed by the system for its memory is again.
_TRIES = 3


@dataclass(frozen=True, slots=True, repr=False)
class InHand:
    """A secret that travels to the tasks of this machine through a pipe."""

    secret: bytes

    def open(self) -> bytes:
        return self.secret

    def __repr__(self) -> str:
        return "InHand()"


@dataclass(frozen=True, slots=True)
class _Spilling:
    """The task of an exchange: deal a part and write it."""

    folder: Path
    key: InHand
    bucket_of: Callable[[Any], Iterable[tuple[int, Rows]]]
    buckets: int

    def __call__(self, numbered: tuple[int, Any]) -> tuple[Spilled, ...]:
        number, part = numbered
        return (spill(self.folder, self.key.open(), number, self.bucket_of(part), self.buckets),)


@dataclass(frozen=True, slots=True)
class _Gathering:
    """The task of a fold of buckets: read one, and tally it."""

    folder: Path
    key: InHand
    tally: Callable[[Gathered], Any]

    def __call__(self, where: BucketPlaces) -> Any:
        return self.tally(Gathered(where.bucket, gather(self.folder, self.key.open(), where)))


class Spills(Exchanged):
    """The buckets of an exchange on this machine's disk."""

    def __init__(self, folder: Path, key: InHand, buckets: int) -> None:
        self.folder, self.key, self._buckets = folder, key, buckets
        self.places = Places((), buckets)
        self.chosen: Sequence[int] = range(buckets)

    @property
    def buckets(self) -> int:
        return self._buckets

    def only(self, buckets: Sequence[int]) -> "Spills":
        found = Spills(self.folder, self.key, self._buckets)
        found.places, found.chosen = self.places, buckets
        return found

    def __exit__(self, *_: Any) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.key = InHand(b"")


class LocalEngine(Engine):
    """Tasks in processes of this machine; with one process, or one part, in this one.

    A program that starts processes must be importable: keep what it does under `if __name__ == "__main__":`.

    Args:
        processes: how many tasks run side by side; one a core if it is left out.
        memory: bytes that all of them together may take.
        folder: where what memory does not hold is written for a while, encrypted; the system's temporary folder if it
            is left out.

    Raises:
        ParameterError: no process, or too little memory for one.

    >>> engine = LocalEngine(processes=1)
    >>> engine.fold(range(5), abs, sum)
    10
    """

    name: ClassVar[str] = "local"

    def __init__(
        self, *, processes: int | None = None, memory: int = GIGABYTE, folder: Path | str | None = None
    ) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        wanted = cores if processes is None else processes
        if wanted < 1:
            raise ParameterError("processes", wanted, "must be >= 1", "leave it out for one a core")
        least = _INTERPRETER + _LEAST_TASK
        if memory < least:
            problem = f"must be at least {-(-least >> 20)}MB"
            raise ParameterError("memory", f"{memory / (1 << 20):.4g}MB", problem, "say for instance --memory 1GB")
        # This process has data of its own: it merges.
        self._processes = max(1, min(wanted, memory // least - 1)) if processes is None else wanted
        self.memory = memory
        self._folder = None if folder is None else Path(folder)
        self._pool: ProcessPoolExecutor | None = None
        self._waking: threading.Thread | None = None

    @property
    def tasks_at_once(self) -> int:
        return self._processes

    @property
    def task_bytes(self) -> int:
        interpreters = self._processes + (self._processes > 1)
        left = self.memory - interpreters * _INTERPRETER
        return max(_LEAST_TASK, left // interpreters)

    def entrust(self, secret: bytes) -> InHand:
        return InHand(secret)

    def fold(
        self,
        parts: "Sequence[P] | Exchanged",
        tally: Callable[[P], T] | Callable[[Gathered], T],
        merge: Callable[[Iterable[T]], T],
        *,
        progress: Progress | None = None,
    ) -> T:
        task: Callable[[Any], T]
        if isinstance(parts, Spills):
            task = _Gathering(parts.folder, parts.key, cast("Callable[[Gathered], T]", tally))
            to_do: Sequence[Any] = [parts.places[bucket] for bucket in parts.chosen]
        elif isinstance(parts, Exchanged):
            raise ParameterError("parts", type(parts).__name__, "must be of this engine", "exchange them here")
        else:
            task, to_do = cast("Callable[[Any], T]", tally), parts
        if not len(to_do):
            raise ParameterError("parts", 0, "must be at least one", "give the engine something to do")
        merged: T | None = None
        for done, each in enumerate(self._each(task, to_do), 1):
            merged = each if done == 1 else merge((cast("T", merged), each))
            if progress is not None:
                progress(done)
        return cast("T", merged)

    def exchange(
        self,
        parts: Sequence[P],
        bucket_of: Callable[[P], Iterable[tuple[int, Rows]]],
        buckets: int,
        *,
        progress: Progress | None = None,
    ) -> Spills:
        if buckets < 1:
            raise ParameterError("buckets", buckets, "must be >= 1", "one bucket holds everything")
        # A job that has ended took its folder with it.
        asked = self._folder if self._folder is not None and self._folder.is_dir() else None
        folder = Path(tempfile.mkdtemp(prefix=".shuffledp-", dir=asked))
        found = Spills(folder, InHand(_new_key()), buckets)
        try:
            dealing = _Spilling(folder, found.key, bucket_of, buckets)
            dealt = self.fold(list(enumerate(parts)), dealing, _together, progress=progress)
        except BaseException:
            found.__exit__()
            raise
        found.places = Places(sorted(dealt, key=lambda each: each.part), buckets)
        return found

    def spill_to(self, folder: Path) -> None:
        self._folder = folder

    def get_ready(self, *needed: Any) -> None:
        if self._processes > 1 and self._pool is None:
            pool = self._start(sorted({each.__module__ for each in needed}))
            # Whoever starts a process waits until its modules are loaded: not this thread.
            self._waking = threading.Thread(target=_wake, args=(pool, self._processes), daemon=True)
            self._waking.start()

    def close(self) -> None:
        self._awake()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    # --- processes ---------------------------------------------------------------------------

    def _each(self, task: Callable[[P], T], parts: Sequence[P]) -> Iterator[T]:
        """What the task answers for every part, in any order; parts of processes that ended are done again."""
        if self._processes == 1 or len(parts) == 1:
            yield from map(task, parts)
            return
        left = dict.fromkeys(range(len(parts)))
        for _ in range(_TRIES):
            try:
                for number, answer in self._in_processes(task, parts, list(left)):
                    del left[number]
                    yield answer
                return
            except BrokenProcessPool:
                self._abandon()
        raise WorkLostError(
            f"Processes of the engine ended {_TRIES} times before {len(left):,} of {len(parts):,} parts were done: the "
            "system may be short of memory; give --memory less, or fewer processes. Nothing was released."
        )

    def _in_processes(self, task: Callable[[P], T], parts: Sequence[P], numbers: list[int]) -> Iterator[tuple[int, T]]:
        self._awake()
        pool = self._pool or self._start()
        waiting: dict[Future[T], int] = {}
        later = iter(numbers)
        try:
            while True:
                # One more than processes, so that nobody waits; not all, which would hold all answers at once.
                for number in later:
                    waiting[pool.submit(task, parts[number])] = number
                    if len(waiting) > self._processes:
                        break
                if not waiting:
                    return
                done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()

    def _awake(self) -> None:
        """Wait for processes that are being started."""
        if self._waking is not None:
            self._waking.join()
            self._waking = None

    def _start(self, modules: Sequence[str] = ()) -> ProcessPoolExecutor:
        # Not forked from this process: whoever asks may have threads. Where it is known what tasks need, one other
        # process loads it, once for all, and is forked.
        loads = bool(modules) and "forkserver" in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if loads else "spawn")
        if loads:
            context.set_forkserver_preload(list(modules))
        self._pool = ProcessPoolExecutor(self._processes, mp_context=context, initializer=_watch)
        return self._pool

    def _abandon(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _wake(pool: ProcessPoolExecutor, processes: int) -> None:
    """Start the processes of a pool; one that cannot be started is missed by the first task, which says so."""
    with suppress(OSError, RuntimeError):
        for _ in range(processes):
            # A process is started for every task that finds none idle.
            pool.submit(int)


def _watch() -> None:
    """A process's first act: if whoever started it is killed, it ends; and memory that it frees it keeps for the next.

    The system's allocator hands back whatever is larger than the largest block that was ever freed: a task that makes
    and frees arrays of a megabyte would spend a third of its time on pages. One large block, never touched, ends that.
    """
    once = np.empty(_LARGEST_KEPT, dtype=np.uint8)
    del once
    threading.Thread(target=_end_with_the_first, daemon=True).start()


def _end_with_the_first() -> None:
    first = multiprocessing.parent_process()
    if first is not None:
        first.join()
        os._exit(1)


def _new_key() -> bytes:
    raw = np.empty(32, dtype=np.uint8)
    RandomBits.secure().fill(raw)
    return raw.tobytes()


def _together(several: Iterable[tuple[Spilled, ...]]) -> tuple[Spilled, ...]:
    return tuple(each for one in several for each in one)
