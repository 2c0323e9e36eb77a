"""A campaign's document: whatever in it disagrees is refused; and its rounds: what is dropped is never read."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from harness.campaigns import KINDS, ROWS, phased, repeated, returning, some_arms, some_bandit, some_count, some_fit
from harness.world import World, accept_reports, batch_rows, rows
from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.models import unchecked_model
from shuffledp.service.shuffler import desk as shuffler_desk
from shuffledp.service.task import canonical
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport

pytestmark = pytest.mark.usefixtures("in_the_clear")

BITS = RandomBits.secure()
KEYS = PrivateKey.generate().public, SigningKey.generate().public
LEARNERS = {name: make for name, (make, _) in KINDS.items()} | {
    "repeated": repeated,
    "phased": phased,
    "returning": returning,
}


def created(name: str, **more: Any) -> Campaign:
    drop_after = KINDS[name][1] if name in KINDS else None
    declared = {"rows": ROWS} if name == "fit" else {}
    given = {"bits": BITS, "allow_unbounded": True, "drop_after": drop_after, **declared, **more}
    return Campaign.create(LEARNERS[name](), *KEYS, **given)


# --- the document -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
def test_a_campaign_is_its_text(name: str, tmp_path: Path) -> None:
    campaign = created(name)
    campaign.save(tmp_path / "campaign.json")
    again = Campaign.load(tmp_path / "campaign.json")
    assert again == campaign and again.id == campaign.id != created(name).id
    assert again.learner.fingerprint == LEARNERS[name]().fingerprint
    limits = [(seating.visits, seating.group, seating.in_all) for seating in again.seatings]
    assert limits == [(seating.visits, seating.group, seating.in_all) for seating in LEARNERS[name]().seatings]


# What an operator may choose freely: another choice is another campaign, and no contradiction. A claim of a bandit may
# be weaker than what its noise reaches; a plan's reference is words.
FREE = {
    ("waiting", "seconds"),
    ("nonce",),
    ("learner", "delta"),
    ("rows", "features", 0),
    ("rows", "classes", 0),
    ("rows", "classes", 1),
    ("rows", "preparation", "norm"),
    ("rows", "preparation", "other"),
    ("rows", "preparation", "bounds", 0, 0),
    ("rows", "preparation", "bounds", 0, 1),
}

Route = tuple[Any, ...]


def places(document: Any, path: Route = ()) -> Iterator[Route]:
    """Every field, and every list's first entries."""
    yield path
    inside = document.items() if isinstance(document, dict) else enumerate(document[:3])
    for key, value in inside:
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


def mutated(text: str, path: Route) -> str:
    """The document with another value there; a list one shorter, an object with one more field."""
    document = json.loads(text)
    at: Any = document
    for key in path[:-1]:
        at = at[key]
    value = at[path[-1]] if path else document
    if isinstance(value, dict):
        value["more"] = 1
    elif isinstance(value, list):
        value.pop() if value else value.append("more")
    else:
        at[path[-1]] = _another(value)
    return canonical(document)


def _another(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if value is None:
        return 1
    return value + "0" if isinstance(value, str) else value + 1 if isinstance(value, int) else 1.5 * value + 0.25


@pytest.mark.parametrize("name", LEARNERS)
def test_every_field_of_a_campaign_is_held_to_the_others(name: str) -> None:
    text = created(name).text
    tried = 0
    for path in places(json.loads(text)):
        if path in FREE or path[-1:] == ("reference",):
            continue
        with pytest.raises(ParameterError):
            pytest.fail(f"accepted {path}: {Campaign.from_text(mutated(text, path)).id}")
        tried += 1
    assert tried > 40 and Campaign.from_text(text).text == text


@pytest.mark.parametrize("field", sorted(json.loads(created("fit").text)))
def test_no_field_may_be_missing(field: str) -> None:
    document = json.loads(created("fit").text)
    del document[field]
    with pytest.raises(ParameterError):
        Campaign.from_text(canonical(document))


def test_plans_of_another_learner_are_refused() -> None:
    """Each a whole campaign's; together none."""
    documents = {name: json.loads(created(name, rows=None).text) for name in ("arms", "fit", "count", "bandit")}
    for one in documents:
        for other in documents:
            if one == other:
                continue
            for taken in (("seatings",), ("learner",), ("routing",), ("seatings", "routing")):
                mixed = {**documents[one], **{name: documents[other][name] for name in taken}}
                with pytest.raises(ParameterError):
                    pytest.fail(f"{one} with {taken} of {other}: {Campaign.from_text(canonical(mixed)).id}")


def test_more_visits_than_were_planned_for_are_refused() -> None:
    document = json.loads(created("arms").text)
    document["seatings"][0] |= {"visits": 2, "in_all": 2}
    with pytest.raises(DataError, match=r"campaign\.seatings must be the learner's"):
        Campaign.from_text(canonical(document))


@pytest.mark.parametrize("make", [some_count, some_bandit, lambda: returning()])
def test_who_needs_every_batch_drops_none(make: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError, match="drop_after must be left out: a running sum cannot go on without a batch"):
        Campaign.create(make(), *KEYS, bits=BITS, drop_after=60.0, allow_unbounded=True)
    document = json.loads(Campaign.create(make(), *KEYS, bits=BITS, allow_unbounded=True).text)
    document["waiting"]["seconds"], document["routing"]["drops"] = 60.0, True
    with pytest.raises(DataError, match=r"campaign\.waiting must be null"):
        Campaign.from_text(canonical(document))


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12, "60", True])
def test_a_deadline_is_a_time(seconds: Any) -> None:
    with pytest.raises(ParameterError, match="drop_after must be seconds in"):
        Campaign.create(some_arms(), *KEYS, bits=BITS, drop_after=seconds)


