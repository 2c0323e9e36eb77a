"""Routing: the batches that the counter asks for, position by position, and nothing that a shuffler need not know."""

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.continual.counter import Counter
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.protocols.learner import OpenBatch
from shuffledp.schedules.combinatorial import slots, whole_slots
from shuffledp.schedules.layout import BatchLayout
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.rounds import routing_of_task
from shuffledp.service.routing import Routing, SeatInBatch, batch_id
from shuffledp.service.wire import CIPHERTEXT_BYTES

COUNTERS: list[dict[str, Any]] = [
    {"users": 30, "shufflers": 2, "privacy": Privacy(4, 1e-2)},
    {"users": 31, "shufflers": 2, "privacy": Privacy(4, 1e-2)},
    {"users": 600, "shufflers": 3, "privacy": Privacy(4, 1e-2)},
    {"users": 1000, "shufflers": 4, "privacy": Privacy(1, 1e-6)},
    {"users": 500, "shufflers": 1, "privacy": Privacy(2, 1e-3)},
    {"users": 400, "shufflers": 3, "privacy": Privacy(4, 1e-2), "domain": OneHot(3)},
    {"users": 400, "shufflers": 2, "privacy": Privacy(2, 1e-3), "honest_fraction": 0.7},
]


@st.composite
def routings(draw: st.DrawFn) -> Routing:
    """Any small schedule with any counts of messages, its last slot open or ending with the last user; or windows."""
    budget, shufflers, slot_users = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    every_slot, counts_everybody, windows = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    if windows:
        budget, every_slot, counts_everybody = draw(st.integers(1, 12)), False, True
        users = draw(st.integers(budget, min(60, budget * slot_users)))
        slot_users = -(-users // budget)
    else:
        users = draw(st.integers(1, min(60, slots(budget, shufflers) * slot_users)))
    if counts_everybody and not windows:
        slot_users = whole_slots(budget, shufflers, users).users
    shape = {"users": users, "budget": budget, "shufflers": shufflers, "slot_users": slot_users}
    shape |= {"counts_everybody": counts_everybody, "windows": windows}
    try:
        Routing(**shape, every_slot=every_slot, messages={0: 1})
    except DataError as refused:
        sizes = json.loads(refused.problem.removeprefix("must be for "))
    messages = {size: draw(st.integers(1, 4)) for size in sizes}
    return Routing(**shape, every_slot=every_slot, messages=messages)


# Two opinions need two shufflers and users who are all honest.
BOTH = [
    (asked, estimator)
    for asked in COUNTERS
    for estimator in ("completed", "combined")
    if estimator == "completed" or (asked["shufflers"] > 1 and "honest_fraction" not in asked)
]


def _end_of(plan: CounterPlan, batch: OpenBatch) -> int:
    """The slot that a batch ends with: where so many users have come."""
    users = sum(plan.schedule.batch_users(slot, slot + 1) for slot in range(batch.first_slot)) + batch.mechanism.users
    end = 0
    while users > 0:
        users -= plan.schedule.batch_users(end, end + 1)
        end += 1
    return end


@pytest.mark.parametrize(
    ("asked", "estimator"), BOTH, ids=lambda part: str(part.get("users", "")) if isinstance(part, dict) else part
)
def test_routing_is_what_the_counter_asks(asked: dict[str, Any], estimator: str) -> None:
    plan = CounterPlan.plan(**asked, noise="coins", estimator=estimator)
    routing, counter = Routing.of(plan.layout), Counter(plan)
    state = counter.start()
    while state.users < plan.users:
        cohort = counter.ask(state)
        for user in range(cohort.users):
            expected = tuple(
                SeatInBatch(
                    level=batch.level,
                    batch_id=batch_id(
                        batch.level, batch.first_slot, batch.first_slot + -(-batch.mechanism.users // plan.slot_users)
                    ),
                    size=batch.mechanism.users,
                    seat=batch.first_seat + user,
                    messages=batch.mechanism.messages_max,
                )
                for batch in cohort.batches
            )
            assert routing.batches_of(state.users + user) == expected
        due = [b.level for b in cohort.batches if b.first_seat + cohort.users == b.mechanism.users]
        nothing = state.prefixes[max(state.prefixes)] * 0
        state = counter.tell(state, cohort.users, dict.fromkeys(due, nothing))


@settings(deadline=None)
@given(routings())
def test_every_positions_batches_are_consistent(routing: Routing) -> None:
    members: dict[str, list[SeatInBatch]] = defaultdict(list)
    for position in range(routing.users):
        joined = routing.batches_of(position)
        levels = [batch.level for batch in joined]
        assert levels == sorted(set(levels)) and set(levels) <= set(range(1, routing.shufflers + 1))
        for batch in joined:
            members[batch.batch_id].append(batch)
        assert routing.report_bytes(position) == sum(batch.messages for batch in joined) * CIPHERTEXT_BYTES
        assert routing.report_bytes(position) <= routing.longest_report_bytes
    for name, seats in members.items():
        assert len({(seat.level, seat.size, seat.messages) for seat in seats}) == 1
        assert seats[0].messages == routing.messages[seats[0].size]
        # Seats are given out in order: a batch is full with its last one, and never fuller.
        assert [seat.seat for seat in seats] == list(range(len(seats))) and len(seats) <= seats[0].size
        place = routing.find(name)
        assert place is not None and batch_id(*place) == name
        assert routing.schedule.batch_users(place[1], place[2]) == seats[0].size
        assert routing.batch_bytes(seats[0].size) == seats[0].size * seats[0].messages * CIPHERTEXT_BYTES
    assert routing.batches == sum(len(seats) == seats[0].size for seats in members.values())


@settings(deadline=None)
@given(routings(), st.data())
def test_a_seat_says_whose_it_is(routing: Routing, data: st.DataObject) -> None:
    nowhere = [position for position in range(routing.users) if not routing.batches_of(position)]
    for position in range(routing.users):
        expected = routing.users - 1 if position in nowhere else position
        assert routing.position_of(routing.batches_of(position)) == expected
    assert (routing.position_of(()) is None) == (not nowhere)
    # What is offered with anything else in it is nobody's seat.
    offered = list(routing.batches_of(data.draw(st.integers(0, routing.users - 1))))
    if not offered:
        return
    place = data.draw(st.integers(0, len(offered) - 1))
    change = data.draw(
        st.sampled_from(
            [{"seat": offered[place].seat + 1000}, {"seat": -1}, {"size": offered[place].size + 1}, {"level": 9},
             {"messages": 9}, {"batch_id": "1.0.99"}, {"batch_id": "x"}]
        )
    )  # fmt: skip
    others = [*offered[:place], replace(offered[place], **change), *offered[place + 1 :]]
    assert routing.position_of(tuple(others)) is None
    assert routing.position_of(tuple(offered[1:])) is None or len(offered) == 1
    assert routing.position_of((*offered, offered[0])) is None


@settings(deadline=None)
@given(routings(), st.one_of(st.text(max_size=12), st.from_regex(r"\A[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\Z")))
def test_names_of_no_batch_are_not_found(routing: Routing, name: str) -> None:
    place = routing.find(name)
    assert place is None or batch_id(*place) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "1.0", "1.0.1.1", "01.0.1", "1.0.1 ", "-1.0.1", "1.1.0", "0.0.1", "9.0.1", "1.0.2", "1.0.1e0", "²..",
     "1.0.99999999999", "1.0.999999999999999999999999", "٣.0.1"],
)  # fmt: skip
def test_a_batch_has_one_name(plan_named: Callable[[str], Any], name: str) -> None:
    routing = Routing.of(plan_named("running count").layout)
    assert routing.find("1.0.1") == (1, 0, 1)
    assert routing.find(name) is None


