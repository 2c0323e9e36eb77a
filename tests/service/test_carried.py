"""A running count with carried noise, live: windows of three slots, whose users draw once for all their windows.

Comparisons of laws are chi-square tests with a false-alarm rate of 1e-9, and clients draw from secure bits; bounds are
planned to fail with that probability.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np
import pytest

from harness.machine import run
from harness.nursery import releases_despite_kills
from shuffledp.continual.carried.counter import VOID, CarriedCounter
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import plan_of
from shuffledp.continual.request import CountRequest
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client, ReportError
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey, PublicKey
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, Unpacked, new_seat, unpack_upload
from shuffledp.testing.statistics import assert_same_law

FALSE_ALARM = 1e-9
LIVE, SIMULATED = 100, 3000


@cache
def a_plan(users: int = 28, size: int = 4) -> CarriedPlan:
    """A few slots of so many users, in windows of three of them."""
    asked = CountRequest(users=users, shufflers=3, privacy=Privacy(8, 0.1), confidence=1 - FALSE_ALARM)
    plan = plan_of(asked, 3, size)
    assert plan.shufflers_used == plan.weights.windows == 3 and plan.slot_users == size
    return plan


def carried_task(key: PublicKey, choice: Random | None = None) -> Task:
    """A task of that plan, or of one in which the first slots have a user less."""
    plan = a_plan(34, 5) if choice is not None and choice.random() < 0.5 else a_plan()
    return Task.create(plan, key, bits=RandomBits.secure(), allow_unbounded=True)


def values_for(users: int) -> Any:
    return (np.arange(users) * 7 % 5 < 2).astype(np.uint8)


def edges(plan: CarriedPlan) -> list[int]:
    """The users by the end of each slot."""
    return plan.schedule.users_by(np.arange(1, plan.weights.slots + 1)).tolist()  # type: ignore[no-any-return]


def errors(plan: CarriedPlan, releases: list[Any]) -> list[float]:
    """How far off each release is; there is one when each slot closes."""
    assert [each.time for each in releases] == edges(plan)
    truth = np.concatenate(([0], np.cumsum(values_for(plan.users))))
    return [float(each.estimate - truth[each.time]) for each in releases]


# --- tasks ------------------------------------------------------------------------------------


def test_a_task_carries_noise_only_if_it_is_allowed(key: PrivateKey) -> None:
    plan = a_plan()
    with pytest.raises(ParameterError, match=r"must not let one client spoil it .*8 false people in a row") as no:
        Task.create(plan, key.public, bits=RandomBits.secure())
    assert no.value.parameter == "method" and "--allow-unbounded" in str(no.value)
    task = carried_task(key.public)
    # What is exposed is in the document, and a task without it is another.
    assert task.warnings == plan.warnings and any(plan.exposed in warning for warning in task.document["warnings"])
    assert Task.from_text(task.text).plan == plan and task.routing.windows and task.routing.shufflers == 3
    softened = task.text.replace(plan.exposed, "nothing to see")
    with pytest.raises(ParameterError, match="warnings and all"):
        Task.from_text(softened)


@pytest.mark.parametrize("shufflers", [2, 3, 4])
def test_what_is_live_carries_no_noise_unasked(shufflers: int) -> None:
    asked = {"users": 5000, "shufflers": shufflers, "privacy": Privacy(1, 1e-6)}
    best, live = (PROTOCOLS["counter"].plan(**asked, live=live) for live in (False, True))
    assert best.method == "carried" and live.method == "coins" and not live.can_be_spoiled


# --- the whole road ---------------------------------------------------------------------------


def test_the_whole_road_without_a_network(make_task: Callable[..., Task], make_desks: Callable[..., Any]) -> None:
    for plan in (a_plan(), a_plan(34, 5)):
        task = make_task(plan, allow_unbounded=True)
        releases = make_desks(task).run(values_for(plan.users).tolist())
        found = errors(plan, releases)
        assert max(map(abs, found)) <= plan.error_bound and len(set(found)) > 1
        assert {(each.bound, each.dropped, each.void) for each in releases} == {(plan.error_bound, 0, 0)}


def live_errors(desks: Any, plan: CarriedPlan, trials: int) -> Any:
    return np.array([errors(plan, desks.run(values_for(plan.users).tolist())) for _ in range(trials)])


@cache
def simulated_errors(plan: CarriedPlan) -> Any:
    """By the law of everybody's noise, and of what is whole."""
    sampled = plan.sample_errors((SIMULATED,), bits=RandomBits.seeded(13))
    assert sampled.shape == (plan.weights.slots, SIMULATED)
    return sampled.T


