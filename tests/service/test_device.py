"""A device: what it refuses before anything is sent, how often it takes part, and what survives a restart."""

import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from harness.campaigns import (
    ROWS,
    conditioned,
    phased,
    promised_bandit,
    repeated,
    returning,
    some_arms,
    some_bandit,
    some_count,
    some_fit,
)
from shuffledp.errors import DataError, ParameterError, RandomnessError
from shuffledp.randomness import RandomBits
from shuffledp.service.client.client import ReportError
from shuffledp.service.store import open_outbox
from shuffledp.service.store.outboxes import Visit

pytestmark = pytest.mark.usefixtures("in_the_clear")


@pytest.fixture
def service(make_service: Callable[..., Any], set_clock: Any) -> Any:
    return make_service(clock=set_clock.now)


def acts_of(kind: str) -> Callable[[Any], Any]:
    """What an application calls, by the kind of the campaign."""

    def pull(device: Any) -> Any:
        return device.reward(device.choose(), True)

    def choose(device: Any) -> Any:
        return device.reward(device.choose(None, [[0.5], [-1.0]]), 0.5)

    acts = {"arms": pull, "bandit": choose, "fit": lambda device: device.contribute([0.5], 1.0)}
    return {**acts, "count": lambda device: device.report(1)}[kind]


# --- refused before anything is sent ----------------------------------------------------------

