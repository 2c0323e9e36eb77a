"""The page about the wire says what the package does: its constants, its refusals, and the methods of the client."""

import math
import re
from pathlib import Path
from typing import Any

from shuffledp.service.client.calls import is_passing
from shuffledp.service.crypto import SUITE_NAME, binding
from shuffledp.service.oblivious.padding import ANSWER_STEP, HEAD_BYTES, request_length
from shuffledp.service.openapi import OHTTP_ANSWER, OHTTP_KEYS, OHTTP_REQUEST
from shuffledp.service.problems import GATEWAY_KEY, KINDS, NOT_SEALED, SEAT_GONE, TASK_FULL, TOO_EARLY, WRONG_LENGTH
from shuffledp.service.routing import Routing
from shuffledp.service.wire import CIPHERTEXT_BYTES, MESSAGE_BYTES, MOST_REPORTS_AN_UPLOAD, OVERHEAD_BYTES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "wire.md").read_text("utf-8")


def test_constants_are_the_packages() -> None:
    hop: Any = "{hop}"
    assert f"    {binding('{task_id}', '{batch_id}', hop).decode()}\n" in PAGE
    assert f"`{SUITE_NAME}`" in PAGE and f"Of {MESSAGE_BYTES} bytes each" in PAGE
    assert f"`ciphertext_bytes` is {CIPHERTEXT_BYTES} + {OVERHEAD_BYTES} `layers`" in PAGE
    assert f"up to {MOST_REPORTS_AN_UPLOAD} and 64 MB" in PAGE


def test_what_is_said_of_relays_is_the_packages() -> None:
    section = PAGE.partition("## Through a relay")[2].partition("\n## ")[0]
    routing = Routing(users=10, budget=1, shufflers=1, slot_users=10, every_slot=False, messages={10: 2})
    assert f"max(messages) ciphertext_bytes + {HEAD_BYTES}) / 256)" in section
    assert request_length(routing) == 256 * math.ceil((2 * CIPHERTEXT_BYTES + HEAD_BYTES) / 256)
    assert f"multiple of {ANSWER_STEP:,} bytes" in section and f"{GATEWAY_KEY.uri}" in section
    assert all(f"`{media}`" in section for media in (OHTTP_REQUEST, OHTTP_ANSWER, OHTTP_KEYS))
    assert f"{TOO_EARLY.status} `{TOO_EARLY.name}`" in section and str(NOT_SEALED.status) in section


def test_every_refusal_that_a_device_may_meet_is_there() -> None:
    rows = [row.split("|")[1:3] for row in PAGE.splitlines() if re.match(r"\| \d{3}", row)]
    said = {int(status): kind.strip() for statuses, kind in rows for status in statuses.split(",")}
    for kind in (SEAT_GONE, WRONG_LENGTH, TASK_FULL):
        assert said.pop(kind.status) == f"`{kind.name}`"
    passing = next(statuses for statuses, _ in rows if " 503" in statuses)
    assert [int(status) for status in passing.split(",")] == [
        status for status in range(400, 600) if is_passing(status)
    ]
    assert {kind.status for kind in KINDS} <= {*said, SEAT_GONE.status, WRONG_LENGTH.status, TASK_FULL.status}


def test_the_client_has_the_methods_that_are_specified() -> None:
    source = (ROOT / "clients" / "javascript" / "internal" / "randomizers.js").read_text("utf-8")
    known = set(re.findall(r'^  "([a-z-]+/[a-z-]+)":', source, re.MULTILINE))
    methods = PAGE.partition("## Methods")[2]
    named = set(re.findall(r"^\| `([a-z-]+)`,?(?: noise)? `([a-z-]+)` \|", methods, re.MULTILINE))
    assert known and known == {"/".join(pair) for pair in named}