def compared(live: Any, law: Any) -> list[tuple[Any, Any]]:
    """Estimates, and what each says of the next ones."""
    last = live.shape[1] - 1
    pairs = [(live[:, slot], law[:, slot]) for slot in (0, 1, 3, last)]
    return [*pairs, *((live[:, last] - live[:, s], law[:, last] - law[:, s]) for s in (0, last - 1))]


@pytest.mark.usefixtures("in_the_clear")
def test_the_law_is_that_of_the_simulation(make_task: Callable[..., Task], make_desks: Callable[..., Any]) -> None:
    plan = a_plan()
    live = live_errors(make_desks(make_task(plan, allow_unbounded=True)), plan, LIVE)
    for first, second in compared(live, simulated_errors(plan)):
        assert_same_law(first, second, false_alarm=FALSE_ALARM)


def drawn_again(task: Task, values: Any, seats: Any, *, bits: RandomBits) -> list[bytes]:
    """A device that draws anew for every window: what it adds to one it does not take back in the next."""
    made = []
    for value, seat in zip(values, seats, strict=True):
        reports = [make_reports(task, np.array([value]), [seat], bits=bits)[0] for _ in seat]
        starts = np.cumsum([0, *(batch.messages * CIPHERTEXT_BYTES for batch in seat)])
        made.append(b"".join(report[a:b] for report, a, b in zip(reports, starts[:-1], starts[1:], strict=True)))
    return made


