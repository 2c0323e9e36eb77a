"""Discrete Laplace noise is pure where delta is small, and takes a part of delta where that saves noise."""

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.continual.doubling import UnboundedCounter
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.protocols.bounded_sum.shares import BoundedShares
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.people.count_shares import RepeatedCountShares
from shuffledp.protocols.plan import changed
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.sums.noise import LaplaceNoise, _least_delta, least_laplace


@pytest.mark.parametrize(("noises", "shift"), [(1, 1), (2, 1), (4, 1), (8, 1), (1, 40), (3, 10), (12, 1)])
def test_a_large_delta_makes_room_for_less_noise(noises: int, shift: int) -> None:
    found, pure = least_laplace(1.0, 0.09, noises, shift), pure_ratio(1.0, noises * shift)
    assert found.law().variance < 0.8 * DiscreteLaplace(pure).variance
    # By composition of the pair itself: what is found is enough, and a hundredth less is not.
    for ratio, enough in ((found.ratio, True), (found.ratio**1.01, False)):
        composed = Composition([(ShiftPair(DiscreteLaplace(ratio), shift), noises)]).delta(1.0)
        assert (composed <= 0.09 * (1 + 1e-3)) is enough


@pytest.mark.parametrize("noises", [1, 2, 4, 8])
def test_a_small_delta_is_left_to_the_shares(noises: int) -> None:
    assert least_laplace(1.0, 9e-7, noises) == LaplaceNoise(pure_ratio(1.0, noises))


@pytest.mark.parametrize(("noises", "shift", "ratio"), [(1, 1, 0.3), (2, 1, 0.5), (3, 4, 0.85)])
def test_what_is_left_of_delta_at_least(noises: int, shift: int, ratio: float) -> None:
    exact = Composition([(ShiftPair(DiscreteLaplace(ratio), shift), noises)]).delta(1.0)
    assert 0 < _least_delta(1.0, ratio, noises, shift) <= exact


@pytest.mark.parametrize(
    ("plan_of", "asked"), [(Shares, {}), (BoundedShares, {"low": 0, "high": 1}), (RepeatedCountShares, {"at_most": 3})]
)
def test_one_round_with_a_large_delta(plan_of, asked: dict) -> None:
    few, much = (plan_of.plan(users=1000, privacy=Privacy(1, delta), **asked) for delta in (1e-6, 0.1))
    terms = [{term.name: term.value for term in plan.guarantee().terms} for plan in (few, much)]
    assert terms[0]["noise"] == 0 < 0.08 < terms[1]["noise"] and much.guarantee().holds
    assert much.standard_error < 0.9 * few.standard_error and much.shares <= few.shares
    assert not changed(much, **much.quieter(0.8)).guarantee().holds


@pytest.mark.parametrize("users", [2, 3, 5, 8])
def test_shares_have_what_the_noise_leaves(users: int) -> None:
    for delta in (0.02, 0.05, 0.1, 0.2, 0.3):
        plan = Shares.plan(users=users, privacy=Privacy(1, delta))
        assert plan.guarantee().holds


@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_running_sums_with_a_large_delta(delta: float) -> None:
    privacy = Privacy(1, delta)
    plan = CounterPlan.plan(users=10_000, shufflers=4, privacy=privacy, noise="laplace")
    terms = {term.name: term.value for term in plan.guarantee().terms}
    assert 0.8 * delta < terms["noise"] <= 0.9 * delta and 0 < terms["transport"] <= 0.1 * delta
    assert plan.guarantee().holds and plan_from_document(plan.document()) == plan
    assert not changed(plan, **plan.quieter(0.8)).guarantee().holds
    counter = UnboundedCounter.plan(first_users=2000, shufflers=3, privacy=privacy)
    assert sum(term.value for term in counter.delta_terms(1.0)) <= delta