@settings(deadline=None)
@given(routings())
def test_documents_come_back(routing: Routing) -> None:
    again = Routing.from_document(json.loads(json.dumps(routing.document())))
    assert again == routing
    assert [again.batches_of(p) for p in range(routing.users)] == [routing.batches_of(p) for p in range(routing.users)]


def test_the_shuffler_is_told_nothing_else(make_task: Callable[..., Any]) -> None:
    task = make_task("running histogram")
    task_id, routing = routing_of_task(task.text)
    assert task_id == task.id and routing == task.routing
    assert set(routing.document()) == {
        "version", "users", "budget", "shufflers", "slot_users", "every_slot", "messages", "ciphertext_bytes",
        "counts_everybody",
    }  # fmt: skip


@pytest.mark.parametrize("field", ["version", "users", "budget", "shufflers", "slot_users", "every_slot", "messages",
                                   "ciphertext_bytes"])  # fmt: skip
@pytest.mark.parametrize("value", [None, -1, 0, "x", [], {}, 0.5], ids=repr)
def test_a_field_with_nonsense_is_refused(plan_named: Callable[[str], Any], field: str, value: Any) -> None:
    document = Routing.of(plan_named("running count").layout).document()
    for broken in (document | {field: value}, {name: kept for name, kept in document.items() if name != field}):
        with pytest.raises(DataError, match=r"routing.*(: |, or )create"):
            Routing.from_document(broken)


def windows(**changed: Any) -> Routing:
    """Seven slots of two users and three, three shufflers in turn."""
    shape = {"users": 18, "budget": 7, "shufflers": 3, "slot_users": 3, "every_slot": False, "windows": True}
    messages = {2: 4, 4: 3, 6: 2, 7: 2, 8: 2, 9: 1}
    return Routing(**{**shape, "counts_everybody": True, "messages": messages} | changed)


