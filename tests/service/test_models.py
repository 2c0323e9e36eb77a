"""Models: numbered, signed, of the campaign's own rounds; whatever else a device is handed, it sends nothing."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest

from harness.campaigns import some_arms, some_bandit, some_count, some_fit
from harness.world import OpenerHere
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, SquaredLoss, plan
from shuffledp.privacy import Privacy
from shuffledp.protocols.learner import DeviceStep
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.client.calls import AnswerError, UnreachableError
from shuffledp.service.crypto import SigningKey
from shuffledp.service.models import Model, OpenRound, checked_model, model_of, signed, unchecked_model
from shuffledp.service.store import open_analyzer_store
from shuffledp.service.wire import SignedText

pytestmark = pytest.mark.usefixtures("in_the_clear")


def first_model(campaign: Any) -> Model:
    state = campaign.learner.start()
    return model_of(campaign, 0, state, campaign.learner.ask(state))


@pytest.fixture
def service(make_service: Callable[..., Any]) -> Any:
    return make_service()


@pytest.fixture
def campaign(service: Any) -> Any:
    return service.campaign(some_arms())


def handed(service: Any, campaign: Any, answer: Any, **more: Any) -> tuple[Any, Any]:
    """A device whose analyzer, or a cache, answers this; and what it sends to the shuffler."""
    to_shuffler, to_analyzer = service.wire("shuffler"), service.wire("analyzer")
    to_analyzer.instead = (
        answer if callable(answer) else lambda request: httpx.Response(200, json={**answer.document()})
    )
    made = service.device(campaign, http=to_shuffler.client, models_http=to_analyzer.client, **more)
    return made, to_shuffler


ALTERED: dict[str, tuple[Callable[[Model], Model], str]] = {
    "another campaign": (lambda model: replace(model, campaign="f" * 64), r"model\.campaign must be"),
    "a round there is not": (lambda model: at(model, number=10**9), r"model\.round must be one of the campaign's"),
    "a seating there is not": (lambda model: at(model, seating=7), r"model\.round must be one of the campaign's"),
    "slots there are not": (lambda model: at(model, first_slot=50, end_slot=51), "must be slots of the campaign's"),
    "more slots than may answer": (lambda model: at(model, end_slot=2), "must be slots of the campaign's"),
    "no slots": (lambda model: at(model, end_slot=0), "must be slots of the campaign's"),
    "a number that is none": (lambda model: replace(model, number=True), "must be a model of version 1"),
    "a negative slot": (lambda model: at(model, first_slot=-1, end_slot=0), "must be a model of version 1"),
    "a fraction": (lambda model: replace(model, number=0.5), "must be a model of version 1"),  # type: ignore[arg-type]
}


def at(model: Model, **place: Any) -> Model:
    assert model.round is not None
    return replace(model, round=replace(model.round, **place))


@pytest.mark.parametrize("name", ALTERED)
def test_a_model_of_something_else_is_refused_though_it_is_signed(service: Any, campaign: Any, name: str) -> None:
    alter, words = ALTERED[name]
    model = first_model(campaign)
    device, to_shuffler = handed(service, campaign, signed(alter(model), service.signing))
    with pytest.raises(DataError, match=words):
        device.choose()
    assert to_shuffler.requests == []
    # Unaltered it is taken: the test would see nothing otherwise.
    device, _ = handed(service, campaign, signed(model, service.signing))
    assert device.choose().model == model


@pytest.mark.parametrize("make", [some_arms, some_bandit, some_fit])
def test_a_wrong_signature_is_refused(service: Any, make: Any) -> None:
    campaign = service.campaign(make())
    model = first_model(campaign)
    right = signed(model, service.signing)
    raw = base64.urlsafe_b64decode(right.signature)
    wrong = [
        signed(model, SigningKey.generate()).signature,
        base64.urlsafe_b64encode(bytes([raw[0] ^ 1]) + raw[1:]).decode(),
        base64.urlsafe_b64encode(raw[:-1]).decode(),
        "",
        "no base64 at all",
        base64.urlsafe_b64encode(service.signing.sign(right.text.encode())).decode(),
    ]
    for signature in wrong:
        device, to_shuffler = handed(service, campaign, SignedText(right.text, signature))
        with pytest.raises(DataError, match="model must be signed by the campaign's analyzer, got a wrong signature"):
            device.model()
        assert to_shuffler.requests == []
    other = right.text.replace('"number":0', '"number":1')
    with pytest.raises(DataError, match="wrong signature"):
        checked_model(SignedText(other, right.signature), campaign)
    assert checked_model(right, campaign) == model


def test_nobody_goes_back_to_an_older_model(service: Any, campaign: Any, tmp_path: Any) -> None:
    model = first_model(campaign)
    memory = tmp_path / "memory.db"
    for number in (3, 3, 4):
        device, _ = handed(service, campaign, signed(replace(model, number=number), service.signing), memory=memory)
        with device:
            assert device.model().number == number
    # After a restart, too.
    device, to_shuffler = handed(service, campaign, signed(replace(model, number=2), service.signing), memory=memory)
    with device, pytest.raises(DataError, match="must be at least 4, which this device has seen, got 2"):
        device.choose()
    assert to_shuffler.requests == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"version":2}', "[" * 10_000])
def test_what_is_no_model_is_refused(service: Any, campaign: Any, text: str) -> None:
    signature = service.signing.sign(b"shuffledp model v1\n" + text.encode())
    found = SignedText(text, base64.urlsafe_b64encode(signature).decode())
    said = r"model\.version must be 1, got 2: use the shuffledp" if "2" in text else "must be a model"
    with pytest.raises(DataError, match=said):
        checked_model(found, campaign)
    with pytest.raises(DataError, match=said):
        unchecked_model(found)


def test_what_is_no_answer_of_an_analyzer_is_tried_again(service: Any, campaign: Any) -> None:
    """A captive portal's page, a broken server, a redirect: nothing is believed, and no address is followed."""
    page = httpx.Response(200, text="<html>log in</html>")
    for answer in (page, httpx.Response(503), httpx.Response(302, headers={"Location": "http://elsewhere.test/"})):
        device, to_shuffler = handed(service, campaign, lambda request, answer=answer: answer)
        with pytest.raises(UnreachableError, match="tried 1 times"):
            device.choose()
        assert to_shuffler.requests == []
    device, _ = handed(service, campaign, lambda request: httpx.Response(404, json={}))
    with pytest.raises(AnswerError, match="does not serve this campaign"):
        device.choose()


