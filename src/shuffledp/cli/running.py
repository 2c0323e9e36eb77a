"""A plan run on people's values: in this process where they are few, else in pieces on an engine."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.cli.asked import Asked
from shuffledp.cli.early import EarlyEngine
from shuffledp.cli.engine_options import EngineAsked, in_words
from shuffledp.cli.progress import simulated, users_reporting
from shuffledp.errors import ParameterError
from shuffledp.files import is_there

if TYPE_CHECKING:
    from shuffledp.engines.sources import Source
    from shuffledp.protocols.plan import Plan

SMALL = 1 << 20
"""As many people and messages are run in this process, all at once."""

MOST_MESSAGES = 1_000_000_000
"""More messages than this take more than a minute of a core by most methods, which make and tally 14 to 100 million of
them in a second, by benchmarks/streaming.py (`correlated` 4 million). Then the estimate comes from its own law."""


LARGE, LARGE_BY_LAW = 1 << 23, 1 << 26
"""From so many rows on processes are started before a plan is made: most methods need them, by messages and by law."""

# What a row takes while a file is read whole: of text, and of numbers a column; the shortest line that is likely, and
# how much longer a packed file is when it is unpacked.
_TEXT, _NUMBER, _LEAST_LINE, _UNPACKED = 250, 40, 4, 4
# A category with its count and interval, in a table and as JSON.
_SHOWN_ROW = 1700


@dataclass(frozen=True, slots=True)
class Pieces:
    """How much work was cut, and who did it.

    Attributes:
        count: how many pieces there were.
        tasks: how many were worked on at once.
        engine: where.
    """

    count: int
    tasks: int
    engine: str

    def __str__(self) -> str:
        who = {"local": "processes", "spark": "tasks of Spark"}.get(self.engine, "tasks")
        pieces = "in 1 piece" if self.count == 1 else f"in {self.count:,} pieces"
        return pieces if self.tasks == 1 else f"{pieces} by {self.tasks:,} {who}"

    @property
    def document(self) -> dict[str, Any]:
        """How the work was cut and where it ran, as JSON."""
        return {"engine": self.engine, "pieces": self.count, "tasks_at_once": self.tasks}


@dataclass(frozen=True, slots=True)
class Ran:
    """An answer, and how it came about.

    Attributes:
        estimate: the plan's answer.
        seconds: how long it took.
        clipped: values that were brought into the range while pieces were read.
        pieces: the pieces that it was made in; None where all was held at once.
    """

    estimate: Any
    seconds: float
    clipped: int = 0
    pieces: Pieces | None = None


def held(values: Any) -> "Source":
    """Checked values that are in memory, as a source."""
    from shuffledp.engines.sources import Held

    return Held(values)


def streams(plan: "Plan", *, fast: bool) -> bool:
    """Whether a plan takes people in pieces: by their messages, or by law where answers are drawn from it."""
    return plan.adds_up if fast else plan.in_pieces


def run_plan(
    plan: "Plan",
    source: "Source",
    asked: EngineAsked,
    *,
    seed: int | None,
    fast: bool,
    shown: bool,
    told: Callable[[Any], None] | None = None,
    early: EarlyEngine | None = None,
) -> Ran:
    """The answer of a plan over everybody's values.

    Args:
        plan: what is asked.
        source: everybody's values; in memory where the plan must hold them all at once.
        asked: the engine, for more than a few people or messages.
        seed: makes a run repeatable, so that it protects nobody.
        fast: whether the answer is drawn from its law.
        shown: whether a person watches.
        told: called before every round with the state of the plan's learner, where it runs in pieces.
        early: an engine whose processes may have been started before the plan was made.
    """
    from shuffledp.cli.options import bits_of
    from shuffledp.engines.needs import INTERPRETER, bytes_at_once
    from shuffledp.engines.sources import Held

    messages = plan.users * plan.messages_per_user_mean
    small = plan.users <= SMALL and (fast or messages <= SMALL)
    check_memory(INTERPRETER + shown_bytes(plan), asked, "a table of all categories")
    if isinstance(source, Held) and (small or not streams(plan, fast=fast)):
        check_memory(bytes_at_once(plan, source.values.nbytes, fast=fast), asked, _whole(plan, fast))
        estimate, seconds = simulated(plan, source.values, bits=bits_of(seed), fast=fast, shown=shown)
        return Ran(estimate, seconds)
    from shuffledp.engines import JobKey
    from shuffledp.engines.estimating import estimate_on

    key = JobKey.generate() if seed is None else JobKey.seeded(seed)
    started = time.perf_counter()
    asked = fitting(asked, plan, source, fast=fast)
    with (
        asked.open() if early is None else early.open(asked) as engine,
        users_reporting(plan.users, shown=shown) as progress,
    ):
        found = estimate_on(engine, plan, source, key=key, fast=fast, progress=progress, told=told)
    pieces = Pieces(found.parts, found.tasks, asked.engine)
    return Ran(found.answer, time.perf_counter() - started, found.clipped, pieces)


def fitting(asked: EngineAsked, plan: "Plan", source: "Source", *, fast: bool) -> EngineAsked:
    """The engine with as many processes as its memory is enough for.

    Raises:
        ParameterError: it is not enough for one: nothing has been read or drawn yet.
    """
    from shuffledp.engines.needs import bytes_needed

    if asked.engine != "local":
        # What tasks take is the cluster's, which is not started for it; here the tallies are merged.
        check_memory(bytes_needed(plan, source, 1, fast=fast), asked, _tallies(plan, fast))
        return asked
    with asked.open() as engine:
        tasks = engine.tasks_at_once
    while tasks > 1 and bytes_needed(plan, source, tasks, fast=fast) > asked.memory:
        if asked.processes is not None:
            break
        tasks -= 1
    check_memory(bytes_needed(plan, source, tasks, fast=fast), asked, _tallies(plan, fast))
    return replace(asked, processes=tasks)


def shown_bytes(plan: "Plan") -> int:
    """About how many bytes an answer takes while it is shown: a row for every category that has a name."""
    return 0 if plan.domain.named is None else _SHOWN_ROW * plan.domain.named.size


def check_memory(needed: int, asked: EngineAsked, what: str, way_out: str = "") -> None:
    """Refuse what cannot be held, before anything is done.

    Args:
        needed: about how many bytes it takes.
        asked: says how many there are.
        what: what takes them, in words.
        way_out: what else one may do, in words.

    Raises:
        ParameterError: there are fewer.
    """
    if needed > asked.memory:
        problem = f"must be enough for {what}, which needs about {in_words(needed)}"
        say = f"say --memory {in_words(needed)}"
        raise ParameterError("memory", in_words(asked.memory), problem, f"{say}, or {way_out}" if way_out else say)


def check_whole(file: Path, asked: Asked, engine: EngineAsked, *, words: bool = False, columns: int = 1) -> None:
    """Refuse a file that must be read whole and is too large for it, before it is read.

    Args:
        file: CSV, Parquet or .npy.
        asked: how it is read, and whose its rows are.
        engine: says how much memory there is.
        words: whether a value is a text.
        columns: how many of them a person has.

    Raises:
        ParameterError: it needs more memory.
    """
    from shuffledp.engines.needs import INTERPRETER
    from shuffledp.tables.pieces import cut

    if asked.reading is None or not is_there(file):
        return
    size = file.stat().st_size * (_UNPACKED if file.suffix.lower() == ".gz" else 1)
    people = sum(_TEXT for name in ("user", "by") if asked.whose.get(name) is not None)
    each = (_TEXT if words else columns * _NUMBER) + people
    if file.suffix.lower() != ".parquet" and INTERPRETER + size // _LEAST_LINE * each <= engine.memory:
        return
    found = cut(file, asked.reading, SMALL)
    needed = INTERPRETER + (size // _LEAST_LINE if found is None else found.rows) * each
    check_memory(needed, engine, f"all rows of {file.name} at once", _why_whole(asked, found is not None))


def check_made_up(users: int, engine: EngineAsked) -> None:
    """Refuse more made-up people than memory holds: they are made at once.

    Args:
        users: how many.
        engine: says how much memory there is.

    Raises:
        ParameterError: they need more.
    """
    from shuffledp.engines.needs import INTERPRETER

    needed = INTERPRETER + users * _NUMBER
    check_memory(needed, engine, f"the made-up values of {users:,} people", "take a file, which is read in pieces")


def _why_whole(asked: Asked, is_cut: bool) -> str:
    """What makes a file be read in pieces, in words, where it must be read whole as things are."""
    if asked.whose.get("user") is not None:
        return "make a file with a row a person"
    return "leave --with-truth and --fast out" if is_cut else "unpack it, and save it as UTF-8 or Parquet"


def _whole(plan: "Plan", fast: bool) -> str:
    if fast:
        return f"the values of all {plan.users:,} people at once, as the law of {plan.method} takes them"
    return f"all {round(plan.users * plan.messages_per_user_mean):,} messages of {plan.method} at once"


def _tallies(plan: "Plan", fast: bool) -> str:
    numbers = (plan.summary_bytes if fast else plan.tally_bytes) // 8
    return f"{plan.method}, with a tally of {numbers:,} numbers, in every process"
