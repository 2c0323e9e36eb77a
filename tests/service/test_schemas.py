"""Answers of both servers and what clients write on the wire, held to the schemas of the OpenAPI documents."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.campaigns import KINDS
from harness.schemas import DOCUMENTS, departures
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.delivery import Sending
from shuffledp.service.schemas import ANSWERS, SCHEMAS, needed
from shuffledp.service.task import Task

SECURE = RandomBits.secure()


def _schema(role: str, method: str, path: str, status: int) -> dict[str, Any]:
    answer = DOCUMENTS[role]["paths"][path][method.lower()]["responses"][str(status)]
    (found,) = [each["schema"] for kind, each in answer["content"].items() if kind.endswith("json")]
    return dict(found)


def _holds(service: Any, role: str, token: str | None, path: str, **named: str) -> Any:
    """What a server answers to a GET, if it is what its document says."""
    answer = service.at(role, token).get(path.format(**named))
    found = answer.json()
    assert not departures(role, _schema(role, "GET", path, answer.status_code), found), (path, found)
    return found


def test_what_is_answered_about_a_campaign(make_service: Callable[..., Any]) -> None:
    service = make_service()
    campaign = service.campaign(KINDS["arms"][0]())
    names = {"campaign_id": campaign.id, "number": "0", "task_id": f"{campaign.id}.0.0"}
    shown = _holds(service, "analyzer", "read", "/v1/campaigns/{campaign_id}", **names)
    signed = _holds(service, "analyzer", None, "/v1/campaigns/{campaign_id}/models/newest", **names)
    assert shown["newest"] == signed
    assert signed == _holds(service, "analyzer", None, "/v1/campaigns/{campaign_id}/models/{number}", **names)
    listed = _holds(service, "analyzer", None, "/v1/campaigns/{campaign_id}/models", **names)
    assert listed["models"] == [signed]
    assert not departures("analyzer", {"$ref": "#/components/schemas/Model"}, json.loads(signed["text"]))
    _holds(service, "shuffler", "read", "/v1/tasks/{task_id}", **names)
    _holds(service, "analyzer", None, "/openapi.json")
    unknown = service.at("analyzer").get(f"/v1/campaigns/{'0' * 64}/models/newest")
    assert not departures("analyzer", {"$ref": "#/components/schemas/Problem"}, unknown.json())


@pytest.mark.parametrize("name", ["binary coins", "vector bits", "running histogram"])
def test_what_is_answered_about_a_task_before_and_after_its_first_release(
    name: str, make_service: Callable[..., Any], make_task: Callable[..., Task]
) -> None:
    """Estimates are numbers or rows of them."""
    service = make_service()
    task = service.add(make_task(name))
    for values in ([], [[0.6, -0.8] if "vector" in name else 1] * task.routing.users):
        if values:
            service.send(task, values)
            service.work()
        for path in ("", "/estimate", "/history"):
            _holds(service, "analyzer", "read", f"/v1/tasks/{{task_id}}{path}", task_id=task.id)
        _holds(service, "shuffler", "read", "/v1/tasks/{task_id}", task_id=task.id)
    given_back = service.at("analyzer", "open").delete(f"/v1/openings/{'0' * 32}")
    assert not departures("analyzer", _schema("analyzer", "DELETE", "/v1/openings/{lease}", 200), given_back.json())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hops", [0, 2])
def test_every_kind_of_campaign_is_one(kind: str, hops: int) -> None:
    keys = PrivateKey.generate().public, SigningKey.generate().public
    passed = [PrivateKey.generate().public for _ in range(hops)]
    made = Campaign.create(KINDS[kind][0](), *keys, bits=SECURE, allow_unbounded=True, hops=passed)
    assert not departures("analyzer", {"$ref": "#/components/schemas/Campaign"}, made.document)


def test_a_manifest_is_one() -> None:
    sending = Sending()
    sending.add(b"one")
    found = json.loads(sending.manifest().text)
    assert not departures("analyzer", {"$ref": "#/components/schemas/Manifest"}, found)


def test_a_field_too_many_and_one_too_few_are_seen() -> None:
    """Schemas that let everything pass would be none."""
    kept = {"$ref": "#/components/schemas/Kept"}
    assert not departures("shuffler", kept, {"new": True})
    for wrong in ({}, {"new": 1}, {"new": True, "address": "192.0.2.1"}, [], None):
        assert departures("shuffler", kept, wrong)


def test_nothing_is_written_down_that_nobody_answers() -> None:
    named = {
        each["operationId"] for at in DOCUMENTS.values() for path in at["paths"].values() for each in path.values()
    }
    assert {name.rpartition(" ")[2] for name in ANSWERS} <= named
    assert set(needed([document["paths"] for document in DOCUMENTS.values()])) == set(SCHEMAS)
