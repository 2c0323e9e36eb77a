"""The live service's estimates have the law of the simulated ones; twins that count wrongly do not.

Every comparison is a chi-square test with a false-alarm rate of 1e-9. Clients draw from secure bits, so that no
run is like another: with so few tests, one false alarm in a hundred million runs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shuffledp.continual.counter import Counter
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.task import Task
from shuffledp.service.wire import Unpacked
from shuffledp.testing.statistics import assert_same_law

FALSE_ALARM = 1e-9
LIVE, SIMULATED = 300, 1500
USERS = 20
VALUES = [user % 3 == 0 for user in range(USERS)]

Opened = Callable[[Unpacked], Unpacked]


def fillers_counted(messages: Unpacked) -> Unpacked:
    """Fillers are zeros that do not count; here they are taken for ones that do."""
    ones = np.ones(messages.fillers, dtype=np.uint64)
    labels = np.zeros(messages.fillers, dtype=np.uint32)
    return Unpacked(
        np.concatenate((messages.payloads, ones)), np.concatenate((messages.labels, labels)), 0, messages.malformed
    )


def half_the_ones_lost(messages: Unpacked) -> Unpacked:
    """Every second message that says one is lost."""
    ones = np.flatnonzero(messages.payloads == 1)[::2]
    return replace(messages, payloads=np.delete(messages.payloads, ones), labels=np.delete(messages.labels, ones))


def drawn(plan: Any, trials: int) -> NDArray[np.float64]:
    streams = RandomBits.seeded(11).spawn(trials)
    return np.array([float(plan.sample_estimate(VALUES, bits=bits).value) for bits in streams])


def differ(first: Any, second: Any) -> None:
    """A twin that passed would say that the test sees nothing."""
    with pytest.raises(AssertionError, match="two laws differ"):
        assert_same_law(first, second, false_alarm=FALSE_ALARM)


# --- one round --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["coins"])
def test_a_binary_sum(method: str, make_task: Callable[..., Task], make_desks: Callable[..., Any]) -> None:
    plan = BinarySum.plan(users=USERS, privacy=Privacy(2, 1e-3), method=method)
    desks = make_desks(make_task(plan))
    live = [desks.run(VALUES)[-1].estimate for _ in range(LIVE)]
    assert_same_law(live, drawn(plan, SIMULATED), false_alarm=FALSE_ALARM)


@pytest.mark.usefixtures("in_the_clear")
@pytest.mark.parametrize("method", ["rr", "poisson-bits"])
def test_a_binary_sum_in_the_clear(method: str, make_task: Callable[..., Task], make_desks: Callable[..., Any]) -> None:
    plan = BinarySum.plan(users=USERS, privacy=Privacy(2, 1e-3), method=method)
    desks = make_desks(make_task(plan))
    live = [desks.run(VALUES)[-1].estimate for _ in range(LIVE)]
    assert_same_law(live, drawn(plan, SIMULATED), false_alarm=FALSE_ALARM)


@pytest.mark.usefixtures("in_the_clear")
@pytest.mark.parametrize("twin", [fillers_counted, half_the_ones_lost])
def test_a_binary_sum_that_counts_wrongly_is_seen(
    twin: Opened, make_task: Callable[..., Task], make_desks: Callable[..., Any]
) -> None:
    plan = BinarySum.plan(users=USERS, privacy=Privacy(2, 1e-3), method="poisson-bits")
    desks = make_desks(make_task(plan), twin)
    live = [desks.run(VALUES)[-1].estimate for _ in range(120)]
    differ(live, drawn(plan, SIMULATED))


# --- running sums -----------------------------------------------------------------------------


def simulated(plan: CounterPlan, values: list[Any], times: list[int]) -> NDArray[np.float64]:
    counter = Counter(plan)
    runs = (counter.run(np.array(values), bits=bits) for bits in RandomBits.seeded(12).spawn(SIMULATED))
    return np.array([[run.at(time).value for time in times] for run in runs], dtype=np.float64)


def live_runs(desks: Any, values: list[Any], times: list[int], trials: int) -> NDArray[np.float64]:
    runs = ({release.time: release.estimate for release in desks.run(values)} for _ in range(trials))
    return np.array([[run[time] for time in times] for run in runs], dtype=np.float64)


@pytest.mark.usefixtures("in_the_clear")
@pytest.mark.parametrize("name", ["running count", "running count, completed"])
def test_a_running_count(
    name: str,
    plan_named: Callable[[str], Any],
    make_task: Callable[..., Task],
    make_desks: Callable[..., Any],
) -> None:
    plan = plan_named(name)
    values, times = [user % 3 == 0 for user in range(plan.users)], [6, 12, 18, 30]
    live = live_runs(make_desks(make_task(plan)), values, times, LIVE)
    law = simulated(plan, values, times)
    for place in range(len(times)):
        assert_same_law(live[:, place], law[:, place], false_alarm=FALSE_ALARM)
    # What one estimate says of the next one is the same, too: they share batches.
    assert_same_law(live[:, 3] - live[:, 2], law[:, 3] - law[:, 2], false_alarm=FALSE_ALARM)


@pytest.mark.usefixtures("in_the_clear")
def test_a_running_histogram(
    plan_named: Callable[[str], Any], make_task: Callable[..., Task], make_desks: Callable[..., Any]
) -> None:
    plan = plan_named("running histogram")
    values, times = [[0, 1, 0, 2, 0][user % 5] for user in range(plan.users)], [6, 18]
    live = live_runs(make_desks(make_task(plan)), values[:18], times, LIVE)
    law = simulated(plan, values, times)
    for place in range(len(times)):
        for category in range(3):
            assert_same_law(live[:, place, category], law[:, place, category], false_alarm=FALSE_ALARM)


@pytest.mark.usefixtures("in_the_clear")
@pytest.mark.parametrize("twin", [half_the_ones_lost])
def test_a_running_count_that_counts_wrongly_is_seen(
    twin: Opened, plan_named: Callable[[str], Any], make_task: Callable[..., Task], make_desks: Callable[..., Any]
) -> None:
    plan = plan_named("running count")
    values, times = [user % 3 == 0 for user in range(plan.users)], [18]
    live = live_runs(make_desks(make_task(plan), twin), values[:18], times, 120)
    differ(live[:, 0], simulated(plan, values, times)[:, 0])


# --- through HTTP -----------------------------------------------------------------------------


def test_the_same_comes_out_of_the_applications(
    make_task: Callable[..., Task], make_service: Callable[..., Any]
) -> None:
    """40 tasks of 20 users, each through both applications and both stores."""
    service = make_service()
    plan = BinarySum.plan(users=USERS, privacy=Privacy(2, 1e-3), method="rr")
    tasks = [service.add(make_task(plan)) for _ in range(40)]
    for task in tasks:
        service.send(task, VALUES)
    service.work()
    answers = [service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").json() for task in tasks]
    assert {(answer["time"], answer["dropped"], answer["void"]) for answer in answers} == {(USERS, 0, 0)}
    assert_same_law([a["estimate"] for a in answers], drawn(plan, SIMULATED), false_alarm=FALSE_ALARM)
