"""Many devices in one process do what one device does, and sit in the slots whose model they answered by."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from shuffledp import Privacy, RandomBits
from shuffledp.errors import RandomnessError, ShuffleDPError
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.live.rows import DeviceRows
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.calls import AnswerError
from shuffledp.service.client.client import Client, ReportError, Sent
from shuffledp.service.device import Device
from shuffledp.service.device import crowd as crowd_module
from shuffledp.service.device.choosing import choose_among
from shuffledp.service.device.crowd import Crowd
from shuffledp.service.models import unchecked_model
from shuffledp.service.problems import SEATS_LATER

PEOPLE = 60


@pytest.fixture(scope="module")
def policy() -> ConcurrentLinUCB:
    return ConcurrentLinUCB.planned(LinearSetting(users=PEOPLE, dimension=2), Privacy(50, 0.1), shufflers=2)


@pytest.fixture(scope="module")
def solver() -> Any:
    ball = L2Ball(dimension=3, radius=2)
    problem = Problem.of(LogisticLoss(), ball, users=PEOPLE, privacy=Privacy(50, 0.1), visits=1, rounds=3)
    return plan(problem, solver="sgd")


@pytest.fixture
def opened(make_service, key, in_the_clear):
    """A service, a campaign of a learner, and how people reach both."""

    def open_campaign(learner: Any, **more: Any) -> tuple[Any, Campaign, dict[str, Any]]:
        service = make_service()
        keys = key.public, service.signing.public
        campaign = Campaign.create(learner, *keys, bits=RandomBits.secure(), allow_unbounded=True, **more)
        service.add(campaign)
        reaching = {
            "shuffler": "http://localhost",
            "analyzer": "http://localhost",
            "token": service.tokens.secrets["enrol"],
            "http": service.at("shuffler"),
            "models_http": service.at("analyzer"),
            # Whoever waits lets the servers work.
            "sleep": lambda seconds: service.work(),
        }
        return service, campaign, reaching

    return open_campaign


def clicks(crowd: Crowd) -> Any:
    generator = np.random.default_rng(1)

    def act(step: Any, places: Any) -> Any:
        offered = generator.normal(size=(len(places), 3, 2))
        offered /= np.linalg.norm(offered, axis=2, keepdims=True)
        chosen = crowd.choose(step, offered)
        return crowd.rewarded(step, offered[np.arange(len(places)), chosen], generator.integers(0, 2, len(places)))

    return act


@pytest.mark.parametrize("together", [None, 1, 7])
def test_everybody_sits_in_the_slot_of_the_model_that_they_answered_by(opened, policy, together) -> None:
    service, campaign, reaching = opened(policy)
    with Crowd(campaign, **reaching) as crowd:
        came = list(crowd.come(PEOPLE, clicks(crowd), together=together))
    service.work()
    by_model = Counter({each.model: 0 for each in came})
    for each in came:
        by_model[each.model] += len(each.places)
    slots = -(-PEOPLE // policy.slot_users)
    sizes = [min(policy.slot_users, PEOPLE - slot * policy.slot_users) for slot in range(slots)]
    assert [by_model[slot] for slot in range(slots)] == sizes
    assert sorted(np.concatenate([each.places for each in came])) == list(range(PEOPLE))
    counts = service.shuffler.counts(f"{campaign.id}.0.0")
    assert counts["reports"] == PEOPLE
    models = service.analyzer.models(campaign.id, -1, 1000)
    assert [unchecked_model(each).number for each in models] == list(range(policy.releases + 1))


def test_whoever_comes_when_nobody_is_asked_any_more_chooses_by_the_last_model(opened, policy) -> None:
    service, campaign, reaching = opened(policy)
    asked = policy.releases * policy.slot_users
    with Crowd(campaign, **reaching) as crowd:
        came = list(crowd.come(asked + 5, clicks(crowd)))
    *others, last = came
    assert all(each.reported for each in others) and not last.reported
    assert (last.model, len(last.places)) == (policy.releases, 5)
    assert service.shuffler.counts(f"{campaign.id}.0.0")["reports"] == asked


def test_two_crowds_share_the_slots(opened, policy) -> None:
    _, campaign, reaching = opened(policy)
    with Crowd(campaign, **reaching) as one, Crowd(campaign, **reaching) as other:
        parts = [each.come(PEOPLE // 2, clicks(each), together=4) for each in (one, other)]
        came = Counter()
        while parts:
            for part in list(parts):
                found = next(part, None)
                if found is None:
                    parts.remove(part)
                else:
                    came[found.model] += len(found.places)
    assert sum(came.values()) == PEOPLE
    assert all(came[slot] == policy.slot_users for slot in range(PEOPLE // policy.slot_users))


def test_a_crowd_that_answers_by_an_old_model_is_found_out(opened, policy, monkeypatch) -> None:
    """The wrong twin asks for any seat, in whatever slot: its own device refuses what it is offered."""
    _, campaign, reaching = opened(policy)
    monkeypatch.setattr("shuffledp.service.task.RoundTask.open_slots", None)
    with Crowd(campaign, **reaching) as crowd, pytest.raises(ReportError, match="seat that the task does not have"):
        list(crowd.come(PEOPLE, clicks(crowd)))


def test_choices_and_vectors_are_those_of_a_device(opened, policy) -> None:
    _, campaign, reaching = opened(policy)
    generator = np.random.default_rng(2)
    with Crowd(campaign, **reaching) as crowd, Device(campaign, **reaching) as device:
        # A model that was learned, and not the first one, by which all offers are alike.
        list(crowd.come(PEOPLE // 2, clicks(crowd)))
        model = device.model()
        assert model.number > 0
        offered = generator.uniform(-0.7, 0.7, (20, 3, 2))
        rewards = generator.random(20)
        chosen = crowd.choose(model.step, offered)
        singly = [choose_among(model, None, each, bits=crowd.bits) for each in offered]
        assert chosen.tolist() == [each.offer for each in singly]
        features = offered[np.arange(20), chosen]
        assert np.array_equal(features, [each.features for each in singly])
        sent: list[Any] = []
        device._report = lambda model, values: sent.append(values)  # type: ignore[method-assign]
        for choice, reward in zip(singly, rewards, strict=True):
            device.reward(choice, reward)
        assert np.array_equal(crowd.rewarded(model.step, features, rewards), np.concatenate(sent))


@pytest.mark.parametrize("declared", [False, True])
def test_gradients_are_those_of_a_device(opened, solver, declared) -> None:
    rows = DeviceRows.of(["a", "b"], bounds=(-1, 1), classes=["no", "yes"]) if declared else None
    _, campaign, reaching = opened(solver, rows=rows)
    generator = np.random.default_rng(3)
    people = generator.uniform(-0.5, 0.5, (5, 2 if declared else 3))
    labels: Any = np.array(["no", "yes", "yes", "no", "yes"]) if declared else np.array([-1.0, 1, 1, -1, 1])
    with Crowd(campaign, **reaching) as crowd, Device(campaign, **reaching) as device:
        sent: list[Any] = []
        device._report = lambda model, values: sent.append(values)  # type: ignore[method-assign]
        for row, label in zip(people, labels, strict=True):
            device.contribute(row, label)
        assert np.array_equal(crowd.gradients(device.model().step, people, labels), np.concatenate(sent))


def test_rounds_are_filled_one_after_the_other_and_then_nobody_is_asked(opened, solver) -> None:
    service, campaign, reaching = opened(solver)
    rows = np.random.default_rng(4).uniform(-0.5, 0.5, (PEOPLE + 5, 3))
    with Crowd(campaign, **reaching) as crowd:
        came = list(
            crowd.come(PEOPLE + 5, lambda step, places: crowd.gradients(step, rows[places], np.ones(len(places))))
        )
    filled = Counter({each.model: len(each.places) for each in came})
    assert filled == dict.fromkeys(range(solver.rounds), solver.stages[0].users)
    models = service.analyzer.models(campaign.id, -1, 1000)
    assert unchecked_model(models[-1]).round is None and len(models) == solver.rounds + 1


def test_whoever_is_late_comes_again_whichever_places_they_have(opened, policy, monkeypatch) -> None:
    _, campaign, reaching = opened(policy)
    report, tries = Client.report_prepared, []

    def sometimes(client: Client, values: Any) -> Sent:
        tries.append(len(values))
        assert len(tries) < 3
        if len(tries) > 1:
            return report(client, values)
        # As where two seats of five ran out before their reports came, and the slot was full then.
        report(client, values[[0, 2, 4]])
        raise ReportError(AnswerError(409, SEATS_LATER.name, "later"), Sent(3, 3), 0, 2, (1, 3))

    monkeypatch.setattr(Client, "report_prepared", sometimes)
    monkeypatch.setattr(Crowd, "_next", lambda crowd, last: last)
    with Crowd(campaign, **reaching) as crowd:
        came = [each.places.tolist() for each in crowd.come(5, clicks(crowd), together=5)]
    assert came == [[0, 2, 4], [1, 3]]


def test_a_model_that_never_comes_is_a_sentence(opened, policy, monkeypatch) -> None:
    _, campaign, reaching = opened(policy)
    monkeypatch.setattr(crowd_module, "_LONGEST_WAIT", 0.0)
    reaching["sleep"] = lambda seconds: None
    with Crowd(campaign, **reaching) as crowd, pytest.raises(ShuffleDPError, match="no model came after number 0"):
        list(crowd.come(PEOPLE, clicks(crowd)))


def test_seeded_bits_are_refused(opened, policy) -> None:
    _, campaign, reaching = opened(policy)
    with pytest.raises(RandomnessError, match="secure"):
        Crowd(campaign, **reaching, bits=RandomBits.seeded(1))
