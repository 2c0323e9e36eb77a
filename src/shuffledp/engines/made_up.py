"""Made-up people for a plan, in parts: nobody holds all of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.engines.sources import Source, Stretch
from shuffledp.simulation.environments.synthetic import synthetic_rows

# Users that are made up together.
_TOGETHER = 1 << 16


@dataclass(frozen=True, eq=False)
class MadeUp(Source):
    """As many people as a plan has users, with values of its domain.

    Attributes:
        plan: says how many, and what values are.
        seed: decides them.
    """

    plan: Any
    seed: int

    @property
    def rows(self) -> int:
        return int(self.plan.users)

    @property
    def unit(self) -> int:
        return _TOGETHER

    @property
    def row_bytes(self) -> int:
        return 32 * max(1, int(self.plan.domain.coordinates))

    def part(self, first: int, last: int) -> "MadeUpPart":
        return MadeUpPart(self, first, last)


@dataclass(frozen=True, eq=False)
class MadeUpPart(Stretch):
    """Some of them."""

    source: MadeUp
    first: int
    last: int

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        for first in range(self.first, self.last, rows):
            yield first, self._between(first, min(first + rows, self.last))

    def _between(self, first: int, last: int) -> Any:
        """Their checked values: a slice of those that are made up with them."""
        plan, found = self.source.plan, []
        for start in range(first - first % _TOGETHER, last, _TOGETHER):
            count = min(_TOGETHER, plan.users - start)
            made = synthetic_rows(plan, start, count, seed=self.source.seed)
            found.append(made[max(0, first - start) : last - start])
        return plan.check_values(found[0] if len(found) == 1 else np.concatenate(found))
