"""The gateway: what it opens and for whom, what it refuses and how, and what a copy of a request can do."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.limits import Limits
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse, encode_varint
from shuffledp.service.oblivious.encapsulation import GatewayKey, seal_request
from shuffledp.service.oblivious.gateway import Gateway, Once
from shuffledp.service.oblivious.key_config import KeyConfig, decode_configs
from shuffledp.service.oblivious.padding import longest_sealed, request_length
from shuffledp.service.problems import RefusedError

PLAN = "binary coins"
Fields = tuple[tuple[str, str], ...]


@pytest.fixture
def hidden(make_hidden: Callable[..., Any]) -> Any:
    return make_hidden()


def bearer(hidden: Any, role: str = "enrol") -> tuple[str, str]:
    return "authorization", f"Bearer {hidden.service.tokens.secrets[role]}"


def seats(task: Any, *fields: tuple[str, str], count: int = 1) -> InnerRequest:
    return InnerRequest(method="POST", path=f"/v1/tasks/{task.id}/seats?count={count}", fields=fields)


def problem_of(answer: InnerResponse) -> str:
    return str(json.loads(answer.content)["type"]).removeprefix("urn:shuffledp:problem:")


def test_seats_and_the_task_are_answered_as_without_a_relay(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    answer = hidden.ask(seats(task, bearer(hidden)))
    assert answer.status == 201 and len(json.loads(answer.content)["seats"]) == 1
    shown = hidden.ask(InnerRequest(method="GET", path=f"/v1/tasks/{task.id}", fields=(bearer(hidden, "read"),)))
    direct = hidden.service.at("shuffler", "read").get(f"/v1/tasks/{task.id}").json()
    assert shown.status == 200 and json.loads(shown.content) | {"time": 0} == direct | {"time": 0}


def test_its_keys_are_shown_current_first(make_hidden: Callable[..., Any]) -> None:
    hidden = make_hidden(keys=3)
    for path in ("/ohttp-keys", "/.well-known/ohttp-gateway"):
        shown = hidden.service.at("shuffler").get(path)
        assert shown.headers["content-type"] == "application/ohttp-keys"
        assert decode_configs(shown.content) == tuple(key.config for key in hidden.keys)


def test_older_keys_are_taken_until_they_are_retired(
    make_hidden: Callable[..., Any], make_task: Callable[..., Any]
) -> None:
    hidden = make_hidden(keys=2)
    task = hidden.service.add(make_task(PLAN))
    for key in hidden.keys:
        sealed, exchange = seal_request(key.config, seats(task, bearer(hidden)).encoded())
        assert InnerResponse.decoded(exchange.open(hidden.post(sealed).content)).status == 201


def test_two_keys_of_one_number_are_refused() -> None:
    key = GatewayKey.of(PrivateKey.generate())
    with pytest.raises(DataError, match="keys of different numbers"):
        Gateway((key, key), bits=RandomBits.secure())


def test_a_shuffler_without_a_gateway_says_so(make_service: Callable[..., Any]) -> None:
    client = make_service().at("shuffler")
    sealed = client.post("/.well-known/ohttp-gateway", content=b"", headers={"Content-Type": "message/ohttp-req"})
    for answer in (sealed, client.get("/ohttp-keys")):
        assert answer.status_code == 404 and "no gateway for relays" in answer.json()["detail"]


def test_a_relay_cannot_tell_requests_apart_by_the_gateways_metrics(hidden: Any, make_task: Callable[..., Any]) -> None:
    """They count by route and status: whoever read them around one sealed request would know what it was."""
    task = hidden.service.add(make_task(PLAN))
    refused = hidden.service.at("shuffler").get("/metrics")
    assert refused.status_code == 401 and b"requests_total" not in refused.content
    assert hidden.service.at("shuffler", "enrol").get("/metrics").status_code == 403
    hidden.ask(seats(task, bearer(hidden)))
    shown = hidden.service.at("shuffler", "read").get("/metrics")
    assert shown.status_code == 200 and b'seats",status="201"' in shown.content
    assert hidden.ask(InnerRequest(method="GET", path="/metrics", fields=(bearer(hidden, "read"),))).status == 404


def test_metrics_of_a_shuffler_that_is_no_gateway_are_open(make_service: Callable[..., Any]) -> None:
    assert make_service().at("shuffler").get("/metrics").status_code == 200


# --- what it refuses in the clear ------------------------------------------------------------------


def test_what_it_cannot_open_is_refused_in_the_clear(hidden: Any) -> None:
    config = hidden.keys[0].config
    sealed, _ = seal_request(config, InnerRequest(method="GET", path="/healthz").encoded())
    stranger = KeyConfig(config.key_id, PrivateKey.generate().public)
    other_id = bytes(((config.key_id + 1) % 256,))
    cases = {
        "nothing": (b"", 400, "bad-request"),
        "too short": (sealed[:54], 400, "bad-request"),
        "cut": (sealed[:-1], 422, "not-sealed"),
        "longer": (sealed + b"\0", 422, "not-sealed"),
        "another key's": (seal_request(stranger, b"x")[0], 422, "not-sealed"),
        "an unknown number": (other_id + sealed[1:], 400, "ohttp-key"),
        "another key encapsulation": (sealed[:1] + b"\0\x10" + sealed[3:], 400, "ohttp-key"),
        "another key derivation": (sealed[:3] + b"\0\x02" + sealed[5:], 400, "ohttp-key"),
        "another cipher": (sealed[:5] + b"\0\x03" + sealed[7:], 400, "ohttp-key"),
    }
    for name, (body, status, kind) in cases.items():
        answer = hidden.post(body)
        assert answer.status_code == status and answer.json()["type"].endswith(kind), name
        assert answer.headers["content-type"] == "application/problem+json" and len(answer.json()["detail"]) > 20
    # RFC 9458, section 5.3.
    assert hidden.post(other_id + sealed[1:]).json()["type"] == (
        "https://iana.org/assignments/http-problem-types#ohttp-key"
    )
    assert hidden.post(sealed, **{"Content-Type": "message/bhttp"}).status_code == 415


def test_strangers_cannot_fill_its_memory(hidden: Any, make_task: Callable[..., Any]) -> None:
    """Before a token is seen, no more is read than the longest request of any task takes, or a megabyte."""
    assert hidden.post(bytes((1 << 20) + 55)).status_code == 400
    assert hidden.post(bytes((1 << 20) + 56)).status_code == 413
    routing = replace(make_task(PLAN).routing, messages={20: 20_000})
    assert longest_sealed([routing]) == request_length(routing) + 55 > 20_000 * 77
    hidden.service.shuffler.add_task(json.dumps({"routing": routing.document()}))
    assert hidden.post(bytes(request_length(routing) + 55)).status_code == 400
    assert hidden.post(bytes(request_length(routing) + 56)).status_code == 413


# --- what it refuses inside ------------------------------------------------------------------------


def test_only_what_devices_need_can_be_reached(hidden: Any, make_task: Callable[..., Any]) -> None:
    """Whoever's token it is: a hop's, a reader's and the operator's business is none of a relay's."""
    task = hidden.service.add(make_task(PLAN))
    inner, token = f"/v1/tasks/{task.id}", bearer(hidden, "admin")
    binary = ("content-type", "application/octet-stream")
    forbidden = [
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/healthz"),
        ("GET", "/openapi.json"),
        ("GET", "/ohttp-keys"),
        ("POST", "/v1/tasks"),
        ("POST", f"{inner}/batches/1.0.1"),
        ("POST", f"{inner}/batches/1.0.1/pieces/0"),
        ("POST", f"{inner}/batches/1.0.1/manifest"),
        ("POST", "/.well-known/ohttp-gateway"),
        ("DELETE", inner),
        ("CONNECT", "shuffler.example:443"),
        ("GET", f"https://elsewhere.example{inner}"),
        ("GET", f"{inner}/"),
        ("GET", f"/{inner}"),
        ("GET", f"/v1/../v1/tasks/{task.id}"),
        ("GET", f"/v1/tasks/%2e%2e/{task.id}"),
        ("POST", f"{inner}/seats/"),
        ("POST", f"{inner}%2Fseats"),
    ]
    for method, path in forbidden:
        answer = hidden.ask(InnerRequest(method=method, path=path, fields=(token, binary)))
        assert answer.status == 404 and problem_of(answer) == "not-found", (method, path)
    assert hidden.service.posted == {} and set(hidden.service.shuffler.tasks) == {task.id}


