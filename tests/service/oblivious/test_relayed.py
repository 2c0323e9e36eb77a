"""Clients through a relay: what the relay sees, what it can do, and what it cannot."""

import gzip
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from harness.campaigns import some_arms
from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.blind_rsa import blind_sign
from shuffledp.service.admission.private_tokens import Issuer, Token, TokenKey, unpack_request
from shuffledp.service.admission.requesting import PendingToken
from shuffledp.service.client import AnswerError, Client, Relay, ReportError, UnreachableError
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.oblivious.key_config import KeyConfig, encode_configs
from shuffledp.service.oblivious.padding import ANSWER_STEP, REQUEST_OVERHEAD, RESPONSE_OVERHEAD, request_length

PLAN = "binary coins"
SEALED = {"Content-Type": "message/ohttp-res"}


@pytest.fixture
def hidden(make_hidden: Callable[..., Any]) -> Any:
    return make_hidden()


def opened(hidden: Any, request: httpx.Request) -> InnerRequest:
    """What was inside, for whoever has the gateway's key."""
    found = hidden.keys[0].open(request.content)
    assert found is not None
    return InnerRequest.decoded(found[0])


# --- what a relay sees -----------------------------------------------------------------------------


VALUES: dict[str, list[Any]] = {
    "binary coins": [0, 1],
    "vector bits": [[0.0, 0.0], [0.6, -0.8]],
    "running histogram": [0, 1, 2],
    "running count, completed": [0, 1],
}


@pytest.mark.parametrize("name", VALUES)
def test_requests_and_answers_of_a_task_have_one_length_each(
    hidden: Any, make_task: Callable[..., Any], name: str
) -> None:
    """Taking a seat, reporting, reporting again and asking where nothing is left look the same."""
    task = hidden.service.add(make_task(name))
    wire, values = hidden.wire(), VALUES[name]
    with hidden.client(task, wire) as client:
        sent = client.report_many([values[place % len(values)] for place in range(task.plan.users)])
        assert sent.new == task.plan.users
        with pytest.raises(ReportError, match="task-full"):
            client.report(values[0])
    inside = [opened(hidden, request) for request in wire.requests]
    assert {each.method for each in inside} == {"POST", "PUT"} and len(inside) == 2 * task.plan.users + 1
    assert len({len(each.encoded()) for each in inside}) > 1, "without padding they differ"
    [length] = {len(request.content) for request in wire.requests}
    assert length == request_length(task.routing) + REQUEST_OVERHEAD
    assert {len(answer.content) for answer in wire.answers} == {ANSWER_STEP + RESPONSE_OVERHEAD}
    hidden.service.work()
    history = hidden.service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/history").json()
    assert history["releases"][-1]["dropped"] == 0


