"""All tables together: rows are measured by several processes and come out in the tables' order."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.experiments.common import Progress
from shuffledp.experiments.resumed import in_processes
from shuffledp.experiments.survey import table1, table2, table3, table4, table5, table6
from shuffledp.experiments.survey.measuring import Effort, Setting
from shuffledp.experiments.survey.results import Row, Table, document
from shuffledp.privacy import Privacy

TABLES: dict[int, Any] = {each.NUMBER: each for each in (table1, table2, table3, table4, table5, table6)}
# Tables whose rows take longest begin first.
_LONGEST_FIRST = (4, 3, 1, 2, 6, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The tables that were measured, at one privacy."""

    setting: Setting
    tables: tuple[Table, ...]
    seconds: float

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": 1,
            "epsilon": self.setting.privacy.epsilon,
            "delta": self.setting.privacy.delta,
            "effort": self.setting.effort.value,
            "seed": self.setting.seed,
            "seconds": self.seconds,
            "tables": [document(table) for table in self.tables],
        }


def compare(
    *,
    privacy: Privacy,
    effort: Effort = Effort.normal,
    seed: int = 1,
    tables: Sequence[int] = (),
    workers: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Measure the tables asked for, or all; the same seed gives the same numbers, however many processes there are.

    Reference: [004] Tables 1 to 6.
    """
    if isinstance(seed, bool) or not 0 <= seed < 2**31:
        raise ParameterError("seed", seed, "must be a whole number from 0 to 2^31 - 1", "pass for instance 1")
    if not 0.05 <= privacy.epsilon <= 5:
        raise ParameterError("epsilon", privacy.epsilon, "must lie in 0.05..5 for these tables", "try 1")
    if privacy.delta > 1e-3 or privacy.delta < 1e-15:
        raise ParameterError("delta", privacy.delta, "must lie in 1e-15..1e-3 for these tables", "try 1e-6")
    wanted = sorted(set(tables)) or list(TABLES)
    for number in wanted:
        if number not in TABLES:
            raise ParameterError(
                "table", number, f"must be one of {', '.join(map(str, TABLES))}", "leave it out for all"
            )
    started = time.perf_counter()
    setting = Setting(privacy=privacy, effort=effort, seed=seed)
    tasks = sorted(
        ((number, place) for number in wanted for place in range(len(TABLES[number].ROWS))),
        key=lambda task: (_LONGEST_FIRST.index(task[0]), task[1]),
    )
    rows: dict[tuple[int, int], Row] = {}
    if progress is not None:
        progress(0, len(tasks))
    for task, row in in_processes(tasks, partial(_measure, setting), workers):
        rows[task] = row
        if progress is not None:
            progress(len(rows), len(tasks))
    measured = tuple(
        TABLES[number].assemble(setting, tuple(rows[number, place] for place in range(len(TABLES[number].ROWS))))
        for number in wanted
    )
    return Comparison(setting=setting, tables=measured, seconds=time.perf_counter() - started)


def measure_row(number: int, place: int, setting: Setting) -> Row:
    """One row of one table.

    Args:
        number: of the survey's table, from 1 to 6.
        place: of the row in it, from 0.
        setting: privacy, effort and seed.

    Returns:
        The row: what the survey says of it, and what was measured.
    """
    row: Row = TABLES[number].ROWS[place](setting)
    return row


def _measure(setting: Setting, task: tuple[int, int]) -> Row:
    return measure_row(*task, setting)