def test_an_analyzer_with_another_key_does_not_start(service: Any, campaign: Any, tmp_path: Any) -> None:
    store = open_analyzer_store(tmp_path / "a.db")
    more = {"key": service.key, "opener": OpenerHere(service.key)}
    server = AnalyzerServer(store, signing=service.signing, **more)
    server.add_task(campaign.text)
    for signing, words in ((SigningKey.generate(), "signing_key must be this analyzer's"), (None, "needs a key that")):
        with pytest.raises(ParameterError, match=words):
            AnalyzerServer(store, signing=signing, **more)
    assert AnalyzerServer(store, signing=service.signing, **more).newest_model(campaign.id) == server.newest_model(
        campaign.id
    )
    server.stop()


def test_a_model_says_what_was_released_and_where_to_report(campaign: Any) -> None:
    model = first_model(campaign)
    assert model.round == OpenRound(0, 0, 0, 1)
    assert Model.from_document(json.loads(json.dumps(model.document()))) == model
    assert "closes" in model.document()["round"]


def test_people_whom_no_batch_waits_for_are_not_asked(service: Any) -> None:
    """Of seven people in slots of five the last two fill nothing: they choose, and report to nobody."""
    learner = ShuffleVecLinUCB.planned(LinearSetting(users=7, dimension=1), Privacy(50, 0.1), batch=5)
    campaign = service.campaign(learner)
    statuses = []
    for _ in range(7):
        device = service.device(campaign)
        statuses.append(device.reward(device.choose(None, [[1.0]]), 1).status)
        service.work()
    assert statuses == ["reported"] * 5 + ["not asked"] * 2
    assert service.shuffler.counts(f"{campaign.id}.0.0")["reports"] == 5