def test_tokens_count_inside_and_no_other_field_does(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    own = bearer(hidden)
    cases: dict[str, tuple[Fields, int]] = {
        "none": ((), 401),
        "unknown": ((("authorization", "Bearer " + "0" * 64),), 401),
        "a hop's": ((bearer(hidden, "hop"),), 403),
        "a reader's": ((bearer(hidden, "read"),), 403),
        "two": ((own, bearer(hidden, "admin")), 400),
        "expecting": ((own, ("expect", "100-continue")), 400),
        "smuggled": (
            (
                ("host", "elsewhere.example"),
                ("x-forwarded-for", "203.0.113.9"),
                ("forwarded", "for=203.0.113.9"),
                ("content-length", "99999999"),
                ("transfer-encoding", "chunked"),
                ("connection", "close"),
                ("cookie", "who=me"),
                ("proxy-authorization", bearer(hidden, "admin")[1]),
                own,
            ),
            201,
        ),
    }
    for name, (fields, status) in cases.items():
        assert hidden.ask(seats(task, *fields)).status == status, name
    # What the relay itself adds is nobody's word for anything.
    sealed, exchange = seal_request(hidden.keys[0].config, seats(task).encoded())
    answer = hidden.post(sealed, Authorization=bearer(hidden, "admin")[1])
    assert InnerResponse.decoded(exchange.open(answer.content)).status == 401


def test_handlers_see_no_field_but_three(hidden: Any, make_task: Callable[..., Any]) -> None:
    scopes: list[Any] = []
    app = hidden.service.apps["shuffler"]
    asked = app.ask
    app.ask = lambda scope, *more: scopes.append(scope) or asked(scope, *more)
    task = hidden.service.add(make_task(PLAN))
    more = [(name, "secret") for name in ("host", "x-forwarded-for", "cookie", "user-agent", "forwarded")]
    assert hidden.ask(seats(task, *more, bearer(hidden))).status == 201
    assert [name for name, _ in scopes[0]["headers"]] == [b"authorization", b"content-length"]
    assert scopes[0]["client"] is None and "secret" not in repr(scopes[0])


def test_what_is_no_request_inside_is_refused_sealed(hidden: Any) -> None:
    huge = b"\x00" + encode_varint(2**62 - 1) + b"GET"
    for plain in (b"", b"\x01\x40\xc8", huge, bytes(4000), b"\xff" * 200):
        answer = hidden.ask(plain)
        assert answer.status == 400 and "send a binary HTTP message" in json.loads(answer.content)["detail"]


def test_limits_are_those_of_the_token_inside(make_hidden: Callable[..., Any], make_task: Callable[..., Any]) -> None:
    """All come over one connection: a token may ask for as much as without a relay, and garbage costs it nothing."""
    hidden = make_hidden(limits=Limits(per_second=3, clock=lambda: 0.0))
    task = hidden.service.add(make_task(PLAN))
    assert {hidden.post(b"x" * 60).status_code for _ in range(10)} == {400}
    assert {hidden.ask(seats(task)).status for _ in range(10)} == {401}
    answers = [hidden.ask(seats(task, bearer(hidden))) for _ in range(5)]
    assert [answer.status for answer in answers] == [201, 201, 201, 429, 429]
    assert dict(answers[-1].fields)["retry-after"] == "1" and problem_of(answers[-1]) == "too-many"
    assert hidden.service.at("shuffler", "enrol").get(f"/v1/tasks/{task.id}").status_code == 429


# --- copies ----------------------------------------------------------------------------------------


def counted(hidden: Any, task: Any) -> Any:
    return hidden.service.shuffler.counts(task.id)


def test_a_copy_of_a_request_for_seats_takes_none(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    sealed, exchange = seal_request(hidden.keys[0].config, seats(task, bearer(hidden)).encoded())
    answers = [InnerResponse.decoded(exchange.open(hidden.post(sealed).content)) for _ in range(4)]
    assert [answer.status for answer in answers] == [201, 425, 425, 425]
    assert problem_of(answers[-1]) == "too-early"
    [seat] = json.loads(answers[0].content)["seats"]
    following = json.loads(hidden.ask(seats(task, bearer(hidden))).content)["seats"][0]
    assert (seat["batches"][0]["seat"], following["batches"][0]["seat"]) == (0, 1), "copies took no place between"


def test_a_copy_of_what_was_broken_off_is_told_too() -> None:
    """Whoever hangs up before the answer does not get to ask again with the same bytes."""
    key = GatewayKey.of(PrivateKey.generate())
    gateway = Gateway((key,), bits=RandomBits.secure())
    sealed, exchange = seal_request(key.config, InnerRequest(method="POST", path="/seats").encoded())

    async def broken_off(request: InnerRequest) -> InnerResponse:
        raise asyncio.CancelledError

    async def asked() -> InnerResponse:
        def refusing(refused: RefusedError) -> InnerResponse:
            return InnerResponse(status=refused.kind.status)

        with pytest.raises(asyncio.CancelledError):
            await gateway.answer(sealed, broken_off, refusing)
        return InnerResponse.decoded(exchange.open(await gateway.answer(sealed, broken_off, refusing)))

    assert asyncio.run(asked()).status == 425


def test_what_came_to_nothing_may_come_again_and_pushes_nobody_out(
    make_hidden: Callable[..., Any], make_task: Callable[..., Any]
) -> None:
    hidden = make_hidden(once=Once(most=3))
    task = make_task(PLAN)
    asked = seats(task, bearer(hidden)).encoded()
    early, exchange = seal_request(hidden.keys[0].config, asked)

    def status(sealed: bytes, own: Any) -> int:
        return InnerResponse.decoded(own.open(hidden.post(sealed).content)).status

    assert [status(early, exchange) for _ in range(2)] == [404, 404]
    hidden.service.add(task)
    assert [status(early, exchange) for _ in range(2)] == [201, 425]
    # Strangers, who have the public key and no token, do not make it forget.
    assert {hidden.ask(seats(task)).status for _ in range(5)} == {401}
    assert status(early, exchange) == 425
    for _ in range(3):
        assert hidden.ask(seats(task, bearer(hidden))).status == 201
    # What is older than it remembers costs a lease, and no more.
    assert status(early, exchange) == 201
