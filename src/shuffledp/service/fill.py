"""How full a task's open batches are, as a shuffler says it: in tenths, of the last point of a grid on its clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from shuffledp.errors import DataError

VERSION = 1
EVERY_SECONDS = 10
"""Between two points of the grid, which are the multiples of it since the epoch."""
FULL = 10


@dataclass(frozen=True, slots=True)
class Fill:
    """What a shuffler tells of a task's open batches.

    Attributes:
        tenths: for every level, lowest first, how full the newest of its batches was, rounded down; None before it is
            known, which is at the next point of the grid.

    >>> fill = Fill((4, 10, 0))
    >>> Fill.from_document(fill.document("ab")) == fill
    True
    """

    tenths: tuple[int | None, ...]

    def document(self, task_id: str) -> dict[str, Any]:
        """The fill of a task or a round as JSON."""
        levels = [{"level": level, "tenths": found} for level, found in enumerate(self.tenths, 1)]
        return {"version": VERSION, "task_id": task_id, "every_seconds": EVERY_SECONDS, "levels": levels}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The fill that a JSON document describes."""
        levels = document.get("levels") if isinstance(document, Mapping) else None
        if isinstance(levels, list) and document.get("version") == VERSION:
            found = tuple(each.get("tenths", -1) if isinstance(each, Mapping) else -1 for each in levels)
            if all(each is None or (type(each) is int and 0 <= each <= FULL) for each in found):
                return cls(found)
        raise DataError("fill", "something else", "must be a task's fill in tenths", "ask a shuffler of this version")