def test_windows_slide_and_shufflers_take_turns() -> None:
    routing = windows()
    assert routing == Routing.of(BatchLayout.sliding(18, 7, 3, routing.messages))
    assert [(b.level, b.batch_id, b.size, b.seat) for b in routing.batches_of(7)] == [
        (1, "1.1.4", 7, 5), (2, "2.2.5", 8, 3), (3, "3.3.6", 9, 1)
    ]  # fmt: skip
    assert [(b.batch_id, b.size, b.seat) for b in routing.batches_of(0)] == [
        ("1.0.1", 2, 0), ("2.0.2", 4, 0), ("3.0.3", 6, 0)
    ]  # fmt: skip
    assert [(b.batch_id, b.seat) for b in routing.batches_of(17)] == [("1.4.7", 8)]
    assert routing.report_bytes(0) == (4 + 3 + 2) * CIPHERTEXT_BYTES and routing.sizes_by_level[0] == {2, 7, 9}
    assert routing.longest_report_bytes == (4 + 3 + 2) * CIPHERTEXT_BYTES
    assert [routing.find(name) for name in ("1.1.4", "2.1.4", "1.0.4", "1.6.9", "2.5.8")] == [(1, 1, 4)] + [None] * 4


def test_only_windows_say_so_in_their_document(plan_named: Callable[[str], Any]) -> None:
    routing = windows()
    document = json.loads(json.dumps(routing.document()))
    assert document["windows"] is True and Routing.from_document(document) == routing
    older = Routing.of(plan_named("running count").layout).document()
    assert "windows" not in older and not Routing.from_document(older).windows
    with pytest.raises(DataError, match="routing"):
        Routing.from_document({name: value for name, value in document.items() if name != "windows"})


@pytest.mark.parametrize(
    ("changed", "name"),
    [({"windows": 1}, "windows"), ({"windows": None}, "windows"), ({"every_slot": True}, "windows"),
     ({"counts_everybody": False}, "windows"), ({"slot_users": 4}, "counts_everybody"), ({"users": 6}, "users"),
     ({"users": 22}, "users"), ({"budget": (1 << 24) + 1, "users": 1 << 25}, "budget"), ({"shufflers": 65}, "budget"),
     ({"messages": {2: 4, 4: 3, 6: 2, 9: 1}}, "messages"), ({"shufflers": 2}, "messages")],
    ids=str,
)  # fmt: skip
def test_windows_with_nonsense_are_refused(changed: dict[str, Any], name: str) -> None:
    with pytest.raises(DataError, match=rf"routing\.{name} must"):
        windows(**changed)


@pytest.mark.parametrize("version", [0, 3, "1", None])
def test_another_version_is_refused_with_a_sentence(plan_named: Callable[[str], Any], version: Any) -> None:
    document = Routing.of(plan_named("running count").layout).document() | {"version": version}
    way_out = "use the shuffledp that wrote it or a newer one, or create" if isinstance(version, int) else "create"
    said = (
        f"routing.version must be 1, 2 in a cascade, or 4 with an issuer, got {version}: {way_out} the task again with"
    )
    with pytest.raises(DataError, match=said):
        Routing.from_document(document)


def test_the_version_of_cascades_says_how_many_layers_there_are(plan_named: Callable[[str], Any]) -> None:
    document = Routing.of(plan_named("running count").layout).document() | {"version": 2}
    with pytest.raises(
        DataError, match=r"routing\.layers must be a whole number >= 1, got None: create the task again"
    ):
        Routing.from_document(document)


@pytest.mark.parametrize("text", ["", "null", "[]", "7", '"x"', "{", "{}", '{"routing": 1}', "[" * 100_000])
def test_what_is_no_task_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"must be .*: (send|create) the task"):
        routing_of_task(text)


@pytest.mark.parametrize("position", [-1, 30, 10**9])
def test_positions_end_with_the_task(plan_named: Callable[[str], Any], position: int) -> None:
    with pytest.raises(ParameterError, match=r"position must lie in 0\.\.29.*the task is full"):
        Routing.of(plan_named("running count").layout).batches_of(position)


def test_a_batch_that_is_too_large_to_travel_is_refused() -> None:
    with pytest.raises(
        ParameterError, match=r"make a batch of 7343 MB, more than 4096, got 10000000: plan for fewer users"
    ):
        Routing(users=10**7, budget=1, shufflers=1, slot_users=10**7, every_slot=False, messages={10**7: 10})


def test_one_round_is_one_batch_of_everybody(plan_named: Callable[[str], Any]) -> None:
    routing = Routing.of(plan_named("binary coins").layout)
    assert [routing.batches_of(p) for p in (0, 19)] == [
        (SeatInBatch(1, "1.0.1", 20, seat, 2),) for seat in (0, 19)
    ]  # fmt: skip


def test_the_analyzer_knows_the_size_of_every_batch(make_task: Callable[..., Any]) -> None:
    """Also of those over slots with a user less, and of the last, which ends with the last user."""
    plan = CounterPlan.plan(users=401, shufflers=3, privacy=Privacy(2, 1e-3), noise="coins")
    task = make_task(plan)
    assert plan.counts_everybody and task.routing.schedule.short > 0
    desk = AnalyzerDesk({task.id: task})
    sizes = {batch.batch_id: batch.size for at in range(401) for batch in task.routing.batches_of(at)}
    assert {name: desk.batch_size(task.id, name) for name in sizes} == sizes
    assert len({size % plan.slot_users for size in sizes.values()}) > 1