NAN, INFINITE = float("nan"), float("inf")
REFUSED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], str]] = {
    "no offers": (some_bandit, lambda device: device.choose(), "offers must be"),
    "offers of another dimension": (some_bandit, lambda device: device.choose(None, [[0.5, 0.5]]), "must have 1"),
    "one row alone": (
        some_bandit,
        lambda device: device.choose(None, [0.5]),
        "must be a row of numbers for each offer",
    ),
    "nothing on offer": (some_bandit, lambda device: device.choose(None, np.zeros((0, 1))), "must be a row of numbers"),
    "an offer that is no number": (some_bandit, lambda device: device.choose(None, [[NAN]]), "must be finite numbers"),
    "an offer without end": (some_bandit, lambda device: device.choose(None, [[INFINITE]]), "must be finite numbers"),
    "words on offer": (some_bandit, lambda device: device.choose(None, [["red"]]), "must be numbers"),
    "an offer that is too long": (some_bandit, lambda device: device.choose(None, [[1.01]]), "no longer than 1"),
    "a context that is too long": (some_bandit, lambda device: device.choose([2.0], [[0.6]]), "no longer than 1"),
    "a context of another dimension": (some_bandit, lambda device: device.choose([0.5, 0.5], [[1.0]]), "must have 1"),
    "a negative offer where epsilon rests on none": (
        promised_bandit,
        lambda device: device.choose(None, [[-0.5]]),
        "no negative number",
    ),
    "a context that is no number": (
        some_bandit,
        lambda device: device.choose([NAN], [[1.0]]),
        "context must be finite",
    ),
    "a context of many people": (some_bandit, lambda device: device.choose([[0.5]], [[1.0]]), "must be one row"),
    "choosing in a fit": (
        some_fit,
        lambda device: device.choose(),
        "for gradient, got .*: call contribute",
    ),
    "a row to a bandit": (
        some_arms,
        lambda device: device.contribute([0.5], 1.0),
        "for pull, .*: call choose and reward",
    ),
    "a value to a fit": (
        some_fit,
        lambda device: device.report(1),
        "for gradient, got .*: call contribute",
    ),
    "a row of another dimension": (some_fit, lambda device: device.contribute([0.5, 0.5], 1.0), "must"),
    "a row that is no number": (some_fit, lambda device: device.contribute([NAN], 1.0), "must"),
    "a row without end": (some_fit, lambda device: device.contribute([INFINITE], 1.0), "must"),
    "a class there is not": (some_fit, lambda device: device.contribute([0.5], 3.0), "must"),
    "a class that is no number": (some_fit, lambda device: device.contribute([0.5], NAN), "must"),
    "a value outside the domain": (some_count, lambda device: device.report(2), "must"),
    "a value that is no number": (some_count, lambda device: device.report(NAN), "must"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence_and_nothing_is_sent(service: Any, name: str) -> None:
    make, act, words = REFUSED[name]
    campaign, to_shuffler = service.campaign(make()), service.wire("shuffler")
    with pytest.raises(ParameterError, match=words) as refused:
        act(service.device(campaign, http=to_shuffler.client))
    assert to_shuffler.requests == [] and len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("reward", [1.0001, -0.0001, -1, 2, NAN, INFINITE, "good", None, [0.5, 0.5]])
@pytest.mark.parametrize("make", [some_arms, some_bandit])
def test_a_reward_outside_its_range_is_refused(service: Any, make: Any, reward: Any) -> None:
    campaign, to_shuffler = service.campaign(make()), service.wire("shuffler")
    device = service.device(campaign, http=to_shuffler.client)
    choice = device.choose(None, [[0.5]]) if make is some_bandit else device.choose()
    with pytest.raises(DataError, match=r"rewards? must"):
        device.reward(choice, reward)
    assert to_shuffler.requests == [] and device.visits == 0


@pytest.mark.parametrize(
    ("row", "label", "words"),
    [
        ({"age": 50}, "maybe", "label must be one of no, yes"),
        ({"age": 50}, NAN, "label must be one of no, yes"),
        ({"age": 50}, None, "label must be one of no, yes"),
        ({"age": 50}, [1, 2], "label must be one of no, yes"),
        ({"age": 50}, np.array([1.0, 2.0]), "label must be one of no, yes"),
        ({"height": 1.8}, "yes", "row must have every column, got no age"),
        ([1.0, 2.0], "yes", "row must be 1 values: age"),
        ({"age": NAN}, "yes", "row must be finite numbers"),
        ({"age": "old"}, "yes", "row must be numbers"),
        (7, "yes", "row must be"),
    ],
)
def test_a_row_that_was_not_declared_is_refused(service: Any, row: Any, label: Any, words: str) -> None:
    campaign, to_shuffler = service.campaign(some_fit(), rows=ROWS), service.wire("shuffler")
    device = service.device(campaign, http=to_shuffler.client)
    with pytest.raises(DataError, match=words):
        device.contribute(row, label)
    assert to_shuffler.requests == []
    assert device.contribute({"age": 30}, "yes").is_reported


def test_seeded_bits_and_one_connection_for_both_are_refused(service: Any) -> None:
    campaign = service.campaign(some_arms())
    with pytest.raises(RandomnessError, match="secure bits only"):
        service.device(campaign, bits=RandomBits.seeded(1))
    client = service.wire("shuffler").client
    with pytest.raises(ParameterError, match="models_http must not be what sends reports: one connection would link"):
        service.device(campaign, http=client, models_http=client)
    for token in ("two words", "é"):
        with pytest.raises(ParameterError, match="must be one word of ASCII"):
            device = service.device(campaign)
            device._token = token
            device.reward(device.choose(), 1)


def test_a_clock_that_is_far_off_is_noticed(service: Any, set_clock: Any) -> None:
    campaign, to_shuffler = service.campaign(some_arms(), drop_after=60.0), service.wire("shuffler")
    to_analyzer = service.wire("analyzer")
    inner = to_analyzer.inner

    def dated(request: httpx.Request) -> httpx.Response:
        answer = inner.handle_request(request)
        answer.headers["date"] = formatdate(time.time(), usegmt=True)
        return answer

    to_analyzer.instead = dated
    for off, words in ((3600, "3,6.. s ahead of the analyzer's"), (-3600, "3,[56].. s behind the analyzer's")):
        device = service.device(
            campaign,
            http=to_shuffler.client,
            models_http=to_analyzer.client,
            clock=lambda off=off: time.time() + off,
        )
        with pytest.raises(ParameterError, match=f"clock is {words}"):
            device.choose()
    assert to_shuffler.requests == []
    device = service.device(campaign, models_http=to_analyzer.client, clock=lambda: time.time() + 30)
    assert device.choose().offer == 0


def test_a_round_that_is_over_is_not_answered(service: Any, set_clock: Any) -> None:
    campaign, to_shuffler = service.campaign(some_arms(), drop_after=60.0), service.wire("shuffler")
    device = service.device(campaign, http=to_shuffler.client, clock=set_clock.now)
    choice = device.choose()
    set_clock.time += 60
    assert device.reward(choice, 1).status == "late" and to_shuffler.requests == [] and device.visits == 0


# --- how often ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "make"), [("arms", some_arms), ("bandit", some_bandit), ("fit", some_fit), ("count", some_count)]
)
def test_once_is_all_across_restarts(service: Any, tmp_path: Path, kind: str, make: Any) -> None:
    campaign, act, wire = service.campaign(make()), acts_of(kind), service.wire("shuffler")
    for attempt in range(3):
        with service.device(campaign, memory=tmp_path / "memory.db", http=wire.client) as device:
            assert act(device).status == ("reported" if attempt == 0 else "took part")
            assert device.visits == 1
    # A seat and a report; afterwards nothing at all is sent.
    assert len(wire.requests) == 2


def test_returning_visitors_take_part_as_often_as_they_may_and_once_in_a_round(service: Any, tmp_path: Path) -> None:
    campaign = service.campaign(repeated())
    people = [tmp_path / f"{person}.db" for person in range(4)]
    for number in range(3):
        for memory in people:
            with service.device(campaign, memory=memory) as device:
                assert device.contribute([0.5], 1.0).status == "reported"
            with service.device(campaign, memory=memory) as device:
                # In this round it took part; nobody counts for two.
                status = device.contribute([0.5], 1.0).status
                assert status == "took part" and device.visits == number + 1
        service.work()
    with service.device(campaign, memory=people[0]) as device:
        assert device.contribute([0.5], 1.0).status == "not asked" and device.visits == 3


def test_moments_are_sent_once_and_gradients_after_them(service: Any, tmp_path: Path) -> None:
    campaign = service.campaign(conditioned(), rows=ROWS)
    for number, step in enumerate(("moments", "gradient", "gradient")):
        for person in range(12):
            with service.device(campaign, memory=tmp_path / f"{person}.db") as device:
                assert device.model().step.name == step
                assert device.contribute({"age": 10.0 * person % 100}, "yes").status == "reported"
        service.work()
        with open_outbox(tmp_path / "0.db") as memory:
            # The second seating is that of moments, the first that of gradients.
            assert [visit.seating for visit in memory.visits(campaign.id)] == [1, 0, 0][: number + 1]
    with service.device(campaign, memory=tmp_path / "0.db") as device:
        assert device.contribute({"age": 5.0}, "no").status == "not asked"


def test_never_twice_in_a_slot_and_no_more_than_twice(service: Any, tmp_path: Path) -> None:
    campaign, act = service.campaign(returning()), acts_of("bandit")
    mine, statuses = tmp_path / "mine.db", []
    for number in range(3):
        for _ in range(2):
            with service.device(campaign, memory=mine) as device:
                statuses.append(act(device).status)
        # Nobody sits where the second try might have sat: there is room for all the others.
        for other in range(1 if number < 2 else 2):
            assert act(service.device(campaign)).status == "reported", (number, other)
        service.work()
    assert statuses == ["reported", "took part", "reported", "took part", "took part", "took part"]
    with open_outbox(mine) as memory:
        assert memory.visits(campaign.id) == [Visit(0, 0, 0, 0), Visit(1, 0, 0, 1)]


def test_by_an_older_model_another_slot_counts_and_the_same_does_not(
    service: Any, tmp_path: Path, set_clock: Any
) -> None:
    """Two slots may answer by this model: one visit in each, whatever the shuffler offers."""
    campaign, wire = service.campaign(replace(returning(), model_age=1)), service.wire("shuffler")
    with service.device(campaign, memory=tmp_path / "mine.db", http=wire.client) as device:
        choice = device.choose(None, [[1.0]])
        assert device.reward(choice, 1).is_reported
        # The free seat is in the slot where it took part: it is left alone, and nothing is randomized for it.
        assert device.reward(choice, 1).status == "took part" and device.visits == 1
        assert [request.method for request in wire.requests] == ["POST", "PUT", "POST"]
        set_clock.time += 61
        assert acts_of("bandit")(service.device(campaign)).is_reported
        assert device.reward(choice, 1).is_reported and device.visits == 2
    with open_outbox(tmp_path / "mine.db") as memory:
        assert memory.visits(campaign.id) == [Visit(0, 0, 0, 0), Visit(1, 0, 0, 1)]


def test_who_was_in_one_stage_is_in_no_other(service: Any, tmp_path: Path) -> None:
    learner = phased()
    assert [seating.group for seating in learner.seatings][:2] == [0, 1]
    campaign, mine = service.campaign(learner), tmp_path / "mine.db"
    with service.device(campaign, memory=mine) as device:
        assert device.contribute([0.5], 1.0).is_reported
    state, groups = learner.start(), []
    for _ in range(learner.rounds):
        model = service.device(campaign).model()
        groups.append(model.round.seating)
        with service.device(campaign, memory=mine) as device:
            assert device.contribute([0.5], 1.0).status == "took part" and device.visits == 1
        missing = learner.ask(state).users - (1 if model.number == 0 else 0)
        for _ in range(missing):
            assert service.device(campaign).contribute([0.5], 1.0).is_reported
        service.work()
        state = learner.resume(service.analyzer._store.read(lambda records: records.state(campaign.id))["learner"])
    assert groups[-1] > 0 and service.device(campaign).contribute([0.5], 1.0).status == "not asked"


def test_a_seat_that_is_gone_is_taken_again_and_counts_as_one_visit(
    service: Any, tmp_path: Path, set_clock: Any
) -> None:
    campaign, wire = service.campaign(some_count()), service.wire("shuffler")
    bodies: list[bytes] = []

    def slow(request: httpx.Request) -> None:
        """The first report comes after its lease."""
        if request.method == "PUT":
            bodies.append(request.content)
            set_clock.time += 61 if len(bodies) == 1 else 0

    wire.instead = slow
    with service.device(campaign, memory=tmp_path / "memory.db", http=wire.client) as device:
        assert device.report(1).is_reported and device.visits == 1
    # Randomized again: nothing of the first report is in the second.
    first, second = ({body[at : at + 77] for at in range(16, len(body), 77)} for body in bodies)
    assert len(bodies) == 2 and not first & second
    with open_outbox(tmp_path / "memory.db") as memory:
        assert len(memory.visits(campaign.id)) == 1 and memory.waiting_tasks() == []


def test_a_seat_in_another_slot_replaces_the_one_that_is_gone(service: Any, tmp_path: Path, set_clock: Any) -> None:
    """By a model that two slots may answer by: the first seat is in one, and the seat that counts in the other."""
    campaign, wire = service.campaign(some_bandit(model_age=1)), service.wire("shuffler")
    device = service.device(campaign, memory=tmp_path / "memory.db", http=wire.client)
    choice, act = device.choose(None, [[1.0]]), acts_of("bandit")
    sent: list[httpx.Request] = []

    def slow(request: httpx.Request) -> None:
        if request.method == "PUT" and not sent:
            sent.append(request)
            set_clock.time += 61
            # Meanwhile others take all seats of the first slot.
            for _ in range(5):
                assert act(service.device(campaign)).is_reported

    wire.instead = slow
    with device:
        assert device.reward(choice, 1).is_reported and device.visits == 1
    with open_outbox(tmp_path / "memory.db") as memory:
        assert memory.visits(campaign.id) == [Visit(0, 0, 0, 1)]


def test_two_calls_by_one_memory_at_a_time_count_as_two(service: Any) -> None:
    """What one read of the memory before it waited for its seat is out of date when the other took part meanwhile."""
    campaign, wire = service.campaign(some_count()), service.wire("shuffler")
    with open_outbox(None) as memory:
        slow, quick = service.device(campaign, memory=memory, http=wire.client), service.device(campaign, memory=memory)

        def meanwhile(request: httpx.Request) -> None:
            wire.instead = lambda request: None
            assert quick.report(1).is_reported

        wire.instead = meanwhile
        assert slow.report(1).status == "took part" and slow.visits == 1
        assert [request.method for request in wire.requests] == ["POST"]
    assert service.shuffler.counts(f"{campaign.id}.0.0")["reports"] == 1


def test_rows_of_many_people_are_none_of_one_device(service: Any) -> None:
    campaign, wire = service.campaign(some_fit()), service.wire("shuffler")
    device = service.device(campaign, http=wire.client)
    with pytest.raises(DataError, match="row must be one person's, got 3 rows: send one: nothing was sent"):
        device.contribute([[0.5], [0.4], [0.3]], [1.0, 1.0, -1.0])
    assert wire.requests == [] and device.visits == 0
    assert device.contribute([[0.5]], [1.0]).is_reported and device.visits == 1


def test_where_it_took_part_is_written_down_before_anything_is_randomized(service: Any, tmp_path: Path) -> None:
    campaign = service.campaign(some_arms())
    noise: list[int] = []
    device = service.device(campaign, memory=tmp_path / "memory.db")
    making = "shuffledp.service.client.client.make_reports"
    with pytest.MonkeyPatch.context() as patch, device:
        patch.setattr(making, lambda *given, **more: noise.append(device.visits) or pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception):
            device.reward(device.choose(), 1)
    assert noise == [1]
    # Killed there, it took part: nothing was sent, and nothing will be.
    with service.device(campaign, memory=tmp_path / "memory.db") as device:
        assert device.reward(device.choose(), 1).status == "took part"
        assert device.flush().reports == 0


def test_flush_after_a_kill_sends_the_very_bytes(service: Any, tmp_path: Path) -> None:
    campaign, wire = service.campaign(some_count()), service.wire("shuffler")
    lost: list[bytes] = []

    def broken(request: httpx.Request) -> None:
        if request.method == "PUT" and len(lost) < 1:
            lost.append(request.content)
            raise httpx.ConnectError("the lift")

    wire.instead = broken
    device = service.device(campaign, memory=tmp_path / "memory.db", http=wire.client)
    with device, pytest.raises(ReportError, match="1 wait in the outbox: flush sends them"):
        device.report(1)
    again = service.wire("shuffler")
    with service.device(campaign, memory=tmp_path / "memory.db", http=again.client) as device:
        assert device.report(1).status == "took part" and again.requests == []
        sent = device.flush()
        assert (sent.reports, sent.new, device.flush().reports, device.visits) == (1, 1, 0, 1)
    assert [request.content for request in again.requests] == lost


def test_a_shuffler_that_offers_seats_of_other_slots_gets_nothing(service: Any) -> None:
    """Whoever answered in a slot to come would answer by a model that is too old, or, behind, too new."""
    campaign, wire = service.campaign(some_count()), service.wire("shuffler")
    inner = wire.inner

    def elsewhere(request: httpx.Request) -> httpx.Response | None:
        if not request.url.path.endswith("/seats"):
            return None
        # As if it had not been asked for the first slots only: the seat of the second.
        whole = httpx.Request("POST", str(request.url).split("?")[0] + "?count=5", headers=request.headers)
        answer = inner.handle_request(whole).json()
        return httpx.Response(201, json={"seats": answer["seats"][4:]})

    wire.instead = elsewhere
    device = service.device(campaign, http=wire.client)
    with pytest.raises(ReportError, match="offers a seat that the task does not have"):
        device.report(1)
    assert device.visits == 0 and [request.method for request in wire.requests] == ["POST"]


def test_people_who_come_too_late_for_a_model_are_told_so(service: Any) -> None:
    campaign = service.campaign(some_count())
    late = service.device(campaign)
    late.model()
    for _ in range(4):
        assert service.device(campaign).report(1).is_reported
    # All seats that may answer by model 0 are taken, and model 1 is not there yet.
    assert late.report(1).status == "late" and late.visits == 0
    service.work()
    assert late.report(1).is_reported


def test_printing_a_device_or_a_choice_says_nothing_of_the_person(service: Any) -> None:
    campaign = service.campaign(some_bandit())
    device = service.device(campaign)
    choice = device.choose(None, [[0.123456]])
    assert "0.123" not in repr(choice) + repr(device) and device._token not in repr(device)