def test_a_relay_reads_nothing_and_gets_no_field_but_the_media_type(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    with hidden.client(task, wire) as client:
        client.report_many([1, 0, 1])
    inside = [opened(hidden, request) for request in wire.requests]
    seats = [each.content[:16] for each in inside if each.method == "PUT"]
    words = [task.id.encode(), hidden.service.tokens.secrets["enrol"].encode(), b"shuffler.example", b"Bearer", *seats]
    everything = wire.bytes()
    assert not any(word in everything or word.hex().encode() in everything for word in words)
    assert {request.method for request in wire.requests} == {"POST"}
    names = {name for request in wire.requests for name in request.headers}
    assert names == {"content-type", "host", "content-length"}
    keys = [request.content[7:39] for request in wire.requests]
    assert len(set(keys)) == len(keys) == 6
    assert {tuple(name for name, _ in each.fields) for each in inside} == {
        ("accept", "authorization"),
        ("accept", "authorization", "content-type"),
    }


def test_what_waits_is_sent_one_by_one(hidden: Any, make_task: Callable[..., Any], tmp_path: Path) -> None:
    """An outbox that was filled without a relay, and holds several."""
    task = hidden.service.add(make_task(PLAN))
    unanswered = hidden.wire()
    unanswered.instead = lambda request: httpx.Response(503) if b"/reports" in request.url.raw_path else None
    direct = {"http": unanswered.client, "patience": 0.0, "outbox": tmp_path / "outbox"}
    with Client(task, "http://localhost", hidden.service.tokens.secrets["enrol"], **direct) as client:
        with pytest.raises(ReportError):
            client.report_many([1, 1, 0, 0, 1])
        assert client.outbox.waiting(task.id) == 5
    wire = hidden.wire()
    with hidden.client(task, wire, outbox=tmp_path / "outbox") as client:
        assert client.flush().new == 5
    assert [opened(hidden, request).method for request in wire.requests] == ["PUT"] * 5
    assert len({len(request.content) for request in wire.requests}) == 1


# --- what a relay can do ---------------------------------------------------------------------------

Trouble = Callable[[Any, httpx.Request], httpx.Response]


def _answered(wire: Any, request: httpx.Request) -> httpx.Response:
    return wire.inner.handle_request(request)


def _dropped(wire: Any, request: httpx.Request) -> httpx.Response:
    raise httpx.ReadTimeout("nothing came", request=request)


def _lost(wire: Any, request: httpx.Request) -> httpx.Response:
    _answered(wire, request)
    raise httpx.ReadError("the answer was lost", request=request)


def _cut(wire: Any, request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers=SEALED, content=_answered(wire, request).content[:-1])


def _altered(wire: Any, request: httpx.Request) -> httpx.Response:
    content = bytearray(_answered(wire, request).content)
    content[40] ^= 1
    return httpx.Response(200, headers=SEALED, content=bytes(content))


def _of_another(wire: Any, request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, headers=SEALED, content=wire.answers[0].content)


def _in_the_clear(wire: Any, request: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json={"new": True})


def _plain_inside(wire: Any, request: httpx.Request) -> httpx.Response:
    content = InnerResponse(status=201, content=b'{"new":true}').encoded(ANSWER_STEP)
    return httpx.Response(200, headers=SEALED, content=content)


def _elsewhere(wire: Any, request: httpx.Request) -> httpx.Response:
    return httpx.Response(307, headers={"Location": "https://elsewhere.example/"})


def _endless(wire: Any, request: httpx.Request) -> httpx.Response:
    def parts() -> Iterator[bytes]:
        while True:
            yield bytes(1 << 20)

    return httpx.Response(200, headers=SEALED, content=parts())


def _busy(wire: Any, request: httpx.Request) -> httpx.Response:
    return httpx.Response(429, headers={"Retry-After": "7"})


def _copied(wire: Any, request: httpx.Request) -> httpx.Response:
    """Brings every request three times, and answers with the last answer."""
    return [_answered(wire, request) for _ in range(3)][-1]


PASSING = (_dropped, _lost, _cut, _altered, _of_another, _in_the_clear, _plain_inside, _elsewhere, _endless, _busy)


class Troubled(httpx.BaseTransport):
    """A relay that makes trouble with some requests: by their numbers, from 0."""

    def __init__(self, wire: Any, trouble: Trouble, *numbers: int) -> None:
        self.wire, self.trouble, self.numbers, self.count = wire, trouble, numbers, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        number, self.count = self.count, self.count + 1
        request.read()
        if number not in self.numbers:
            return self.wire.handle_request(request)
        self.wire.requests.append(request)
        return self.trouble(self.wire, request)


@pytest.mark.parametrize("trouble", PASSING, ids=lambda trouble: trouble.__name__)
def test_whatever_a_relay_does_the_same_report_is_sealed_anew(
    hidden: Any, make_task: Callable[..., Any], trouble: Trouble
) -> None:
    """Nothing is lost, nothing is counted twice, and no value is randomized twice."""
    task = hidden.service.add(make_task(PLAN))
    wire, pauses = hidden.wire(), []
    # The first person's seat and report pass; the second's seat is tried twice, its report three times.
    relay = httpx.Client(transport=Troubled(wire, trouble, 2, 4, 5))
    with hidden.client(task, wire, http=relay, patience=60.0, sleep=pauses.append) as client:
        sent = client.report_many([1, 0])
        assert sent.reports == 2 and sent.retried == 1 and client.outbox.waiting(task.id) == 0
    assert len(pauses) == 3 and (trouble is not _busy or min(pauses) >= 7)
    inside = [opened(hidden, request) for request in wire.requests]
    assert [each.method for each in inside] == ["POST", "PUT", "POST", "POST", "PUT", "PUT", "PUT"]
    assert inside[4] == inside[5] == inside[6], "the same bytes"
    assert len({request.content[7:39] for request in wire.requests}) == 7, "each sealed anew"
    assert hidden.service.shuffler.counts(task.id)["reports"] == 2


def test_copies_count_once(hidden: Any, make_task: Callable[..., Any]) -> None:
    """Every request comes three times: reports are known, copies for seats are answered as such, and it asks anew."""
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    relay = httpx.Client(transport=Troubled(wire, _copied, *range(100)))
    with hidden.client(task, wire, http=relay, patience=0.0) as client:
        # The last copy's answer is "too early" for as long as this goes on.
        with pytest.raises(ReportError) as stopped:
            client.report(1)
        assert "too-early" in str(stopped.value) and stopped.value.unsent == 1
    relay = httpx.Client(transport=Troubled(wire, _copied, 1, 3, 5))
    with hidden.client(task, wire, http=relay) as client:
        assert client.report_many([1, 1, 1]).reports == 3
    assert hidden.service.shuffler.counts(task.id)["reports"] == 3


def test_old_requests_in_another_order_change_nothing(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    with hidden.client(task, wire) as client:
        client.report_many([1] * task.plan.users)
        before = hidden.service.shuffler.counts(task.id)
        for request in reversed(wire.requests):
            assert hidden.post(request.content).status_code == 200
        assert hidden.service.shuffler.counts(task.id) == before
    hidden.service.work()
    for request in wire.requests:
        assert hidden.post(request.content).status_code == 200
    hidden.service.work()
    [release] = hidden.service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/history").json()["releases"]
    assert release["dropped"] == 0 and release["time"] == task.plan.users


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 413, 422])
def test_a_refusal_in_the_clear_keeps_the_report_and_is_no_refusal_of_the_shufflers(
    hidden: Any, make_task: Callable[..., Any], status: int
) -> None:
    """A relay that says "seat-gone" would have noise drawn again, and then see whether people come back."""
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    forged = {"type": "urn:shuffledp:problem:seat-gone", "status": status, "detail": "come again"}

    def refused(wire: Any, request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, json=forged)

    relay = httpx.Client(transport=Troubled(wire, refused, 1))
    with hidden.client(task, wire, http=relay) as client:
        with pytest.raises(ReportError) as stopped:
            client.report(1)
        assert client.outbox.waiting(task.id) == 1 and stopped.value.waiting == 1
        cause = stopped.value.cause
        assert isinstance(cause, AnswerError) and cause.kind == ("gateway-key" if status == 422 else "relay")
        assert "come again" not in str(stopped.value)
        assert "get its current keys" in cause.detail or "check that it is a relay" in cause.detail
        assert client.flush().new == 1
    assert hidden.service.shuffler.counts(task.id)["reports"] == 1


