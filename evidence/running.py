"""Counts that are known after every person, by several shufflers at once, beside the strongest curator known."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from evidence.accuracy import EXACT, TARGET
from evidence.claims import Claim, Effort, Measured, Says
from evidence.measuring import part
from evidence.printed import Printed
from shuffledp import Privacy, RandomBits
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.references.continual.buffered import buffered_curator_bound
from shuffledp.simulation.environments.hard_streams import hard_stream

MILLION = 1_000_000
SOONER = Privacy(1, 1e-7)
THEORY, HOWTO = "docs/theory/carried-noise.md", "docs/howto/count-as-people-come.md"
PLANNED = "The bound that the planner proves, computed again."


@cache
def planned(users: int, shufflers: int, privacy: Privacy, noise: str) -> Any:
    """A plan of a running count with this noise, or the best of all."""
    return PROTOCOLS["counter"].plan(users=users, shufflers=shufflers, privacy=privacy, method=noise)


def bound(users: int, shufflers: int, privacy: Privacy, noise: str) -> Callable[[Effort], Measured]:
    """What the plan proves for all times at once."""
    return lambda _: Measured.exact(planned(users, shufflers, privacy, noise).error_bound)


def curator(users: int, privacy: Privacy) -> Callable[[Effort], Measured]:
    """What the strongest curator known proves."""
    return lambda _: Measured.exact(buffered_curator_bound(users, privacy, 0.95))


def whole_runs_within(effort: Effort) -> Measured:
    """The part of runs over a million people in which every one of the million answers is within the bound."""
    plan = planned(MILLION, 4, TARGET, "auto")
    values = hard_stream(MILLION, 4, TARGET.epsilon, seed=effort.seed)
    truth, learner = np.cumsum(values, dtype=np.int64), plan.learner()
    limit = Printed("README.md", r"all million answers\nwithin (\d+), by four").read()
    runs = effort.of(150, 2_000)
    hits = sum(
        bool(np.abs(learner.run(values, bits=bits).every() - truth).max() <= limit.value + limit.half)
        for bits in RandomBits.seeded(effort.seed).spawn(runs)
    )
    return part(hits, runs, f"{hits} of {runs} runs, all {MILLION:,} answers of each looked at")


def _cell(file: str, row: str, column: int) -> Printed:
    """A number in a table, by the words that its row begins with."""
    return Printed(file, rf"\| {re.escape(row)} \|" + r"[^|\n]*\|" * column + r" ([\d.,]+) \|")


def _tabled() -> list[Claim]:
    """The cells of both tables of bounds."""
    found = []
    carried = tuple((shufflers - 1, shufflers, "carried") for shufflers in (2, 3, 4))
    rows = [
        *(
            (THEORY, f"{users:,} users", users, TARGET, ((0, 4, "laplace"), *carried), 4)
            for users in (10_000, 100_000, MILLION)
        ),
        (HOWTO, "10,000 users, three shufflers", 10_000, SOONER, ((0, 3, "laplace"), (1, 3, "carried")), 2),
        (HOWTO, "1,000,000 users, four shufflers", MILLION, SOONER, ((0, 4, "laplace"), (1, 4, "carried")), 2),
    ]
    for file, row, users, privacy, cells, last in rows:
        said = f"{users:,} people, delta {privacy.delta:g}"
        for column, shufflers, noise in cells:
            found.append(
                Claim(
                    name=f"A running count of {said}: {noise} noise, {shufflers} shufflers, all answers within",
                    printed=(_cell(file, row, column),),
                    how=PLANNED,
                    because=EXACT,
                    measure=bound(users, shufflers, privacy, noise),
                )
            )
        found.append(
            Claim(
                name=f"A running count of {said}: the strongest curator known",
                printed=(_cell(file, row, last),),
                how="The bound of the best factorization with a few buffers, computed again.",
                because=EXACT,
                measure=curator(users, privacy),
            )
        )
    return found


CLAIMS = [
    Claim(
        name="Of a million people, all answers of four shufflers are within",
        printed=(Printed("README.md", r"all million answers\nwithin (\d+), by four"),),
        how=PLANNED,
        because=EXACT,
        measure=bound(MILLION, 4, TARGET, "auto"),
    ),
    Claim(
        name="and the strongest curator known, who holds all the data, reaches",
        printed=(Printed("README.md", r"who holds all the data, reaches (\d+)\."),),
        how="The bound of the best factorization with a few buffers, computed again.",
        because=EXACT,
        measure=curator(MILLION, TARGET),
    ),
    Claim(
        name="All million answers are within that in so many in a hundred runs",
        printed=(Printed("README.md", r"all million answers\nwithin 99, by four", means=0.95),),
        how="Whole runs over a million people, on a draw of the lower bound's hard input; every answer is looked at.",
        because="The plan promises 95% or more; Clopper and Pearson's interval of so many runs may lie above it.",
        says=Says.AT_LEAST,
        measure=whole_runs_within,
    ),
    *_tabled(),
]
