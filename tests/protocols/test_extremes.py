"""Whatever may be asked for is planned soon, or refused in a sentence: no traceback, no warning, no endless search."""

import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shuffledp import Privacy
from shuffledp.accounting.responses import ShuffledResponsePair
from shuffledp.accounting.split_coins import SplitCoinsPair
from shuffledp.errors import ParameterError
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.histogram import collision_bounds

DOMAINS: dict[str, dict[str, Any]] = {
    "binary-sum": {},
    "bounded-sum": {"low": 0, "high": 1},
    "histogram": {"categories": 16},
    "vector-sum": {"dimension": 4, "radius": 1.0},
    "ranges": {"domain": "0:255"},
    "counter": {"shufflers": 4},
    "distinct-elements": {"categories": 16},
    "distribution-test": {"categories": 16, "distance": 0.25},
    "mean": {"low": 0, "high": 2},
    "moments": {"low": 0, "high": 2},
    "weighted-mean": {"low": 0, "high": 2, "largest_weight": 3},
    "heavy-hitters": {"length": 4, "top": 10},
    "masked-sum": {},
    "repeated-count": {"at_most": 3},
    "repeated-sum": {"low": 0, "high": 2, "at_most": 3},
    "repeated-histogram": {"categories": 16, "at_most": 2},
    "grouped-count": {"groups": ["a", "b", "c"]},
    "grouped-rate": {"groups": ["a", "b", "c"]},
    "grouped-sum": {"groups": ["a", "b", "c"], "low": 0, "high": 2},
    "grouped-mean": {"groups": ["a", "b", "c"], "low": 0, "high": 2},
    "grouped-rows-count": {"groups": ["a", "b", "c"], "at_most": 3},
    "grouped-rows-sum": {"groups": ["a", "b", "c"], "at_most": 3, "low": 0, "high": 2},
    "grouped-moments": {"groups": ["a", "b", "c"], "low": 0, "high": 2},
    "grouped-rows-rate": {"groups": ["a", "b", "c"], "at_most": 3},
    "grouped-rows-mean": {"groups": ["a", "b", "c"], "at_most": 3, "low": 0, "high": 2},
    "grouped-rows-moments": {"groups": ["a", "b", "c"], "at_most": 3, "low": 0, "high": 2},
    "repeated-mean": {"low": 0, "high": 2, "at_most": 3},
    "repeated-ranges": {"domain": 64, "at_most": 2},
    "repeated-moments": {"low": 0, "high": 2, "at_most": 3},
    "grouped-histogram": {"groups": ["a", "b", "c"], "categories": 4},
}
SECONDS = 10.0  # of CPU

USERS = st.floats(0, 12).map(lambda digits: round(10**digits))
EPSILONS = st.floats(-6, 2).map(lambda digits: min(10.0**digits, 100.0))
DELTAS = st.floats(-15, -0.31).map(lambda digits: min(10.0**digits, 0.5))


def check(protocol: str, users: int, epsilon: float, delta: float, **asked: Any) -> None:
    """A plan that keeps its word, or a refusal in a sentence, in a few seconds."""
    started = time.process_time()
    try:
        plan = PROTOCOLS[protocol].plan(users=users, privacy=Privacy(epsilon, delta), **DOMAINS[protocol], **asked)
    except ParameterError as refusal:
        assert str(refusal).endswith(".") and refusal.way_out and "\n" not in str(refusal)
    else:
        assert plan.guarantee().delta <= delta
    assert time.process_time() - started <= SECONDS


@pytest.mark.parametrize("protocol", ["binary-sum", "ranges", "counter"])
@settings(max_examples=5, deadline=None)
@given(users=USERS, epsilon=EPSILONS, delta=DELTAS)
@example(users=1, epsilon=1e-6, delta=1e-15)
@example(users=10**12, epsilon=100.0, delta=0.5)
@example(users=10**12, epsilon=1e-6, delta=1e-15)
@example(users=1, epsilon=100.0, delta=0.5)
def test_everything_is_planned_soon_or_refused(protocol: str, users: int, epsilon: float, delta: float) -> None:
    check(protocol, users, epsilon, delta)


def test_every_family_is_here() -> None:
    assert set(DOMAINS) == set(PROTOCOLS)


CORNERS = [(10**12, 1e-6, 1e-15), (1, 100.0, 0.5)]
OTHER_CORNERS = [(1, 1e-6, 1e-15), (10**12, 100.0, 0.5)]
# Those that others are made of are asked in every corner, and most others in two that are opposite.
MADE_OF = ["bounded-sum", "vector-sum", "distinct-elements", "distribution-test"]
ASKED = [name for name in DOMAINS if name not in ("binary-sum", "ranges", "counter")]
# These ask another family as others here do, and would take as long again to be refused.
LIKE_OTHERS = {"grouped-rate", "grouped-histogram", "weighted-mean"}


