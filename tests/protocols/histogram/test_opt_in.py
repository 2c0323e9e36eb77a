"""Opting in: every promise of a plan, the whole view of tiny rounds, twins that fail, and what the cut costs."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.visible_coins import OptInPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.opt_in import OptIn
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_mean

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 5], [-1], [0.5], ["a"], [], [[1]]]


def test_keeps_every_promise() -> None:
    plan = OptIn.plan(users=120, privacy=Privacy(2, 1e-4), categories=4)
    # Counts of 0, 2, 18 and 100: never noisy, always cut, sometimes cut, never cut.
    check_protocol(plan, [1] * 2 + [2] * 18 + [3] * 100, BAD_VALUES, runs=500)


def _views(data: tuple[int, ...], bins: int, probability: float) -> dict[tuple[int, ...], float]:
    """The whole view of a round: who opts in, coin by coin."""
    views: dict[tuple[int, ...], float] = {}
    for opted in range(len(data) + 1):
        weight = math.comb(len(data), opted) * probability**opted * (1 - probability) ** (len(data) - opted)
        for coins in itertools.product((0, 1), repeat=opted * bins):
            seen = (opted, *(data.count(j) + sum(coins[j::bins]) for j in range(bins)))
            views[seen] = views.get(seen, 0.0) + weight / 2 ** (opted * bins)
    return views


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("probability", [0.4, 1.0])
def test_the_pair_dominates_the_whole_view(probability: float, epsilon: float) -> None:
    bins, deltas = 3, []
    for others in itertools.product(range(bins), repeat=2):
        views = [_views((own, *others), bins, probability) for own in range(bins)]
        for p, q in itertools.permutations(views, 2):
            deltas.append(sum(max(0.0, mass - math.exp(epsilon) * q.get(seen, 0.0)) for seen, mass in p.items()))
    delta = OptInPair(3, probability).delta(epsilon)
    assert max(deltas) <= delta * (1 + 1e-12)
    assert delta == pytest.approx(max(deltas), rel=1e-8), "not only dominated: all of it is seen"


@pytest.mark.parametrize(("users", "bins"), [(200, 2), (100_000, 1000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = OptIn.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, **plan.quieter(0.8))


def test_a_small_epsilon_is_planned_on_the_grid() -> None:
    plan = OptIn.plan(users=1_000_000, privacy=Privacy(0.5, 1e-6), categories=10)
    assert plan.opted_mean > 512
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, **plan.quieter(0.95))


def test_the_audit_catches_half_the_noise() -> None:
    plan = OptIn.plan(users=80, privacy=Privacy(1, 1e-2), categories=2)
    trials = 30_000
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"


def test_the_claimed_errors_count_the_cut() -> None:
    plan = OptIn.plan(users=120, privacy=Privacy(2, 1e-4), categories=4)
    values = [1] * 2 + [2] * 18 + [3] * 100
    runs, bits = 1000, RandomBits.seeded(3)
    errors = np.array([plan.sample_estimate(values, bits=bits).value for _ in range(runs)]) - plan.true_value(values)
    squares, claimed = errors**2, plan.standard_errors_for(values) ** 2
    assert claimed[0] == 0 and (errors[:, 0] == 0).all() and claimed.max() <= plan.standard_error**2
    for j in (2, 3):
        assert_mean(squares[:, j], claimed[j], squares[:, j].std(), false_alarm=1e-9)
    with pytest.raises(AssertionError):  # what the coins alone would say
        assert_mean(squares[:, 2], plan.opted_mean / 4, squares[:, 2].std(), false_alarm=1e-9)


def test_many_users_message_by_message() -> None:
    plan = OptIn.plan(users=20_000, privacy=TARGET, categories=300)
    values = np.arange(20_000) % 50
    estimate = simulate(plan, values, bits=RandomBits.seeded(1))
    assert (estimate.value[50:] == 0).all()
    assert np.abs(estimate.value[:50] - 400).max() <= estimate.bound


def test_few_messages_on_average_and_many_at_most() -> None:
    plan = OptIn.plan(users=100_000, privacy=TARGET, categories=1000)
    assert plan.messages_per_user_mean < 2 and plan.messages_per_user_max == 1002
    # Given |H|, at most half of it and a few deviations: below the survey's bound |H|.
    assert plan.opted_mean / 2 < plan.error_bound < plan.opted_mean


def test_refusals_name_the_way_out() -> None:
    with pytest.raises(InfeasibleError, match="exact"):
        OptIn.plan(users=1000, privacy=TARGET, categories=5, constants="paper")
    with pytest.raises(InfeasibleError, match="more users"):
        OptIn.plan(users=50, privacy=TARGET, categories=5)
    with pytest.raises(InfeasibleError, match="decoys"):
        OptIn.plan(users=1000, privacy=TARGET, categories=1 << 25)
    with pytest.raises(ParameterError):
        dataclasses.replace(OptIn.plan(users=200, privacy=TARGET, categories=5), probability=1.5)
