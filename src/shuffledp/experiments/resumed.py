"""Experiments that go on where they stopped: rows are kept in a file as soon as they are measured."""

import json
import multiprocessing
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar

from shuffledp.engines import Engine, LocalEngine
from shuffledp.engines.sweeping import Finished, sweep
from shuffledp.errors import ParameterError
from shuffledp.experiments.common import Progress
from shuffledp.files import whole_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


A = TypeVar("A")
B = TypeVar("B")
R = TypeVar("R", bound="DataclassInstance")


class Measuring(TypedDict, total=False):
    """How rows are measured: where, in which files they are kept, and who is told how much is done.

    `engine` measures them instead of so many processes; `cells` is a file of rows that this very code has measured,
    which grows by a line a row.
    """

    workers: int
    cache: Path | None
    progress: Progress | None
    engine: Engine | None
    cells: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTask(ABC):
    """What decides a row: numbers and words."""

    row: ClassVar[type]
    """What a row is: a dataclass."""

    @property
    @abstractmethod
    def weight(self) -> int:
        """How long it takes, beside others."""

    @abstractmethod
    def run(self) -> Any:
        """Measure the row; it is the same whichever others are asked for with it."""

    def measured_as(self, row: type[R], **measured: Any) -> R:
        """The row that has been measured; what decides it is copied where it has fields of the same name."""
        wanted = {field.name for field in fields(row)}
        return row(**{name: value for name, value in asdict(self).items() if name in wanted} | measured)


def measured(
    tasks: Sequence[RowTask],
    *,
    workers: int = 1,
    cache: Path | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    cells: Path | None = None,
) -> list[Any]:
    """The row of every task, in the tasks' order; those in the cache, or among the cells, are not measured again.

    The longest tasks begin first. Experiments may share a file.
    """
    if engine is not None or cells is not None:
        return _swept(tasks, workers, cache, progress, engine, cells)
    known, different = _read(cache), list(dict.fromkeys(tasks))
    # Before any work: rows that are not ones of this experiment.
    rows = {task: _made(task.row, known[key_of(task)], cache) for task in different if key_of(task) in known}
    missing = sorted((task for task in different if task not in rows), key=lambda task: -task.weight)
    total = sum(task.weight for task in different)
    done = total - sum(task.weight for task in missing)
    for task, row in in_processes(missing, methodcaller("run"), workers):
        rows[task], known[key_of(task)] = row, asdict(row)
        done += task.weight
        if cache is not None:
            with whole_file(cache, parameter="cache") as file:
                file.write(json.dumps(known).encode())
        if progress is not None:
            progress(done, total)
    return [rows[task] for task in tasks]


def _swept(
    tasks: Sequence[RowTask],
    workers: int,
    cache: Path | None,
    progress: Progress | None,
    engine: Engine | None,
    cells: Path | None,
) -> list[Any]:
    """As `measured`, on an engine."""
    finished, known = Finished(cells, resume=True), _read(cache)
    different = sorted(dict.fromkeys(tasks), key=lambda task: -task.weight)
    missing = [task for task in different if key_of(task) not in known]
    with LocalEngine(processes=workers) if engine is None else nullcontext(engine) as opened:
        found = sweep(opened, missing, _row_of, finished=finished, progress=progress) if missing else []
    rows = {key_of(task): row for task, row in zip(missing, found, strict=True)}
    if cache is not None and rows:
        with whole_file(cache, parameter="cache") as file:
            file.write(json.dumps(known | rows).encode())
    return [_made(task.row, (known | rows)[key_of(task)], cache) for task in tasks]


def _row_of(task: RowTask) -> dict[str, Any]:
    return asdict(task.run())


def key_of(task: RowTask) -> str:
    """What decides the row, as text."""
    return json.dumps({"task": type(task).__name__, **asdict(task)}, sort_keys=True)


def in_processes(tasks: Sequence[A], run: Callable[[A], B], workers: int) -> Iterator[tuple[A, B]]:
    """Every task with what became of it, as they are done: in this process, or in so many others."""
    if workers <= 1 or len(tasks) <= 1:
        yield from ((task, run(task)) for task in tasks)
        return
    # Spawned, not forked: the command line may hold threads.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            running = {pool.submit(run, task): task for task in tasks}
            for finished in as_completed(running):
                yield running[finished], finished.result()
        except BaseException:
            # Whoever gives up waits neither for tasks that have not begun nor for those that have.
            for child in multiprocessing.active_children():
                child.terminate()
            # Their thread in this process is waited for: one that ends with the interpreter may find its pipe closed.
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _read(cache: Path | None) -> dict[str, Any]:
    if cache is None or not cache.exists():
        return {}
    try:
        document = json.loads(cache.read_text())
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise _no_rows(cache)
    return document


def _made(make: type, fields: Any, cache: Path | None) -> Any:
    try:
        return make(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})
    except (TypeError, AttributeError):
        raise _no_rows(cache) from None


def _no_rows(cache: Path | None) -> ParameterError:
    problem = "must hold rows of this experiment"
    return ParameterError("cache", str(cache), problem, "remove it, or name another picture")
