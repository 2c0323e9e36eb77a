"""What must never happen: a context, a choice or a reward in the clear, or a fetch that can be linked to a report.

A campaign's people have values that can be recognised. All bytes of all requests and answers, both stores with their
logs, the devices' memories and all that is logged are searched for them, with real encryption.
"""

import itertools
import json
import logging
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from harness.campaigns import ROWS, some_arms, some_bandit, some_fit
from harness.world import tables_of
from shuffledp.learn.bandits.linear.observations import JointVectors
from shuffledp.service.device import Device
from shuffledp.service.wire import SignedText

# Numbers that nothing else contains, whole and in any spelling of eight digits or more.
CONTEXT, OFFER, REWARD = 0.7310585786, 0.8807970779, 0.6224593312
AGE, LABEL = 42.4242424242, "yes"


@dataclass
class Aftermath:
    """All that was sent, kept and logged."""

    fetches: list[httpx.Request]
    reports: list[httpx.Request]
    wire: bytes
    disks: dict[str, bytes]
    logged: str
    models: list[SignedText]


def spellings(number: float) -> Iterator[bytes]:
    """As text of some digits, and as floats of both byte orders; four bytes would be found in ciphertexts by chance."""
    for digits in range(8, 18):
        yield f"{number:.{digits}g}".encode()
    yield repr(number).encode()
    for form in ("<d", ">d"):
        yield struct.pack(form, number)


def bytes_of(folder: Path, pattern: str) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob(pattern)) if file.is_file())


@pytest.fixture(scope="module")
def logs() -> Iterator[list[str]]:
    """Everything that anybody logs."""
    kept: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(f"{record.getMessage()} {record.__dict__}")

    handler, root = Keeping(0), logging.getLogger()
    service, level = logging.getLogger("shuffledp.service"), root.level
    before = service.level
    root.addHandler(handler)
    root.setLevel(1)
    service.setLevel(1)
    yield kept
    root.removeHandler(handler)
    root.setLevel(level)
    service.setLevel(before)


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: Any, key: Any, tokens: Any, logs: list[str], service_of: Any) -> Iterator[Aftermath]:
    """A bandit, arms and a fit, each with its people; a report waits in a memory, another in an open batch."""
    folder = tmp_path_factory.mktemp("campaigns")
    service = service_of(folder, key, tokens)
    to_shuffler, to_analyzer = service.wire("shuffler"), service.wire("analyzer")

    def cookies(request: httpx.Request) -> httpx.Response:
        """A proxy that would like to know its people again, and a tag of its own making."""
        answer = to_analyzer.inner.handle_request(request)
        if answer.status_code == 200 and len(to_analyzer.requests) % 2:
            answer.headers["ETag"] = '"a-name-for-you"'
        answer.headers["Set-Cookie"] = "who=you-again"
        return answer

    to_analyzer.instead = cookies
    bandit, arms, fit = (
        service.campaign(some_bandit()),
        service.campaign(some_arms()),
        service.campaign(some_fit(), rows=ROWS),
    )

    def person(campaign: Any, number: int) -> Any:
        more = {"http": to_shuffler.client, "models_http": to_analyzer.client}
        return service.device(campaign, memory=folder / f"memory-{campaign.id[:6]}-{number}.db", **more)

    for number in range(6):
        with person(bandit, number) as device:
            device.model()
            choice = device.choose([CONTEXT], [[OFFER], [-OFFER]])
            assert device.reward(choice, REWARD).is_reported
            service.work()
    for number in range(3):
        with person(arms, number) as device:
            assert device.reward(device.choose(), REWARD).is_reported
        with person(fit, number) as device:
            assert device.contribute({"age": AGE}, LABEL).is_reported
    service.work()

    def dead(request: httpx.Request) -> None:
        if request.method == "PUT":
            raise httpx.ConnectError("no network")

    to_shuffler.instead = dead
    with person(bandit, 99) as device, pytest.raises(Exception, match="wait in the outbox"):
        device.reward(device.choose([CONTEXT], [[OFFER], [-OFFER]]), REWARD)
    models = [found for each in (bandit, arms, fit) for found in service.analyzer.models(each.id, -1, 100)]
    names = ("shuffler.db*", "analyzer.db*", "memory-*")
    disks = {name: bytes_of(folder, name) for name in names}
    assert len(models) == 6 and tables_of(folder / "shuffler.db")["accepted"]
    yield Aftermath(
        to_analyzer.requests,
        to_shuffler.requests,
        to_shuffler.bytes() + to_analyzer.bytes(),
        disks,
        "\n".join(logs),
        models,
    )
    service.stop()


