"""What auto chooses: as if it had planned everything, within few messages, for the live service, and saying why."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from shuffledp import BinarySum, BoundedSum, Histogram, Privacy, VectorSum
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.choosing import FEW_MESSAGES, Skipped
from shuffledp.protocols.request import Request

TARGETS = [(30, 1.0), (1000, 1.0), (1000, 4.0)]


@cache
def every_plan(protocol: str, users: int, epsilon: float, **domain: Any) -> dict[str, Any]:
    """The plan of each method, made without asking any other; only of those that can."""
    family, found = PROTOCOLS[protocol], {}
    for name, kind in family.methods.items():
        try:
            found[name] = kind.plan(users=users, privacy=Privacy(epsilon, 1e-6), **domain)
        except InfeasibleError:
            continue
    return found


def exhaustive(plans: dict[str, Any], limit: float, error: Any) -> Any:
    """The best of all plans, each of which was made: by error in steps of 2%, messages, and a liar's influence."""
    fitting = [plan for plan in plans.values() if plan.messages_per_user_max <= limit]
    return min(
        fitting,
        key=lambda plan: (
            round(math.log(error(plan)) / math.log(1.02)),
            plan.messages_per_user_mean,
            math.inf if plan.influence is None else plan.influence,
        ),
    )


@pytest.mark.parametrize(("users", "epsilon"), TARGETS)
def test_auto_is_as_good_as_planning_every_method(users: int, epsilon: float) -> None:
    plans = every_plan("binary-sum", users, epsilon)
    for limit in (None, 1, 2, 8, 1000):
        chosen = BinarySum.choose(users=users, privacy=Privacy(epsilon, 1e-6), max_messages=limit)
        best = exhaustive(plans, limit or FEW_MESSAGES, BinarySum.error)
        assert chosen.plan.fingerprint == best.fingerprint, (limit, chosen.why)
    allowed = {name: plan for name, plan in plans.items() if not plan.can_be_spoiled}
    live = BinarySum.plan(users=users, privacy=Privacy(epsilon, 1e-6), live=True)
    assert live.fingerprint == exhaustive(allowed, FEW_MESSAGES, BinarySum.error).fingerprint


@pytest.mark.parametrize(("users", "epsilon"), TARGETS)
def test_no_plan_is_below_its_methods_least_error(users: int, epsilon: float) -> None:
    request = Request(users=users, privacy=Privacy(epsilon, 1e-6))
    for protocol, domain in (("binary-sum", {}), ("histogram", {"categories": 6})):
        for plan in every_plan(protocol, users, epsilon, **domain).values():
            least = type(plan).least_error(request, **domain)
            assert least <= PROTOCOLS[protocol].error(plan) * (1 + 1e-9), plan.method
    # Of methods whose calibration takes long, it is more than nothing.
    slow = ("rr", "correlated", "pure", "zsum") if users > 60 else ("rr", "correlated", "pure")
    assert all(BinarySum.methods[name].least_error(request) > 0.01 for name in slow)


def test_a_method_that_cannot_win_is_not_planned_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = [BinarySum.methods[name] for name in ("rr", "correlated", "pure")]
    for kind in slow:
        monkeypatch.setattr(kind, "for_request", lambda *given, **domain: pytest.fail("was planned"))
    chosen = BinarySum.choose(users=10_000, privacy=Privacy(1, 1e-6))
    assert chosen.plan.method == "shares"
    assert chosen.considered["correlated"] == Skipped(pytest.approx(1.5195, abs=1e-3))
    assert "correlated cannot be below 1.52" in chosen.why and "pure cannot be below 5.41" in chosen.why


def test_auto_sends_few_messages_and_says_what_more_would_buy() -> None:
    asked: dict[str, Any] = {"users": 10_000, "privacy": Privacy(1, 1e-6), "categories": 16}
    chosen = Histogram.choose(**asked)
    assert chosen.plan.method == "decoys" and chosen.plan.messages_per_user_max <= FEW_MESSAGES
    assert chosen.more is not None and chosen.why.endswith(chosen.more)
    words, _, limit = chosen.more.rpartition(": --max-messages ")
    better = Histogram.plan(**asked, max_messages=int(limit))
    assert words == (
        f"{better.method} would send up to {better.messages_per_user_max:,} messages for error of the worst bin "
        f"{better.error_bound:.3g} instead of {chosen.plan.error_bound:.3g}"
    )
    # A named method, or a limit, is what is asked for.
    assert Histogram.plan(**asked, method="correlated").messages_per_user_max > FEW_MESSAGES
    assert Histogram.choose(**asked, max_messages=10_000).more is None


def test_vectors_send_few_messages_for_each_coordinate() -> None:
    asked: dict[str, Any] = {"users": 1000, "privacy": Privacy(1, 1e-6), "radius": 1.0}
    live = VectorSum.choose(**asked, dimension=3, live=True)
    assert live.plan.method == "bits" and live.plan.messages_per_user_max <= 3 * FEW_MESSAGES and live.limit == 96
    again = VectorSum.plan(**asked, dimension=3, method="bits", max_messages=live.limit)
    assert again.fingerprint == live.plan.fingerprint