# --- what a model may ask for -----------------------------------------------------------------


def _squared() -> Any:
    """People's squared errors at one point each, once: gradients may be clipped."""
    problem = Problem.of(
        SquaredLoss(), L2Ball(dimension=1, radius=2), users=6, privacy=Privacy(50, 0.1), visits=1, rounds=2
    )
    return plan(problem, solver="sgd")


def _asked(model: Model, parameters: dict[str, Any]) -> Model:
    assert model.step is not None
    return replace(model, step=replace(model.step, parameters={**model.step.parameters, **parameters}))


def test_no_model_makes_who_reports_depend_on_what_they_have(service: Any) -> None:
    """With a longer length than the plan's, people with long gradients would refuse, and the others would report."""
    campaign = service.campaign(_squared())
    wanted = _asked(first_model(campaign), {"clip": 100.0, "point": [50.0]})
    for row, label in (([1.0], -1.0), ([0.1], 0.0)):
        device, to_shuffler = handed(service, campaign, signed(wanted, service.signing))
        with pytest.raises(DataError, match=r"model\.step must be one that the campaign's learner may ask for"):
            device.contribute(row, label)
        assert to_shuffler.requests == []


STEPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "a longer length": (_squared, {"clip": 100.0}),
    "another loss": (_squared, {"loss": LogisticLoss().document()}),
    "a point outside": (_squared, {"point": [1e300]}),
    "a point without end": (_squared, {"point": [float("inf")]}),
    "no point": (_squared, {"point": None}),
    "more points": (_squared, {"point": [0.0, 0.0]}),
    "a point that is no number": (_squared, {"point": ["0"]}),
    "envelopes": (_squared, {"smoothing": 1.0}),
    "something more": (_squared, {"more": 1}),
    "other rewards": (some_bandit, {"joint": {"dimension": 1, "nonnegative": False, "lowest_reward": -1.0}}),
    "no bandit's model": (some_bandit, {"model": {}}),
    "a radius for three offers": (
        some_bandit,
        {"model": {"theta": [0.0], "inverse": [[1.0]], "radius": [1.0, 1.0, 1.0]}},
    ),
    "a theta that is no number": (some_bandit, {"model": {"theta": [float("nan")], "root": [[1.0]]}}),
    "an arm there is not": (some_arms, {"arm": 2}),
    "no arm": (some_arms, {"arm": True}),
    "a count with parameters": (some_count, {"arm": 1}),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_the_learner_never_asks_for_is_refused_though_it_is_signed(service: Any, name: str) -> None:
    make, parameters = STEPS[name]
    campaign = service.campaign(make())
    model = first_model(campaign)
    assert checked_model(signed(model, service.signing), campaign) == model
    for wrong in (_asked(model, parameters), replace(model, step=None), replace(model, step=DeviceStep("else"))):
        with pytest.raises(DataError, match=r"model\.step must be"):
            checked_model(signed(wrong, service.signing), campaign)


def test_moments_and_gradients_are_asked_for_in_rounds_of_their_own(service: Any) -> None:
    limits = {"privacy": Privacy(50, 0.1), "visits": 3, "rounds": 3}
    solver = plan(Problem.of(LogisticLoss(), L2Ball(dimension=1, radius=2), users=60, **limits), solver="conditioned")
    campaign, state = service.campaign(solver), solver.start()
    for number in range(solver.rounds):
        cohort = solver.ask(state)
        model = model_of(campaign, number, state, cohort)
        assert checked_model(signed(model, service.signing), campaign).step.name == cohort.step.name
        other = replace(model, round=replace(model.round, seating=1 - model.round.seating))
        with pytest.raises(DataError, match=r"model\.step must be .*, got (gradient|moments)"):
            checked_model(signed(other, service.signing), campaign)
        state = solver.tell(state, cohort.users, {1: [1e6]})