@pytest.mark.usefixtures("in_the_clear")
def test_a_device_that_draws_for_every_window_anew_is_seen(
    make_task: Callable[..., Task], make_desks: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan()
    monkeypatch.setattr("harness.world.make_reports", drawn_again)
    live = live_errors(make_desks(make_task(plan, allow_unbounded=True)), plan, 80)
    with pytest.raises(AssertionError, match="two laws differ"):
        assert_same_law(live[:, -1], simulated_errors(plan)[:, -1], false_alarm=FALSE_ALARM)


# --- a spoiled window -------------------------------------------------------------------------


@pytest.mark.parametrize("slot", [0, 3, 6])
@pytest.mark.parametrize("ones", [0, 1], ids=["nobody after", "everybody after"])
def test_a_spoiled_share_makes_later_people_count_by_the_rate(
    make_task: Callable[..., Task], make_desks: Callable[..., Any], slot: int, ones: int
) -> None:
    """Whoever comes after the last good window, the bound holds."""
    plan = a_plan()
    until = int(plan.schedule.users_by(slot))
    values = values_for(plan.users)
    values[until:] = ones
    seen = 0

    def one_share_spoiled(messages: Unpacked) -> Unpacked:
        nonlocal seen
        seen += 1
        if seen != slot + 1:
            return messages
        payloads = messages.payloads.copy()
        payloads[3] ^= np.uint64(1 << 20)
        return replace(messages, payloads=payloads)

    releases = make_desks(make_task(plan, allow_unbounded=True), one_share_spoiled).run(values.tolist())
    assert [each.time for each in releases] == edges(plan)
    assert [each.void for each in releases] == [0] * slot + [1] * (plan.weights.slots - slot)
    truth = np.concatenate(([0], np.cumsum(values)))
    assert all(abs(each.estimate - truth[each.time]) <= each.bound for each in releases)
    before, after = releases[:slot], releases[slot:]
    assert all(each.bound == plan.error_bound for each in before)
    # By the rate before, brought to what people may have; the middle where there is nobody before.
    known = before[-1].estimate if before else 0.0
    rate = min(1.0, max(0.0, known / until)) if until else 0.5
    for each in after:
        since = each.time - until
        assert each.estimate == pytest.approx(known + since * rate, abs=1e-9)
        wide = plan.error_bound + (since - plan.slot_users + 1) / 2 + since * abs(rate - 0.5)
        assert each.bound == pytest.approx(wide, abs=1e-9)
    # Good windows after it say nothing new, and what is kept says why.
    counter = CarriedCounter(plan)
    assert counter.stand_in(plan.mechanism(4)) == counter.told_from(counter.told_document(VOID)) == VOID


# --- the same bytes again ---------------------------------------------------------------------


def test_retries_send_the_same_bytes_whatever_breaks_even_the_device(tmp_path: Path, key: PrivateKey) -> None:
    """A second draw for one seat would be another noise than that which later windows take back."""
    task, bits = carried_task(key.public), RandomBits.secure()
    uploads: list[list[SentReport]] = []
    given = 0
    breaks: list[Any] = [httpx.ReadError, 503, httpx.WriteError, 429, httpx.ConnectError]

    def shuffler(request: httpx.Request) -> httpx.Response:
        nonlocal given
        body = request.read()
        if request.url.path.endswith("/seats"):
            taken = range(given, given + int(request.url.params["count"]))
            given = taken.stop
            seats = [
                {"seat": new_seat(place, bits=bits), "lease_seconds": 60.0, "batches": list(map(asdict, batches))}
                for place in taken
                for batches in [task.routing.batches_of(place)]
            ]
            return httpx.Response(201, json={"seats": seats})
        uploads.append(list(unpack_upload(body)))
        if breaks:
            fault = breaks.pop(0)
            if isinstance(fault, int):
                return httpx.Response(fault, text="come back later")
            raise fault("broken", request=request)
        results = [{"report_id": report.report_id, "status": 201} for report in uploads[-1]]
        return httpx.Response(200, json={"results": results})

    def device(**more: Any) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(shuffler))
        return Client(task, "https://shuffler.test", "t" * 64, tmp_path / "outbox.db", http, **more)

    # It gives up after the first fault, and ends; another process goes on with what it left.
    with (
        device(patience=0.0, sleep=lambda pause: None) as first,
        pytest.raises(ReportError, match="9 wait in the outbox"),
    ):
        first.report_many(values_for(9))
    with device(sleep=lambda pause: None) as second:
        assert second.flush().new == 9
    assert breaks == [] and len(uploads) == 6 and given == 9
    each = {report.report_id: report for report in uploads[0]}
    assert len(each) == 9 and all({r.report_id: r for r in upload} == each for upload in uploads)
    assert len({report.body[:CIPHERTEXT_BYTES] for report in each.values()}) == 9


# --- over HTTP, with faults -------------------------------------------------------------------


def test_live_over_http_with_both_servers_killed_on_the_way(tmp_path: Path) -> None:
    key, plan, values = PrivateKey.generate(), a_plan(), values_for(28)
    releases = releases_despite_kills(tmp_path, carried_task(key.public), key, values, 7)
    assert [each["time"] for each in releases] == edges(plan)
    truth = np.concatenate(([0], np.cumsum(values)))
    assert all(abs(each["estimate"] - truth[each["time"]]) <= each["bound"] == plan.error_bound for each in releases)
    assert releases[-1]["dropped"] == releases[-1]["void"] == 0


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_or_doubled_whatever_happens(tmp_path: Path, seed: int) -> None:
    told = run(tmp_path, seed, 400, carried_task).told
    # A run in which nothing happened would prove nothing.
    assert told["acknowledged"] > 20 and told["sealed"] > 6 and min(told["refused"], told["retried"]) > 0, told
    assert sum(count for words, count in told.items() if "killed" in words) > 10, told
