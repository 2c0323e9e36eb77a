"""What `plan --live` takes, the JavaScript client knows: no task that is made by default is refused by a page."""

import re
from typing import Any

import pytest

from harness.node import SOURCE
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.plan import Plan

_SOURCE = (SOURCE / "internal" / "randomizers.js").read_text("utf-8")
KNOWN = set(re.findall(r'^  "([a-z-]+/[a-z-]+)":', _SOURCE, re.MULTILINE))
# Sketches by public hashes: of 130 requests at random, `plan --live` took one of them for none.
NOT_KNOWN = {"histogram/count-min", "histogram/sketch"}
ASKED: dict[str, dict[str, Any]] = {
    "binary-sum": {},
    "bounded-sum": {"low": 0, "high": 1},
    "histogram": {"categories": 1000},
    "counter": {"shufflers": 2},
}


def _named(plan: Plan) -> str:
    return f"{plan.protocol}/{plan.method}"


@pytest.mark.parametrize("protocol", ASKED)
def test_every_method_that_no_liar_can_spoil_is_known_or_said_not_to_be(protocol: str) -> None:
    family = PROTOCOLS[protocol]
    found = set()
    for method in family.methods:
        for users in (2000, 200):
            try:
                plan = family.plan(users=users, privacy=Privacy(1, 1e-6), method=method, **ASKED[protocol])
            except InfeasibleError:
                continue
            found |= set() if plan.can_be_spoiled else {_named(plan)}
    assert found and found <= KNOWN | NOT_KNOWN
    assert {name for name in found if name in NOT_KNOWN} == {each for each in NOT_KNOWN if each.startswith(protocol)}


@pytest.mark.parametrize(
    ("protocol", "users", "epsilon", "more", "method"),
    [
        ("binary-sum", 20, 1, {}, "pure"),
        ("binary-sum", 2000, 1, {}, "poisson-bits"),
        ("binary-sum", 200, 0.25, {"honest_fraction": 0.8}, "coins"),
        ("bounded-sum", 2000, 1, {"low": 0, "high": 1}, "bits"),
        ("histogram", 2000, 1, {"categories": 50}, "decoys"),
        ("histogram", 200, 1, {"categories": 1000}, "buckets"),
        ("histogram", 200, 1, {"categories": 1_000_000}, "hadamard"),
        ("counter", 2000, 1, {"shufflers": 2}, "coins"),
        ("counter", 20_000, 1, {"shufflers": 2, "categories": 5}, "coins"),
        ("counter", 20_000, 1, {"shufflers": 2, "values": "vectors", "dimension": 3, "radius": 1.0}, "coins"),
    ],
)
def test_what_is_taken_by_default_is_known(
    protocol: str, users: int, epsilon: float, more: dict[str, Any], method: str
) -> None:
    plan = PROTOCOLS[protocol].plan(users=users, privacy=Privacy(epsilon, 1e-6), live=True, **more)
    assert plan.method == method and _named(plan) in KNOWN