def test_where_nothing_is_few_the_fewest_messages_win() -> None:
    silent = replace(BinarySum, few_messages=lambda given: 0)
    chosen = silent.choose(users=30, privacy=Privacy(1, 1e-6))
    sent = {name: each.messages_per_user_max for name, each in chosen.considered.items() if hasattr(each, "users")}
    assert len(sent) > 3 and sent[chosen.plan.method] == min(sent.values()) == 1


@pytest.mark.parametrize(
    ("protocol", "domain"),
    [
        ("binary-sum", {}),
        ("bounded-sum", {"low": 0, "high": 1}),
        ("mean", {"low": 0, "high": 1}),
        ("vector-sum", {"dimension": 2, "radius": 1.0}),
        ("histogram", {"categories": 5}),
        ("ranges", {"domain": "0:15"}),
        ("counter", {"shufflers": 2}),
    ],
)
def test_live_plans_are_those_that_nobody_can_spoil(protocol: str, domain: dict[str, Any]) -> None:
    plan = PROTOCOLS[protocol].plan(users=300, privacy=Privacy(2, 1e-4), live=True, **domain)
    assert not plan.can_be_spoiled and plan.warnings == ()


def test_a_named_method_that_can_be_spoiled_is_refused_live() -> None:
    with pytest.raises(InfeasibleError, match="method must not let one client spoil it for everybody"):
        BoundedSum.plan(users=300, privacy=Privacy(2, 1e-4), low=0, high=1, method="shares", live=True)


@pytest.mark.parametrize(
    ("protocol", "domain"),
    [
        ("binary-sum", {}),
        ("bounded-sum", {"low": 0, "high": 1}),
        ("vector-sum", {"dimension": 2, "radius": 1.0}),
        ("histogram", {"categories": 12}),
        ("ranges", {"domain": "-60:1400"}),
        ("ranges", {"domain": "0:15x0:15"}),
    ],
)
def test_auto_never_loses_to_a_limit_that_it_keeps_to_itself(protocol: str, domain: dict[str, Any]) -> None:
    family, asked = PROTOCOLS[protocol], {"users": 20_000, "privacy": Privacy(1, 1e-6), **domain}

    def error(plan: Any) -> float:
        return float(plan.errors.prefix_bound if protocol == "ranges" else family.error(plan))

    free = family.plan(**asked)
    for limit in (2, 9, 16, FEW_MESSAGES):
        try:
            limited = family.plan(**asked, max_messages=limit)
        except InfeasibleError:
            continue
        # Errors within 2% of each other count as equal.
        assert error(free) <= error(limited) * 1.025, (limit, error(free), error(limited))


@pytest.mark.parametrize("domain", [{}, {"values": "reals"}, {"categories": 3}], ids=str)
def test_a_counter_never_loses_to_a_choice_that_it_was_allowed_to_make(domain: dict[str, Any]) -> None:
    family = PROTOCOLS["counter"]

    @cache
    def error(**limits: Any) -> float:
        try:
            return float(family.error(family.plan(users=2000, privacy=Privacy(1, 1e-6), **domain, **limits)))
        except ParameterError as refusal:
            assert refusal.parameter == "max_messages"
            return math.inf

    # More of what is allowed is never worse, nor is one noise of three better than the best of them.
    for limits in ({}, {"max_messages": 8}, {"max_messages": 64}):
        by_shufflers = {shufflers: error(shufflers=shufflers, **limits) for shufflers in (1, 2, 4)}
        assert by_shufflers[4] <= by_shufflers[2] * 1.025 and by_shufflers[2] <= by_shufflers[1] * 1.025, by_shufflers
        named = min(error(shufflers=2, method=name, **limits) for name in family.methods)
        assert by_shufflers[2] <= named * 1.025, (limits, named)
    by_messages = [error(shufflers=2, max_messages=limit) for limit in (4, 16, 256)] + [error(shufflers=2)]
    assert all(more <= fewer * 1.025 for fewer, more in pairwise(by_messages)), by_messages


@pytest.mark.parametrize(
    ("protocol", "domain"),
    [
        ("repeated-histogram", {"categories": 16, "at_most": 3}),
        ("grouped-count", {"groups": ["a", "b", "c"]}),
        ("grouped-histogram", {"groups": ["a", "b", "c"], "categories": 4}),
    ],
)
def test_people_and_groups_send_few_messages_unasked_and_say_what_more_would_buy(protocol: str, domain: Any) -> None:
    chosen = PROTOCOLS[protocol].choose(users=300, privacy=Privacy(1, 1e-6), **domain)
    assert chosen.plan.messages_per_user_max <= FEW_MESSAGES
    assert chosen.more is not None and "--max-messages" in chosen.more and chosen.why.endswith(chosen.more)