def test_a_relay_cannot_fill_a_clients_memory_with_what_is_packed_twice(
    hidden: Any, make_task: Callable[..., Any]
) -> None:
    """A kilobyte that is packed twice is a gigabyte: nothing is unpacked, and the relay is asked again."""
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    packed = gzip.compress(gzip.compress(bytes(1 << 24)))
    headers = {"Content-Encoding": "gzip, gzip", "Content-Type": "message/ohttp-res"}

    def swollen(wire: Any, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(packed))

    relay = httpx.Client(transport=Troubled(wire, swollen, 0))
    with hidden.client(task, wire, http=relay, patience=60.0, sleep=lambda seconds: None) as client:
        tracemalloc.start()
        try:
            assert len(packed) < 1 << 10 and client.report(1).new == 1
            assert tracemalloc.get_traced_memory()[1] < 1 << 23
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("later", ["Mon, 01 Jan 2020 00:00:00 +99999999999999999999", "9" * 400, "soon"])
def test_no_retry_after_makes_a_client_fall_over(hidden: Any, make_task: Callable[..., Any], later: str) -> None:
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()

    def refused(wire: Any, request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, headers={"Retry-After": later})

    relay = httpx.Client(transport=Troubled(wire, refused, 1))
    with hidden.client(task, wire, http=relay) as client:
        with pytest.raises(ReportError) as stopped:
            client.report(1)
        assert stopped.value.waiting == 1 and client.flush().new == 1


# --- keys and addresses ----------------------------------------------------------------------------


