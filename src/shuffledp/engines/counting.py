"""Running sums of more people than memory holds: their messages are made and counted piece by piece, on any engine.

People come in the order of their rows. A part is some rows in a row; it makes all messages of its people, for every
shuffler's batches, and leaves a tally of each batch, or of the piece of it that it has. The sums of those batches that
are full then tell the estimates, a stretch of parts at a time.

Randomness belongs to grains, fixed numbers of rows that the plan alone decides: what a person draws once for all its
batches has a stream of each grain, and so have the messages to each shuffler. So neither the number of processes nor
the memory changes a bit, and a part that is done again repeats its own.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.estimates import RunningEstimates
from shuffledp.engines.contract import Engine, Entrusted
from shuffledp.engines.keyed import JobKey
from shuffledp.engines.needs import INTERPRETER
from shuffledp.engines.sources import Source, Stretch
from shuffledp.engines.stretches import Lane, levels_between, read_closed
from shuffledp.errors import ParameterError
from shuffledp.protocols.learner import BatchMechanism
from shuffledp.protocols.tally_rows import TallyRows

Progress = Callable[[int], None]
"""Called with the number of users who have reported so far."""

# Messages of a grain, about; grains of a part.
_GRAIN_MESSAGES, _GRAINS = 1 << 20, 16
# Bytes that one message takes while it is drawn, split and counted.
_MESSAGE_BYTES = 32
# Parts of a stretch, at most, and the part of the memory that their tallies may take.
_PARTS, _TALLIES_PART = 64, 8


@dataclass(frozen=True, slots=True, eq=False)
class ToldStretch:
    """What is known after some more users.

    Attributes:
        first: users before them.
        end: users so far.
        estimates: from the last slot that was over before them to the last that is over now.
    """

    first: int
    end: int
    estimates: RunningEstimates


@dataclass(frozen=True, slots=True)
class Cutting:
    """How many users are done together: in one go, by one task, and before estimates are told.

    Attributes:
        grain: users whose messages are made at once; the plan alone decides it, as randomness belongs to grains.
        part: users of one task.
        stretch: users between two times at which estimates are told.
        needs: bytes that one task needs.
    """

    grain: int
    part: int
    stretch: int
    needs: int

    @classmethod
    def of(cls, plan: Any, engine: Engine, source: Source) -> "Cutting":
        """For a running sum of these people on this engine.

        Raises:
            ParameterError: one task needs more memory than it may have.
        """
        messages = int(plan.messages_per_user_max)
        grain, part, needs, tallies = _task(plan, source)
        if needs > engine.task_bytes:
            way_out = f"allow {_more(needs, engine)} with --memory, or plan for fewer numbers or messages"
            problem = f"is all that one task has, and {messages:,} messages a user need {needs:,}"
            raise ParameterError("memory", engine.task_bytes, problem, way_out)
        fit = engine.task_bytes // _TALLIES_PART // tallies
        parts = min(_PARTS * engine.tasks_at_once, max(engine.tasks_at_once, fit))
        return cls(grain, part, part * parts, needs)


def _task(plan: Any, source: Source) -> tuple[int, int, int, int]:
    """Users whose messages are made at once, and of a task; the bytes that it needs, and that its tallies take."""
    messages, coordinates = int(plan.messages_per_user_max), int(plan.domain.coordinates)
    grain = grain_of(messages)
    # Both are powers of two.
    part = max(grain * _GRAINS, source.unit)
    numbers = 8 * coordinates * (plan.shufflers_used + 4)
    needs = grain * (messages * _MESSAGE_BYTES + numbers) + part * source.row_bytes
    # A tally is a sum and a count for each coordinate; every slot closes two batches at most.
    tallies = (part // plan.slot_users + 2 * plan.shufflers_used + 1) * 2 * (16 * coordinates + 48)
    return grain, part, needs, tallies


def bytes_needed(plan: Any, source: Source, tasks: int) -> int:
    """About how many bytes all processes take together, at least, beside the plan's own tables.

    Args:
        plan: a running sum's.
        source: everybody's values.
        tasks: how many are worked on at once; the process that reads the tallies is another one where they are several.
    """
    _, _, needs, tallies = _task(plan, source)
    held = source.rows * source.row_bytes if source.is_held else 0
    return (tasks + (tasks > 1)) * INTERPRETER + held + tasks * (needs + 2 * tallies)


def grain_of(messages: int) -> int:
    """Users whose messages are made at once, where each sends at most so many: a power of two.

    >>> grain_of(80), grain_of(3_000_000)
    (8192, 1)
    """
    return 1 << min(16, max(0, (_GRAIN_MESSAGES // messages).bit_length() - 1))


def _more(needs: int, engine: Engine) -> str:
    """As much memory as would do, in words: every task's data, and what they take without any."""
    megabytes = -(-(needs - engine.task_bytes) * (engine.tasks_at_once + 1) >> 20)
    return f"{megabytes:,} MB more"


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The tallies of some batches of a level: those that close with these slots."""

    level: int
    ends: NDArray[np.int64]
    rows: TallyRows


@dataclass(frozen=True, slots=True, eq=False)
class _Joining:
    """The people of one task, and the batches that they join."""

    people: Stretch
    levels: tuple[Lane, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Left:
    """What tasks leave of their parts: tallies of batches, and what was noticed of the rows."""

    found: tuple[Found, ...]
    noticed: frozenset[Any] = frozenset()

    @classmethod
    def merge(cls, several: "Iterable[_Left]") -> "_Left":
        """One of several: nothing is added up before all of a stretch is there."""
        every = list(several)
        noticed = frozenset().union(*(each.noticed for each in every))
        return cls(tuple(found for each in every for found in each.found), noticed)


@dataclass(frozen=True, slots=True)
class _Counting:
    """The task: make and count the messages of a part."""

    plan: Any
    key: Entrusted
    is_secure: bool
    fingerprint: bytes
    grain: int

    def __call__(self, part: _Joining) -> _Left:
        key = JobKey(self.key.open(), self.is_secure)
        kept: list[TallyRows | None] = [None] * len(part.levels)
        for first, some in part.people.blocks(self.grain):
            # Drawn once: all of a user's batches get the same rows.
            prepared = self.plan.prepare(
                some, bits=self._bits(key, "prepare", first), positions=np.arange(first, first + len(some))
            )
            for place, level in enumerate(part.levels):
                bits = self._bits(key, f"shuffler {level.number}", first)
                for at, rows in counted(level, prepared, first, bits):
                    whole = kept[place] or rows.empty(len(level.ends))
                    whole.add(at, rows)
                    kept[place] = whole
        found = zip(part.levels, kept, strict=True)
        every = tuple(Found(level.number, level.ends, rows) for level, rows in found if rows is not None)
        return _Left(every, part.people.noticed)

    def _bits(self, key: JobKey, purpose: str, first: int) -> Any:
        return key.bits(f"running sum, {purpose}", 0, self.fingerprint, first)


def counted(level: Lane, prepared: Any, first: int, bits: Any) -> Iterator[tuple[int, TallyRows]]:
    """The tallies of those batches of a level that these users join, batches of one size together.

    Args:
        level: its batches.
        prepared: a row a user.
        first: the number of the first user.
        bits: where the noise comes from.

    Returns:
        The place of the first of some batches, and their tallies.
    """
    end = first + len(prepared)
    begin, behind = (
        int(np.searchsorted(level.closes, first, side="right")),
        int(np.searchsorted(level.opens, end, side="left")),
    )
    opens, closes = np.maximum(level.opens[begin:behind], first), np.minimum(level.closes[begin:behind], end)
    kinds = level.kinds[begin:behind]
    # Batches in a row that are alike, and between which nobody is missing.
    new = np.flatnonzero((kinds[1:] != kinds[:-1]) | (opens[1:] != closes[:-1])) + 1
    for low, high in zip([0, *new.tolist()], [*new.tolist(), len(kinds)], strict=True):
        if low == high:
            continue
        mechanism: BatchMechanism = level.mechanisms[int(kinds[low])]
        rows = prepared[int(opens[low]) - first : int(closes[high - 1]) - first]
        seat = int(opens[low] - level.opens[begin + low])
        yield begin + low, mechanism.tally_runs(rows, seat, opens[low:high] - opens[low], bits=bits)


def running_sum(
    engine: Engine, plan: Any, source: Source, *, key: JobKey, progress: Progress | None = None
) -> Iterator[ToldStretch]:
    """Run a running sum over everybody's values, every message made and counted, a stretch at a time.

    Args:
        engine: where it runs.
        plan: a running sum's.
        source: everybody's values, in the order in which people come; at most as many as the plan has users.
        key: where all randomness comes from; a seeded one labels the answer a simulation.
        progress: called with the number of users who have reported so far.

    Returns:
        Stretch after stretch, all the way to the last user.

    Raises:
        ParameterError: more people than the plan has users, or one task needs more memory than it may have.
    """
    plan.check_reports(source.rows)
    cutting = Cutting.of(plan, engine, source)
    return _stretches(engine, plan, source, key, progress, cutting)


def _stretches(
    engine: Engine, plan: Any, source: Source, key: JobKey, progress: Progress | None, cutting: Cutting
) -> Iterator[ToldStretch]:
    task = _Counting(plan, engine.entrust(key.raw), key.is_secure, bytes.fromhex(plan.fingerprint), cutting.grain)
    course, decoding = plan.course, plan.learner().decoding()
    left: dict[int, TallyRows] = {}
    noticed: frozenset[Any] = frozenset()
    for first in range(0, source.rows, cutting.stretch):
        end = min(first + cutting.stretch, source.rows)
        while True:
            parts = _Parts(plan, course, source, first, end, cutting.part)
            told = None if progress is None else _Telling(progress, parts)
            found = engine.fold(parts, task, _Left.merge, progress=told)
            noticed |= found.noticed
            if (agreeing := source.agreeing(noticed)) is None:
                break
            # The same rows with the same bits: nobody has seen what was made of them before.
            source = agreeing
        slots = int(course.place_of(end)[0])
        closed = read_closed(levels_between(plan, course, first, end), found.found, left, slots)
        # What tasks left is not needed while others work on the next stretch.
        del found
        before, slots_before = decoding.last, decoding.slots
        prefixes = np.concatenate((before[np.newaxis], decoding.take(slots, closed)))
        del closed
        rows = prefixes[:, 0] if plan.domain.coordinates == 1 else prefixes
        yield ToldStretch(first, end, RunningEstimates(plan, end, rows, not key.is_secure, slots_before))


@dataclass(frozen=True, slots=True)
class _Telling:
    """Says how many users are done where an engine says how many parts."""

    progress: Progress
    parts: "_Parts"

    def __call__(self, done: int) -> None:
        self.progress(min(self.parts.first + done * self.parts.part, self.parts.end))


@dataclass(frozen=True, slots=True, eq=False)
class _Parts(Sequence[_Joining]):
    """The parts of a stretch, each made when it is needed."""

    plan: Any
    course: Any
    source: Source
    first: int
    end: int
    part: int

    def __len__(self) -> int:
        return -(-(self.end - self.first) // self.part)

    def __getitem__(self, place: Any) -> Any:
        if not 0 <= place < len(self):
            raise IndexError(place)
        first = self.first + place * self.part
        end = min(first + self.part, self.end)
        return _Joining(self.source.part(first, end), levels_between(self.plan, self.course, first, end))
