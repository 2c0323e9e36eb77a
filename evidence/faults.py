"""Faults that are survived: servers killed under load, answers that are lost, people who come again."""

import tempfile
from pathlib import Path

from evidence.claims import Claim, Effort, Measured
from evidence.printed import Printed
from evidence.siblings import tested

NONE_LOST = Printed("README.md", r"with real encryption and (no) lost report", means=0.0)
NOR_TWICE = Printed("docs/reference/life-of-a-report.md", r"## Why (none) is lost and none counted twice", means=0.0)
COUNTED = "Every report is looked for in the stores: no tolerance."


def killed(effort: Effort) -> Measured:
    """Reports lost or counted twice while both servers are killed again and again."""
    users, kills, times = effort.of(1_000, 4_000), effort.of(10, 30), effort.of(1, 3)
    killed = again = 0
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder:
            after = tested("faults.test_kill").survived(Path(folder), users=users, kills=kills)
        killed, again = killed + after.killed.total(), again + after.statuses[200]
    told = f"{killed} kills; {2 * users * times:,} people; {again:,} sent again, answered as known"
    return Measured.exact(0.0, told)


def hops_killed(effort: Effort) -> Measured:
    """The same of a cascade of three, every hop killed in turn."""
    users, turns = effort.of(300, 3_000), effort.of(1, 10)
    with tempfile.TemporaryDirectory() as folder:
        counted = tested("faults.test_cascade_kill").survived(Path(folder), users=users, turns=turns)
    return Measured.exact(float(users - counted), f"{4 * turns} kills, {users:,} people")


def heard_once(effort: Effort) -> Measured:
    """People who were heard twice, or never, where devices die with half of an answer and the shuffler is killed."""
    crowd = tested("faults.test_tokens_kill")
    with tempfile.TemporaryDirectory() as folder:
        crowd.test_killed_on_both_sides_everybody_is_heard_once(Path(folder))
    return Measured.exact(
        0.0, f"{crowd.PEOPLE} people with a token each, {crowd.KILLS} kills, a third of requests broken off"
    )


CLAIMS = [
    Claim(
        name="Shuffler and analyzer killed under load: reports lost, or counted twice",
        printed=(NONE_LOST, NOR_TWICE),
        how="Real servers, ended by SIGKILL at random moments while people report, some of whom wait for no answer; "
        "then every acknowledged report is looked for in each of its batches.",
        because=COUNTED,
        measure=killed,
    ),
    Claim(
        name="Three hops and the analyzer killed in turn: reports lost, or counted twice",
        printed=(NONE_LOST, NOR_TWICE),
        how="The same with a cascade of three shufflers.",
        because=COUNTED,
        measure=hops_killed,
    ),
    Claim(
        name="Devices that die half-way and a shuffler that is killed: people heard twice, or not at all",
        printed=(Printed("README.md", r"admitted without names\]\([^)]*\), (once each)", means=0.0),),
        how="People with one token each try until they are told that it was heard; requests and answers break off.",
        because=COUNTED,
        measure=heard_once,
    ),
]