def test_a_key_that_the_gateway_does_not_have_is_said_so(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    unknown = KeyConfig((hidden.keys[0].config.key_id + 1) % 256, PrivateKey.generate().public)
    relay = Relay(hidden.relay().url, (unknown,))
    with hidden.client(task, hidden.wire(), relay=relay) as client:
        with pytest.raises(ReportError, match="get its current keys") as stopped:
            client.report(1)
        assert isinstance(stopped.value.cause, AnswerError) and stopped.value.cause.kind == "gateway-key"


def test_keys_come_from_a_file(hidden: Any, tmp_path: Path) -> None:
    file = tmp_path / "gateway.ohttp-keys"
    file.write_bytes(encode_configs([hidden.keys[0].config]))
    assert Relay.of("https://relay.example/", file) == Relay("https://relay.example", (hidden.keys[0].config,))
    with pytest.raises(ParameterError, match=r"gateway_keys must be a file that can be read.*gateway\.ohttp-keys"):
        Relay.of("https://relay.example", tmp_path / "none")
    file.write_text("{}")
    with pytest.raises(DataError, match="application/ohttp-keys"):
        Relay.of("https://relay.example", file)
    with pytest.raises(ParameterError, match="relay must be https unless it is this machine"):
        Relay("http://relay.example", hidden.relay().keys)
    with pytest.raises(ParameterError, match="gateway_keys must be given"):
        Relay("https://relay.example", ())


def test_a_relay_that_is_away_is_tried_again_and_then_said_so(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    relay = httpx.Client(transport=Troubled(wire, _dropped, *range(100)))
    with (
        hidden.client(task, wire, http=relay) as client,
        pytest.raises(ReportError) as stopped,
    ):
        client.report(1)
    assert isinstance(stopped.value.cause, UnreachableError)
    assert f"(through the relay {hidden.relay().url}) cannot be reached" in str(stopped.value)


def test_what_does_not_fit_into_the_one_length_is_refused(hidden: Any, make_task: Callable[..., Any]) -> None:
    task = hidden.service.add(make_task(PLAN))
    wire = hidden.wire()
    with (
        Client(task, "https://shuffler.example", "t" * 4000, http=wire.client, relay=hidden.relay()) as client,
        pytest.raises(ParameterError, match="token and the shuffler's address must fit into 1024 bytes"),
    ):
        client.report(1)
    assert not wire.requests


def test_a_device_reports_through_a_relay_and_fetches_models_directly(hidden: Any) -> None:
    campaign = hidden.service.campaign(some_arms())
    wire, models = hidden.wire(), hidden.service.wire("analyzer")
    with hidden.service.device(campaign, http=wire.client, models_http=models.client, relay=hidden.relay()) as device:
        assert device.reward(device.choose(), 1).is_reported
    assert [opened(hidden, request).method for request in wire.requests] == ["POST", "PUT"]
    assert len({len(request.content) for request in wire.requests}) == 1
    assert {request.method for request in models.requests} == {"GET"}


def with_a_token(hidden: Any, make_task: Callable[..., Any]) -> tuple[Any, Token]:
    """A task that names an issuer, and a token that it has signed."""
    private = rsa.generate_private_key(65537, 2048)
    issuer = Issuer("issuer.example", TokenKey.of(private.public_key()))
    task = hidden.service.add(make_task(PLAN, issuer=issuer))
    pending = PendingToken.draw(task.gate, bits=RandomBits.secure())
    blinded = unpack_request(issuer.key, pending.request(task.gate))
    return task, pending.token(task.gate, blind_sign(private, blinded, bits=RandomBits.secure()))


def test_tokens_of_an_issuer_travel_inside_and_no_length_says_so(hidden: Any, make_task: Callable[..., Any]) -> None:
    """Neither an address nor a name: a seat for a token looks like every other request, and is given once."""
    task, token = with_a_token(hidden, make_task)
    wire = hidden.wire()
    with hidden.client(task, wire, token=[token.data]) as client:
        assert client.report(1).new == 1
        with pytest.raises(ReportError, match="pass-spent"):
            client.report(1)
    assert {len(request.content) for request in wire.requests} == {request_length(task.routing) + REQUEST_OVERHEAD}
    assert {len(answer.content) for answer in wire.answers} == {ANSWER_STEP + RESPONSE_OVERHEAD}
    shown = [dict(opened(hidden, request).fields).get("authorization", "") for request in wire.requests]
    assert [str(each).split(" ")[0] for each in shown] == ["PrivateToken", "", "PrivateToken"]


def test_a_relay_that_holds_requests_back_uses_up_seats_and_wins_no_report(
    make_hidden: Callable[..., Any], make_task: Callable[..., Any], set_clock: Any
) -> None:
    """What was never brought is no copy: each is good for one of the token's three seats, and for nothing else."""
    hidden = make_hidden(clock=set_clock.now)
    task, token = with_a_token(hidden, make_task)
    held: list[bytes] = []

    def hold(wire: Any, request: httpx.Request) -> httpx.Response:
        held.append(request.content)
        return httpx.Response(503)

    wire = hidden.wire()
    relay = httpx.Client(transport=Troubled(wire, hold, *range(100)))
    for _ in range(4):
        with hidden.client(task, wire, http=relay, token=[token.data]) as client, pytest.raises(ReportError):
            client.report(1)
    for sealed in held:
        assert hidden.post(sealed).status_code == 200
        set_clock.time += 61
    assert hidden.service.shuffler.seats._value.get() == 3
    with (
        hidden.client(task, wire, token=[token.data]) as client,
        pytest.raises(ReportError, match="pass-spent"),
    ):
        client.report(1)
    assert hidden.service.shuffler.counts(task.id)["reports"] == 0
