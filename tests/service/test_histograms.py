"""Histograms through the live service: values by name on the device, every method's messages over the wire."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shuffledp import Histogram, Privacy
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.randomness import RandomBits
from shuffledp.service.task import Task
from shuffledp.service.wire import pack_messages, unpack_messages

NAMES = ["red", "green", "blue"]
VALUES = ["red"] * 48 + ["green"] * 10 + ["blue"] * 2
COUNTS = np.array([48, 10, 2])


def planned(method: str, **more: Any) -> HistogramPlan:
    asked = {"users": len(VALUES), "privacy": Privacy(6, 1e-2), "categories": NAMES} | more
    try:
        return Histogram.plan(method=method, **asked)
    except InfeasibleError as refusal:
        pytest.skip(f"{method} is not for so few users: {refusal}")


@pytest.mark.usefixtures("in_the_clear")
@pytest.mark.parametrize("method", Histogram.methods)
def test_every_method_over_the_wire(
    method: str, make_task: Callable[..., Task], make_desks: Callable[..., Any]
) -> None:
    plan = planned(method)
    if plan.messages_per_user_max > 500:
        pytest.skip(f"{method} sends {plan.messages_per_user_max} messages a user here: too many for a quick test")
    desks = make_desks(make_task(plan, allow_unbounded=True))
    (release,) = desks.run(VALUES)
    found = np.array(release.estimate)
    # Four times a 95% bound: with secure bits, a false alarm is less likely than 1e-9.
    allowed = 4 * plan.error_bound
    assert release.time == len(VALUES) and np.abs(found - COUNTS).max() <= allowed
    # A device that took the names in another order would be seen, where the noise is small enough to see anything.
    if allowed < 40:
        assert np.abs(found - COUNTS[::-1]).max() > allowed


def test_with_encryption_and_both_servers(make_task: Callable[..., Task], make_service: Callable[..., Any]) -> None:
    service = make_service()
    task = service.add(make_task(planned("decoys")))
    service.send(task, VALUES)
    service.work()
    answer = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").json()
    assert np.abs(np.array(answer["estimate"]) - COUNTS).max() <= 4 * task.plan.error_bound
    assert answer["bound"] == pytest.approx(task.plan.error_bound)


@pytest.mark.usefixtures("in_the_clear")
def test_a_running_histogram_by_names(make_task: Callable[..., Task], make_desks: Callable[..., Any]) -> None:
    plan = CounterPlan.plan(users=60, shufflers=2, privacy=Privacy(6, 1e-2), noise="coins", domain=OneHot.of(NAMES))
    task = make_task(plan)
    assert Task.from_text(task.text).plan == plan and task.categories == Names(tuple(NAMES))
    last = make_desks(task).run(VALUES)[-1]
    truth = np.array([VALUES[: last.time].count(name) for name in NAMES])
    assert np.abs(np.array(last.estimate) - truth).max() <= 4 * last.bound


def test_values_are_encoded_and_refused_on_the_device(make_task: Callable[..., Task]) -> None:
    task = make_task(planned("decoys"))
    assert task.plan.encode(["blue", "red"]).tolist() == [2, 0]
    for bad in ("purple", 1, ""):
        with pytest.raises(DataError, match="3 categories"):
            task.plan.check_values(task.plan.encode([bad]))
    catch_all = make_task(planned("decoys", categories=Names((*NAMES, "rest"), other="rest")))
    assert catch_all.plan.encode(["purple"]).tolist() == [3]
    assert Task.from_text(catch_all.text).plan.encode(["purple"]).tolist() == [3]


def test_a_method_that_one_client_can_spoil_must_be_asked_for(make_task: Callable[..., Task], monkeypatch) -> None:
    plan = planned("decoys")
    assert make_task(plan).warnings == ()
    monkeypatch.setattr(type(plan), "influence", None)
    monkeypatch.setattr(type(plan), "lying_client", "moves it as far as it likes")
    with pytest.raises(ParameterError, match="--allow-unbounded"):
        make_task(plan)


def test_labels_of_32_and_payloads_of_64_bits_survive() -> None:
    labels, payloads = np.array([0, 2**32 - 1], dtype=np.uint32), np.array([2**64 - 1, 0], dtype=np.uint64)
    packed = pack_messages(payloads, labels, 5, bits=RandomBits.secure())
    unpacked = unpack_messages(b"".join(packed))
    assert unpacked.labels.tolist() == labels.tolist() and unpacked.payloads.tolist() == payloads.tolist()
