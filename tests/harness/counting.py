"""People of a running sum for engines: their task may be killed once, in the middle of its rows."""

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines import Engine, JobKey
from shuffledp.engines.counting import running_sum
from shuffledp.engines.sources import Held, HeldStretch


@dataclass(frozen=True, eq=False)
class DyingPart(HeldStretch):
    """Rows of which the second block ends the process, the first time that anybody reads so far."""

    mark: Path

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        for number, block in enumerate(super().blocks(rows)):
            if number and not self.mark.exists():
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield block


@dataclass(frozen=True, eq=False)
class Dying(Held):
    """Values in memory whose first part of several blocks kills whoever reads it, once."""

    mark: Path

    def part(self, first: int, last: int) -> HeldStretch:
        return DyingPart(first, self.values[first:last], self.mark)


def prefixes_of(engine: Engine, plan: Any, source: Held, seed: int = 1) -> NDArray[Any]:
    """The estimates of the first 0, 1, ... slots, in steps, of all stretches end to end."""
    stretches = list(running_sum(engine, plan, source, key=JobKey.seeded(seed)))
    firsts = [each.estimates.prefixes[0] for each in stretches[:1]]
    return np.concatenate([np.array(firsts), *(each.estimates.prefixes[1:] for each in stretches)])