def secrets() -> list[bytes]:
    """What the device had, and what it computed from it before it was randomized."""
    feature = CONTEXT * OFFER
    joint = JointVectors(1).pack([[feature]], [REWARD])[0].tolist()
    prepared = ROWS.prepared({"age": AGE}, LABEL)[0][0].tolist()
    numbers = [CONTEXT, OFFER, REWARD, AGE, feature, -feature, *joint, *prepared]
    return list(
        itertools.chain.from_iterable(spellings(number) for number in numbers if abs(number) not in (0, 0.5, 1))
    )


def test_no_context_choice_or_reward_is_in_the_clear_anywhere(aftermath: Aftermath) -> None:
    places = {"the wire": aftermath.wire, "logs": aftermath.logged.encode(), **aftermath.disks}
    assert all(len(held) > 1000 for held in places.values()), {name: len(held) for name, held in places.items()}
    for name, held in places.items():
        assert not [needle for needle in secrets() if needle in held], f"something of a person in {name}"
        assert (
            b'"reward"' not in held and b'"context"' not in held and b"you-again" not in aftermath.disks.get(name, b"")
        )


def test_the_scan_would_find_what_is_there(aftermath: Aftermath) -> None:
    """A twin that wrote a reward into its memory, and a model's own numbers, are found by the same scan."""
    leak = aftermath.disks["memory-*"] + json.dumps({"r": REWARD, "x": CONTEXT * OFFER}).encode()
    assert [needle for needle in secrets() if needle in leak]
    theta = json.loads(aftermath.models[1].text)["estimate"]["theta"][0]
    assert math.isfinite(theta) and any(needle in aftermath.wire for needle in spellings(theta))


def test_fetches_and_reports_share_nothing(aftermath: Aftermath, tokens: Any) -> None:
    """No token, cookie or id on a fetch; and no header of a fetch on a report."""
    secret = tokens.secrets["enrol"]
    signatures = set()
    assert len(aftermath.fetches) > 15 and len(aftermath.reports) > 20
    for request in aftermath.fetches:
        assert request.method == "GET" and request.url.path.endswith("/models/newest") and not request.url.query
        assert "authorization" not in request.headers and "cookie" not in request.headers
        assert secret not in str(request.headers) and request.content == b""
        tag = request.headers.get("if-none-match")
        if tag is not None:
            signatures.add(tag.strip('"'))
    for request in aftermath.reports:
        assert "cookie" not in request.headers and "if-none-match" not in request.headers
        assert request.headers["authorization"] == f"Bearer {secret}"
    # Values of headers that both have say nothing of a person.
    shared = {(name, value) for each in aftermath.fetches for name, value in each.headers.items()} & {
        (name, value) for each in aftermath.reports for name, value in each.headers.items()
    }
    assert {name for name, _ in shared} <= {"host", "accept", "accept-encoding", "connection", "user-agent"}
    # All fetches of one model are alike, whoever's they are.
    assert signatures and "a-name-for-you" not in signatures
    assert len({json.dumps(dict(each.headers), sort_keys=True) for each in aftermath.fetches}) <= 1 + len(signatures)


def test_only_signatures_of_models_are_sent_back(aftermath: Aftermath) -> None:
    """A proxy's own tag would be a name by which it knows a device again."""
    sent = {each.headers["if-none-match"] for each in aftermath.fetches if "if-none-match" in each.headers}
    assert sent and sent <= {f'"{found.signature}"' for found in aftermath.models}
    assert b"a-name-for-you" in aftermath.wire


def test_seats_and_reports_say_which_round_and_nothing_of_the_person(aftermath: Aftermath) -> None:
    lengths: dict[str, set[int]] = {}
    for request in aftermath.reports:
        kind = request.url.path.split("/")[3].split(".")[0] + request.method
        if request.method == "PUT":
            lengths.setdefault(kind, set()).add(len(request.content))
        else:
            assert request.content == b"" and set(request.url.params) <= {"count", "slots"}
    assert len(lengths) == 3
    # Of the arms' and the fit's people, who sit in one batch, reports are alike to the byte.
    assert sorted(len(each) for each in lengths.values())[:2] == [1, 1]


def test_devices_own_connections_are_two_and_keep_no_cookies(make_service: Callable[..., Any]) -> None:
    campaign = make_service().campaign(some_arms())
    urls = {"shuffler": "https://shuffler.example", "analyzer": "https://analyzer.example"}
    with Device(campaign, **urls, token="t" * 64) as device:
        assert device._http is not device._fetch.http and device._fetch.token is None
        assert device._http._transport is not device._fetch.http._transport
        assert np.array_equal([len(device._http.cookies), len(device._fetch.http.cookies)], [0, 0])
