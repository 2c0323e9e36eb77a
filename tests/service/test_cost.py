"""What a task is said to cost, beside reports that are really made."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shuffledp.randomness import RandomBits
from shuffledp.schedules.layout import BatchLayout
from shuffledp.service.client.making import make_reports
from shuffledp.service.cost import LARGE_REPORT_BYTES, MeasuredCost, TaskCost
from shuffledp.service.routing import Routing
from shuffledp.service.task import Task


@pytest.mark.parametrize("kind", ["running count", "running histogram", "binary coins", "windows"])
def test_bytes_are_those_of_everybodys_report(make_task: Callable[..., Task], kind: str) -> None:
    if kind == "windows":
        messages = {2: 4, 4: 3, 6: 2, 7: 2, 8: 2, 9: 1}
        routing = Routing.of(BatchLayout.sliding(users=18, slots=7, shufflers=3, messages=messages))
    else:
        routing = make_task(kind).routing
    cost = TaskCost.of(routing)
    lengths = [routing.report_bytes(position) for position in range(routing.users)]
    assert cost.upload_bytes == sum(lengths) and max(lengths) <= cost.report_bytes_max
    assert cost.report_bytes_mean == pytest.approx(np.mean(lengths))
    # What is open at one time, by counting: never more than is said.
    open_bytes: dict[str, int] = {}
    most = 0
    for position in range(routing.users):
        for batch in routing.batches_of(position):
            open_bytes[batch.batch_id] = open_bytes.get(batch.batch_id, 0) + batch.messages * 77
            if batch.seat + 1 == batch.size:
                most = max(most, sum(open_bytes.values()) + open_bytes[batch.batch_id])
                del open_bytes[batch.batch_id]
    assert 0 < most <= cost.shuffler_bytes_max


def test_seconds_are_about_those_of_a_report(make_task: Callable[..., Any]) -> None:
    """Within a factor of four of what making twenty reports takes: randomizing and packing come on top."""
    task = make_task("binary coins")
    measured = MeasuredCost.of(TaskCost.of(task.routing))
    assert 1e-6 < measured.seal_seconds < 0.1 and 1e-6 < measured.open_seconds < 0.1
    batches = [task.routing.batches_of(position) for position in range(20)]
    begun = time.process_time()
    make_reports(task, [1] * 20, batches, bits=RandomBits.secure())
    spent = (time.process_time() - begun) / 20
    assert spent / 4 < measured.device_seconds_a_report < 4 * spent


def test_a_large_report_is_warned_of() -> None:
    def cost(messages: int) -> TaskCost:
        shape = {"users": 10, "budget": 1, "shufflers": 1, "slot_users": 10, "every_slot": False}
        return TaskCost.of(Routing(**shape, messages={10: messages}))

    assert cost(LARGE_REPORT_BYTES // 77).warnings == ()
    [warning] = cost(LARGE_REPORT_BYTES // 77 + 1).warnings
    assert "16,000" in warning and "--max-messages" in warning