def test_a_plan_alone_is_a_statistic_and_rows_are_for_gradients() -> None:
    plan = BinarySum.plan(users=20, privacy=Privacy(2, 1e-3), method="coins")
    campaign = Campaign.from_text(Campaign.create(plan.learner(), *KEYS, bits=BITS).text)
    assert campaign.learner.plan == plan
    with pytest.raises(DataError, match="rows must be left out where devices send no gradients, got pull"):
        Campaign.create(some_arms(), *KEYS, bits=BITS, rows=ROWS)
    two = type(ROWS).of(["age", "size"], bounds=(0, 1), intercept=False, classes=["no", "yes"])
    three = type(ROWS).of(["age"], bounds=(0, 1), intercept=False, classes=["a", "b", "c"])
    for declared, words in ((two, "must be 1"), (three, "must be those of the loss")):
        with pytest.raises(DataError, match=words):
            Campaign.create(some_fit(), *KEYS, bits=BITS, rows=declared)


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "7", "[" * 10_000, '{"kind":"campaign"}'])
def test_what_is_no_campaign_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="campaign"):
        Campaign.from_text(text)


def test_another_spelling_is_another_campaign() -> None:
    with pytest.raises(DataError, match="another spelling"):
        Campaign.from_text(json.dumps(json.loads(created("arms").text), indent=1))


# --- rounds -----------------------------------------------------------------------------------

DROP = 100.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    yield made
    made.close()


def served(world: World, make: Callable[[], Any], drop_after: float | None = DROP) -> Campaign:
    keys = world.key.public, world.signing.public
    campaign = Campaign.create(make(), *keys, bits=BITS, drop_after=drop_after, allow_unbounded=True)
    world.add_task(campaign)
    return campaign


def newest(world: World, campaign: Campaign) -> Any:
    return unchecked_model(world.analyzer.newest_model(campaign.id))


def report(world: World, campaign: Campaign, people: int, number: int | None = None) -> str:
    """So many people sit down in the open round, or in this one, and report; answers the round's id."""
    model = newest(world, campaign)
    task = campaign.round_task(model.round.number if number is None else number, model.round.seating)
    assert task is not None
    seats = world.shuffler.take_seats(task.id, people).result()
    bodies = make_reports(task, np.ones(len(seats), dtype=np.int64), [seat.batches for seat in seats], bits=world.bits)
    sent = [SentReport(world.new_id(), seat.seat, body) for seat, body in zip(seats, bodies, strict=True)]
    accept_reports(world.shuffler, task.id, sent).result()
    return task.id


def work(world: World) -> None:
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting()
    world.analyzer.read_all()


def test_a_round_that_does_not_fill_is_dropped_after_its_time_and_never_read(world: World) -> None:
    campaign = served(world, some_arms)
    first = report(world, campaign, 2)
    world.clock.move(DROP - 1)
    assert world.analyzer.drop_late() == 0
    world.clock.move(1)
    assert world.analyzer.drop_late() == 1 and world.analyzer.drop_late() == 0
    model = newest(world, campaign)
    assert (model.number, model.round.number) == (1, 3) and model.round.closes == world.clock.now() + DROP
    # One more comes with the old model: the batch is full, sealed and sent, and thrown away.
    report(world, campaign, 1, number=0)
    work(world)
    assert rows(world.stores["analyzer"], "SELECT * FROM batches") == [] and newest(world, campaign) == model
    assert len(world.network.sent) == 1 and world.network.sent[0][0] == first
    # The next round goes on.
    report(world, campaign, 3)
    work(world)
    assert newest(world, campaign).number == 2


def test_a_round_whose_batch_has_come_is_not_dropped(world: World) -> None:
    """It lies there unread when its time is over: read it is, sooner or later."""
    campaign = served(world, some_arms)
    report(world, campaign, 3)
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting()
    world.clock.move(10 * DROP)
    assert world.analyzer.drop_late() == 0 and newest(world, campaign).number == 0
    world.analyzer.read_all()
    model = newest(world, campaign)
    assert model.number == 1 and model.estimate["means"][0] is not None
    # A second delivery of it is known, though the learner has moved on.
    assert world.analyzer.deliver(*world.network.sent[0]) is False
    assert rows(world.stores["analyzer"], "SELECT COUNT(*) FROM batches WHERE total IS NOT NULL") == [(1,)]


