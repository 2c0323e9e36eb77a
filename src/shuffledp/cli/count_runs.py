"""A running sum over everybody's values: at once where they are few, else a stretch at a time on an engine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.early import EarlyEngine
from shuffledp.cli.engine_options import EngineAsked
from shuffledp.cli.progress import users_reporting
from shuffledp.cli.running import check_memory

if TYPE_CHECKING:
    from shuffledp.engines.sources import Source

SMALL = 1 << 17
"""So many people are run through in this process, all at once."""

# Numbers of a table that are made at a time.
_AT_A_TIME = 1 << 20
# What an estimate takes that is drawn.
_DRAWN = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of a running sum beside its last estimate.

    Attributes:
        table: where estimates are written; None if nowhere.
        every: whether the table has a row for every user, and not only for times at which a batch closed.
        picture: whether estimates are drawn, so that those when batches closed must be kept.
        truth: whether they are compared with what is true.
    """

    table: Path | None
    every: bool
    picture: bool
    truth: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """A running sum that ran.

    Attributes:
        estimates: of all slots; where nobody wanted them, of the last ones.
        truth: what was true; None if nobody asked.
        rows: how many the table has.
        seconds: how long it took.
        engine: where it ran; None if all at once, in this process.
    """

    estimates: Any
    truth: Any
    rows: int
    seconds: float
    engine: str | None = None


def count_at_once(plan: Any, values: Any, wanted: Wanted, *, bits: Any, fast: bool, shown: bool) -> Counted:
    """Run through people whose checked values are in memory."""
    from shuffledp.simulation.running_truth import RunningTruth

    started = time.perf_counter()
    with users_reporting(len(values), shown=shown and not fast) as progress:
        estimates = plan.learner().run(values, bits=bits, fast=fast, progress=progress)
    seconds = time.perf_counter() - started
    truth = RunningTruth.of(estimates, values) if wanted.truth else None
    rows = 0
    if wanted.table is not None:
        with _table(wanted.table) as table:
            rows = _write(table, plan, estimates, 0, wanted.every)
    return Counted(estimates, truth, rows, seconds)


def count_in_stretches(
    plan: Any,
    source: "Source",
    wanted: Wanted,
    asked: EngineAsked,
    *,
    seed: int | None,
    shown: bool,
    early: EarlyEngine,
) -> Counted:
    """Run through people on an engine: nothing is kept of them but what is wanted.

    Args:
        plan: a running sum's.
        source: everybody's values.
        wanted: what is wanted beside the last estimate.
        asked: the engine.
        seed: makes a run repeatable, so that it protects nobody.
        shown: whether a person watches.
        early: the engine, whose processes may have been started before the plan was made.

    Raises:
        ParameterError: there is too little memory: nothing has been read or drawn yet.
    """
    import numpy as np

    from shuffledp.engines import JobKey
    from shuffledp.engines.counting import running_sum
    from shuffledp.simulation.running_truth import RunningTruth, TruthSoFar

    key = JobKey.generate() if seed is None else JobKey.seeded(seed)
    asked = _fitting(plan, source, wanted, asked)
    truth = TruthSoFar(plan, keeps=wanted.picture) if wanted.truth else None
    kept: list[Any] = []
    last: Any = None
    rows, started = 0, time.perf_counter()
    with (
        early.open(asked) as engine,
        _table(wanted.table) as table,
        users_reporting(source.rows, shown=shown) as progress,
    ):
        for stretch in running_sum(engine, plan, source, key=key, progress=progress):
            last = stretch.estimates
            if truth is not None:
                _beside(truth, stretch, source)
            if table is not None:
                rows += _write(table, plan, last, stretch.first, wanted.every)
            if wanted.picture:
                kept.append(last.prefixes[1 if kept else 0 :])
    if kept:
        last = replace(last, prefixes=np.concatenate(kept), first_slot=0)
    told = None
    if truth is not None:
        told = RunningTruth(np.concatenate(truth.at_closing), truth.total, truth.largest_error)
    return Counted(last, told, rows, time.perf_counter() - started, asked.engine)


def _fitting(plan: Any, source: "Source", wanted: Wanted, asked: EngineAsked) -> EngineAsked:
    """The engine with as many processes as its memory is enough for, beside the plan's own tables."""
    from shuffledp.engines.counting import bytes_needed

    own = plan.table_bytes + (_DRAWN * plan.batches_by(plan.course.place_of(source.rows)[0]) if wanted.picture else 0)
    tables = "a running sum with the tables of its plan" + (" and its picture" if wanted.picture else "")
    if asked.engine != "local":
        # What tasks take is the cluster's; here their tallies are read.
        check_memory(own + bytes_needed(plan, source, 1), asked, tables)
        return asked
    with asked.open() as engine:
        tasks = engine.tasks_at_once
    while asked.processes is None and tasks > 1 and own + bytes_needed(plan, source, tasks) > asked.memory:
        tasks -= 1
    check_memory(own + bytes_needed(plan, source, tasks), asked, tables)
    return replace(asked, processes=tasks)


def _beside(truth: Any, stretch: Any, source: "Source") -> None:
    """Compare a stretch with what is true: its rows are read again, and only so many at a time."""
    rows = max(1, _AT_A_TIME // max(1, source.row_bytes // 8))
    for _, values in source.part(stretch.first, stretch.end).blocks(rows):
        truth.take(stretch.estimates, values)


@contextmanager
def _table(path: Path | None) -> Iterator[Any]:
    if path is None:
        yield None
        return
    from shuffledp.tables.growing import growing_table

    with growing_table(path) as table:
        yield table


def _write(table: Any, plan: Any, estimates: Any, first: int, every: bool) -> int:
    """Write the estimates after the users from `first` on, some at a time; how many rows that were."""
    import numpy as np

    from shuffledp.simulation.running_truth import estimates_at

    # The estimate of the slots before a stretch was written with them.
    times = estimates.times[1 if first else 0 :]
    begin, count = (first + 1, estimates.users - first) if every else (0, times.size)
    together = max(1, _AT_A_TIME // plan.domain.coordinates)
    for start in range(0, max(count, 1), together):
        size = min(together, count - start)
        some = np.arange(begin + start, begin + start + size) if every else times[start : start + size]
        table.write(_columns(plan, some, estimates_at(estimates, some)))
    return int(count)


def _columns(plan: Any, times: Any, estimates: Any) -> dict[str, Any]:
    """Columns of the table: a band for one number, one bound for several."""
    import numpy as np

    bound = plan.error_bound
    if plan.domain.coordinates == 1:
        # So many people cannot have less or more than this together.
        domain = plan.domain
        least, most = ((domain.origin + end * domain.step) * times for end in (domain.lowest, domain.highest))
        lower, upper = (np.clip(ends, least, most) for ends in (estimates - bound, estimates + bound))
        return {"time": times, "estimate": estimates, "lower": lower, "upper": upper}
    names = plan.domain.coordinate_names()
    columns = {f"estimate_{name}": estimates[:, place] for place, name in enumerate(names)}
    return {"time": times, **columns, "bound": np.full(times.size, bound)}
