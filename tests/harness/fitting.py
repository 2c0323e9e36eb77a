"""Rows for fits on engines: blocks of features and targets, whose first reader may be killed."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.engines.sources import Source, Stretch


@dataclass(frozen=True, eq=False)
class TableRows(Source):
    """A table in memory, its last column the target, in pieces of `unit` rows."""

    table: Any
    pieces: int = 256
    mark: Path | None = None

    @property
    def rows(self) -> int:
        return len(self.table)

    @property
    def unit(self) -> int:
        return self.pieces

    @property
    def row_bytes(self) -> int:
        # As if rows were long: so that tasks with little memory read a piece each.
        return 16_000

    def part(self, first: int, last: int) -> "TablePart":
        return TablePart(self.table[first:last], first, self.mark)


@dataclass(frozen=True, eq=False)
class TablePart(Stretch):
    table: Any
    first: int
    mark: Path | None

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        for start in range(0, len(self.table), rows):
            some = self.table[start : start + rows]
            if self.mark is not None and self.first and not self.mark.exists():
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield self.first + start, (some[:, :-1], some[:, -1])


def as_they_are(people: Any) -> Any:
    """Rows that are prepared already; whoever's target is 1 had something clipped."""
    features, targets = people
    return features, targets, (targets == 1)[:, np.newaxis]