def test_a_round_that_waits_keeps_its_time_across_restarts(world: World) -> None:
    campaign = served(world, some_arms)
    closes = newest(world, campaign).round.closes
    world.clock.move(DROP / 2)
    for role in ("analyzer", "shuffler"):
        world.restart(role, world.plan_kill(role, 10**9, Random(1)))
    world.add_task(campaign)
    assert newest(world, campaign).round.closes == closes and newest(world, campaign).number == 0
    world.clock.move(DROP / 2)
    assert world.analyzer.drop_late() == 1


def test_what_a_dropped_round_left_is_deleted_when_a_later_one_is_full(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parts, its seats, and what a try to seal it had written."""
    monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", 5 * CIPHERTEXT_BYTES)
    campaign = served(world, some_arms)
    first = report(world, campaign, 3)
    # Sealing it fails after the first piece.
    with monkeypatch.context() as broken:
        broken.setattr(shuffler_desk.ShufflerDesk, "seal", lambda *_: 1 / 0)
        assert not world.shuffler.seal_full()
        assert len(batch_rows(world.stores["shuffler"], "pieces")) == 2
    world.clock.move(DROP)
    world.analyzer.drop_late()
    second = report(world, campaign, 2)
    # A restart finds both rounds in its store.
    world.restart("shuffler", world.plan_kill("shuffler", 10**9, Random(1)))
    assert first in world.shuffler.tasks and world.shuffler.counts(second)["reports"] == 2
    monkeypatch.setattr(world.shuffler.sealer, "seal", lambda task_id, batch_id: None)
    world.shuffler.seal_full()
    assert len(batch_rows(world.stores["shuffler"], "parts")) > 0, "a round that is not over was abandoned"
    report(world, campaign, 1)
    sealed = type(world.shuffler.sealer).seal
    only = lambda task_id, batch_id: sealed(world.shuffler.sealer, task_id, batch_id) if task_id == second else None  # noqa: E731
    monkeypatch.setattr(world.shuffler.sealer, "seal", only)
    world.shuffler.seal_full()
    world.shuffler.seal_full()
    store = world.stores["shuffler"]
    assert batch_rows(store, "parts") == [] and {row[0] for row in batch_rows(store, "pieces")} == {second}
    names = [name for (name,) in rows(store, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert len([name for name in names if name.startswith(("parts_", "pieces_"))]) == 1
    assert rows(store, "SELECT COUNT(*) FROM leases") == [(0,)]
    # Whoever still has the old model finds no seat.
    with pytest.raises(Exception, match="all 3 seats are taken"):
        world.shuffler.take_seats(first, 1).result()


def test_rounds_that_wait_are_never_abandoned(world: World) -> None:
    campaign = served(world, some_arms, None)
    first = report(world, campaign, 2)
    # Somebody fills a round that nobody asked for.
    report(world, campaign, 3, number=3)
    work(world)
    assert world.shuffler.counts(first)["batches_open"] == 1 and newest(world, campaign).number == 0
    assert rows(world.stores["analyzer"], "SELECT * FROM batches") == []
    report(world, campaign, 1)
    work(world)
    assert newest(world, campaign).number == 1


@pytest.mark.parametrize("task_id", ["{}.999999.0", "{}.0.9", "{}.00.0", "{}.-1.0", "{}", "{}.0", "f" * 64 + ".0.0"])
def test_rounds_that_there_are_not_are_refused(world: World, task_id: str) -> None:
    campaign = served(world, some_arms)
    with pytest.raises(Exception, match="is not served here"):
        world.shuffler.take_seats(task_id.format(campaign.id), 1).result()
    with pytest.raises(Exception, match="is not served here"):
        world.analyzer.deliver(task_id.format(campaign.id), "1.0.1", b"")


def test_an_older_model_never_takes_the_place_of_a_newer_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread has read model 0 when another commits and shows model 1."""
    campaign = served(world, some_arms)
    report(world, campaign, 3)
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting()
    read, has_read, go_on = world.stores["analyzer"].read, threading.Event(), threading.Event()

    def slowly(work: Any) -> Any:
        answer = read(work)
        if threading.current_thread() is slow:
            has_read.set()
            go_on.wait(5)
        return answer

    slow = threading.Thread(target=lambda: world.analyzer._remember_newest(campaign.id))
    quick = threading.Thread(target=world.analyzer.read_all)
    monkeypatch.setattr(world.stores["analyzer"], "read", slowly)
    slow.start()
    assert has_read.wait(5)
    quick.start()
    quick.join(0.3)
    go_on.set()
    slow.join()
    quick.join()
    assert newest(world, campaign).number == 1