@pytest.mark.parametrize(
    ("protocol", "users", "epsilon", "delta"),
    [
        *((name, *corner) for name in ASKED for corner in (CORNERS[1:] if name in LIKE_OTHERS else CORNERS)),
        *((name, *corner) for name in MADE_OF for corner in OTHER_CORNERS),
        # No number of decoys hides two rows at so small a delta.
        ("repeated-histogram", 30, 100.0, 1e-6),
    ],
)
def test_every_family_has_an_answer_in_every_corner(protocol: str, users: int, epsilon: float, delta: float) -> None:
    check(protocol, users, epsilon, delta)


@pytest.mark.parametrize(
    ("protocol", "method", "users", "epsilon", "delta"),
    [
        ("vector-sum", "bits", 1, 1e-3, 1e-15),
        ("vector-sum", "bits", 10**12, 1.0, 1e-6),
        ("vector-sum", "shares", 1, 1e-6, 1e-6),
        ("histogram", "opt-in", 10**12, 1e-6, 1e-15),
        ("histogram", "zsum", 10**12, 1e-3, 1e-15),
        ("histogram", "fake-users", 10**6, 1e-6, 1e-15),
        ("histogram", "count-min", 10**12, 1e-3, 1e-15),
        ("histogram", "sketch", 10**6, 1e-3, 1e-15),
        ("ranges", "auto", 10**12, 1e-3, 1e-15),
        ("binary-sum", "pure", 10_000, 100.0, 1e-6),
        ("binary-sum", "rr", 10_000, 1e-3, 1e-6),
        ("binary-sum", "rr", 10**12, 1e-6, 1e-6),
        ("binary-sum", "poisson-bits", 1, 1e-6, 1e-6),
        ("binary-sum", "zsum", 10**12, 1e-6, 1e-6),
        ("binary-sum", "coins", 10_000, 1e-6, 1e-15),
        ("binary-sum", "correlated", 10_000, 1e-6, 1e-6),
        ("histogram", "correlated", 1, 1e-6, 0.5),
        ("histogram", "decoys", 10**12, 1e-3, 1e-6),
        ("histogram", "auto", 10**12, 1e-3, 1e-15),
        ("heavy-hitters", "auto", 10**12, 1e-3, 1e-15),
        ("counter", "auto", 1, 60.0, 0.5),
    ],
)
def test_methods_that_took_minutes_or_broke(
    protocol: str, method: str, users: int, epsilon: float, delta: float
) -> None:
    check(protocol, users, epsilon, delta, method=method)


def test_coins_weighed_by_tails_are_those_weighed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = SplitCoinsPair(3e6).delta(0.002)
    monkeypatch.setattr("shuffledp.accounting.split_coins._MOST_MASSES", 1 << 40)
    exact = SplitCoinsPair(3e6).delta(0.002)
    assert exact <= quick <= exact * 1.001


def test_responses_in_groups_are_no_more_private_than_any_input(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = ShuffledResponsePair(60_000, 0.05)
    monkeypatch.setattr("shuffledp.accounting.responses._WIDE", 100)
    grouped, by_tails = pair.delta(0.1), [pair.delta_for(ones, 0.1) for ones in (1, 9000, 29_999)]
    monkeypatch.setattr("shuffledp.accounting.responses._WIDE", 1 << 40)
    summed = [pair.delta_for(ones, 0.1) for ones in (1, 9000, 29_999)]
    assert by_tails == pytest.approx(summed, rel=1e-6)
    assert max(summed) <= grouped <= 2 * max(summed)
    assert pair.delta_below(0.1) <= pair.delta_for(0, 0.1) <= pair.delta_below(0.1) * (1 + 1e-6)


@pytest.mark.parametrize(("honest", "lie", "epsilon"), [(1, 0.2, 0.5), (7, 0.1, 0.3), (500, 0.02, 1.0)])
def test_the_curve_of_others_who_all_have_a_zero_is_rounded_down(honest: int, lie: float, epsilon: float) -> None:
    pair = ShuffledResponsePair(honest, lie)
    assert 0 < pair.delta_below(epsilon) <= pair.delta_for(0, epsilon) <= pair.delta(epsilon)
    assert pair.delta_below(epsilon) >= pair.delta_for(0, epsilon) * (1 - 1e-6)
    assert pair.meets(epsilon, pair.delta(epsilon)) and not pair.meets(epsilon, 0.9 * pair.delta(epsilon))
    # One input is not enough: what the search over all of them may have missed is added.
    assert not pair.meets(epsilon, pair.delta_for(0, epsilon) * (1 + 1e-4))


@pytest.mark.parametrize("thrown", [(10_000, 0.427, 0.01, 430, 0.01, 5e-5), (20_000, 0.3, 0.02, 60_000, 0.002, 1e-3)])
def test_moments_bound_what_tails_bound(thrown: tuple[int, float, float, int, float, float]) -> None:
    exact = collision_bounds.thrown_bound(*thrown)
    assert exact <= collision_bounds._chernoff_bound(*thrown) <= 1.3 * exact
