"""A plan of sliding windows on every road that a report can take: exact, or somebody was routed wrongly."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.machine import run
from harness.nursery import releases_despite_kills
from harness.windows import WINDOWS, WindowCount, window_task
from harness.world import open_here
from shuffledp import Privacy, RandomBits, simulate
from shuffledp.errors import DataError
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.learner import Cohort
from shuffledp.protocols.runner import ask_and_tell
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES

# Users, slots and shufflers: slots of one size and of two, a single one, and fewer than shufflers.
SHAPES = [(21, 7, 3), (19, 7, 3), (18, 7, 3), (15, 7, 3), (9, 9, 3), (10, 9, 4), (12, 5, 1), (7, 2, 3), (5, 1, 2)]


@pytest.fixture(autouse=True)
def family() -> Iterator[None]:
    PROTOCOLS.join(WINDOWS)
    yield
    PROTOCOLS.leave("windows")


def a_plan(users: int = 26, slots: int = 7, shufflers: int = 3) -> WindowCount:
    return PROTOCOLS["windows"].plan(users=users, privacy=Privacy(8, 0.1), slots=slots, shufflers=shufflers)


def values_for(users: int) -> Any:
    return (np.arange(users) * 7 % 5 < 2).astype(np.uint8)


def exactly(plan: WindowCount) -> list[tuple[int, int]]:
    """The time and the count when each slot closes."""
    edges = plan.schedule.users_by(np.arange(1, plan.slots + 1)).tolist()
    return [(edge, int(values_for(edge).sum())) for edge in edges]


def is_exact(plan: WindowCount, releases: list[Any]) -> bool:
    """Every count is right, and nothing is left of the masks, of which each user drew once for all its windows."""
    return [(each.time, each.estimate) for each in releases] == exactly(plan) and releases[-1].bound == 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_message_made_and_read_in_one_process(shape: tuple[int, int, int]) -> None:
    plan = a_plan(*shape)
    values, learner = values_for(plan.users), plan.learner()

    def prepared(cohort: Cohort, first: int, users: int, clients: RandomBits) -> Any:
        part = slice(first, first + users)
        return plan.prepare(values[part], bits=clients, positions=np.arange(plan.users)[part])

    states = list(ask_and_tell(learner, plan.open_batches, prepared, plan.users, bits=RandomBits.seeded(1)))
    assert [(state.users, state.total) for state in states] == exactly(plan) and states[-1].masks == 0
    # A state is saved and goes on.
    assert all(learner.resume(state.document()) == state for state in states)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_simulation(shape: tuple[int, int, int]) -> None:
    plan = a_plan(*shape)
    values = values_for(plan.users)
    for fast in (False, True):
        answer = simulate(plan, values, bits=RandomBits.seeded(2), fast=fast)
        assert (answer.value, answer.bound) == (values.sum(), 0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_whole_road_without_a_network(
    shape: tuple[int, int, int], make_task: Callable[..., Task], make_desks: Callable[..., Any]
) -> None:
    plan = a_plan(*shape)
    task = make_task(plan, allow_unbounded=True)
    assert Task.from_text(task.text).plan == plan and task.routing.windows
    assert is_exact(plan, make_desks(task).run(values_for(plan.users).tolist()))


def test_windows_are_told_in_order_whatever_the_order_of_arrival(
    make_task: Callable[..., Task], key: PrivateKey, analyzer_memory: Callable[[], Any]
) -> None:
    """Reports of all users at once, in any order; batches delivered last first."""
    plan, bits = a_plan(), RandomBits.secure()
    task, values = make_task(plan, allow_unbounded=True), values_for(26)
    order = uniform_permutation(26, bits=bits)
    seats = [task.routing.batches_of(int(position)) for position in order]
    batches: dict[str, bytes] = {}
    for seat, report in zip(seats, make_reports(task, values[order], seats, bits=bits), strict=True):
        for batch in seat:
            length = batch.messages * CIPHERTEXT_BYTES
            batches[batch.batch_id] = batches.get(batch.batch_id, b"") + report[:length]
            report = report[length:]
        assert report == b""
    desk, records = AnalyzerDesk({task.id: task}), analyzer_memory()
    in_order = sorted(batches, key=lambda name: int(name.split(".")[2]))
    assert in_order == ["1.0.1", "2.0.2", "3.0.3", "1.1.4", "2.2.5", "3.3.6", "1.4.7"]
    for name in reversed(in_order):
        assert records.released == [] and desk.deliver(records, task.id, name, batches[name])
        desk.read(records, task.id, name, open_here(key, batches[name], task.id, name))
    assert is_exact(plan, records.released)


def test_reports_are_made_for_seats_of_the_task_only(make_task: Callable[..., Task]) -> None:
    task, other = make_task(a_plan(), allow_unbounded=True), make_task(a_plan(users=27), allow_unbounded=True)
    seats = [task.routing.batches_of(0), other.routing.batches_of(9)]
    with pytest.raises(
        DataError, match=r"seat must be one that the task has, got 1\.1\.4 2\.2\.5 3\.0\.3: take a seat"
    ):
        make_reports(task, np.array([0, 1]), seats, bits=RandomBits.secure())


def test_live_over_http_with_both_servers_killed_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers in processes of their own, which know the protocol by an entry point."""
    about = tmp_path / "site-packages" / "windows_package-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: windows-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[shuffledp.protocols]\nwindows = harness.windows:WINDOWS\n")
    monkeypatch.syspath_prepend(about.parent)
    key = PrivateKey.generate()
    task = window_task(key.public)
    releases = releases_despite_kills(tmp_path, task, key, values_for(26), 7)
    assert [(each["time"], each["estimate"]) for each in releases] == exactly(task.plan)
    assert releases[-1]["bound"] == releases[-1]["dropped"] == releases[-1]["void"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_or_doubled_whatever_happens(tmp_path: Path, seed: int) -> None:
    told = run(tmp_path, seed, 250, window_task).told
    # A run in which nothing happened would prove nothing.
    assert told["acknowledged"] > 20 and told["sealed"] > 6 and min(told["refused"], told["retried"]) > 0, told
    assert sum(count for words, count in told.items() if "killed" in words) > 10, told
