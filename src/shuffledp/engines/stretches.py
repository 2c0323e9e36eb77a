"""The batches that a stretch of users join, shuffler by shuffler, and what those of them say that are full."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.protocols.learner import BatchMechanism
from shuffledp.protocols.tally_rows import TallyRows

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Lane:
    """Some batches of one shuffler, in the order of time.

    Attributes:
        number: of the shuffler, from 1.
        ends: the slot with which each batch closes.
        opens: the users before each batch's first one.
        closes: the users before the first one behind each batch.
        kinds: the place of each batch's mechanism in `mechanisms`.
        mechanisms: those that there are, one for each size.
    """

    number: int
    ends: Whole
    opens: Whole
    closes: Whole
    kinds: Whole
    mechanisms: tuple[BatchMechanism, ...]


def levels_between(plan: Any, course: Any, first: int, end: int) -> tuple[Lane, ...]:
    """The batches that the users first..end-1 join, of each shuffler that has one for them.

    Args:
        plan: says what users of a batch do.
        course: its batches.
        first: users before them.
        end: users up to the last of them.
    """
    slots = int(course.place_of(first)[0]), int(course.place_of(end - 1)[0]) + 1
    found = []
    for number in range(1, course.levels + 1):
        begins, ends = course.batches(number, *slots)
        if not ends.size:
            continue
        opens, closes = course.users_by(begins), course.users_by(ends)
        sizes, kinds = np.unique(closes - opens, return_inverse=True)
        mechanisms = tuple(plan.mechanism(size) for size in sizes.tolist())
        found.append(Lane(number, ends, opens, closes, kinds, mechanisms))
    return tuple(found)


def read_closed(
    levels: Iterable[Lane], found: Iterable[Any], left: dict[int, TallyRows], slots: int
) -> dict[int, tuple[Whole, Any]]:
    """What those batches say that are full when so many slots are over.

    Args:
        levels: the batches of a stretch.
        found: tallies of pieces of them.
        left: by level, the tally of a batch that was not full before the stretch; afterwards, of one that is not now.
        slots: how many are over.

    Returns:
        By level: the slots with which batches closed, and what the mechanisms read of them.
    """
    by_level: dict[int, list[Any]] = {}
    for each in found:
        by_level.setdefault(each.level, []).append(each)
    closed = {}
    for level in levels:
        pieces = by_level.get(level.number, [])
        before = left.pop(level.number, None)
        some = before if before is not None else pieces[0].rows
        whole = some.empty(len(level.ends))
        if before is not None:
            whole.add(0, before)
        for piece in pieces:
            whole.add(int(np.searchsorted(level.ends, piece.ends[0])), piece.rows)
        full = int(np.searchsorted(level.ends, slots, side="right"))
        if full < len(whole):
            left[level.number] = whole[full:]
        if full:
            closed[level.number] = (level.ends[:full], _read(level, whole, full))
    return closed


def _read(level: Lane, whole: TallyRows, full: int) -> Any:
    """What the first so many batches of a level say, batches of one size together."""
    kinds = level.kinds[:full]
    told: list[Any] = [None] * len(level.mechanisms)
    places = [np.flatnonzero(kinds == kind) for kind in range(len(level.mechanisms))]
    for kind, (mechanism, here) in enumerate(zip(level.mechanisms, places, strict=True)):
        if here.size:
            told[kind] = mechanism.read_rows(whole.chosen(here))
    some = next(each for each in told if each is not None)
    sums = np.empty((full, *some.shape[1:]), dtype=some.dtype)
    for here, each in zip(places, told, strict=True):
        if here.size:
            sums[here] = each
    return sums
