"""Parallel ZSUM: every promise of a plan, the whole view of tiny rounds, twins that fail, and what the cut costs."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.zsum import HistogramZSum, paper_silence
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_mean

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 5], [-1], [0.5], ["a"], [], [[1]]]


def test_keeps_every_promise() -> None:
    plan = HistogramZSum.plan(users=80, privacy=Privacy(2, 1e-4), categories=4)
    # Counts of 0, 2, 8 and 70: never noisy, always cut, sometimes cut, never cut.
    check_protocol(plan, [1] * 2 + [2] * 8 + [3] * 70, BAD_VALUES, runs=500)


def test_ten_thousand_users_message_by_message() -> None:
    plan = HistogramZSum.plan(users=10_000, privacy=TARGET, categories=50)
    estimate = simulate(plan, np.arange(10_000) % 25, bits=RandomBits.seeded(1))
    assert (estimate.value[25:] == 0).all()
    assert np.abs(estimate.value[:25] - 400).max() <= estimate.bound


def _views(data: tuple[int, ...], bins: int, silence: float) -> dict[tuple[int, ...], float]:
    """The whole view of a round, coin by coin."""
    views: dict[tuple[int, ...], float] = {}
    for silent in itertools.product((0, 1), repeat=len(data) * bins):
        chance = math.prod(silence if each else 1 - silence for each in silent)
        counts = [data.count(j) + len(data) - sum(silent[j::bins]) for j in range(bins)]
        views[tuple(counts)] = views.get(tuple(counts), 0.0) + chance
    return views


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("silence", [0.3, 0.5])
def test_the_pair_dominates_the_whole_view(silence: float, epsilon: float) -> None:
    bins, deltas = 3, []
    for others in itertools.product(range(bins), repeat=2):
        views = [_views((own, *others), bins, silence) for own in range(bins)]
        for p, q in itertools.permutations(views, 2):
            deltas.append(sum(max(0.0, mass - math.exp(epsilon) * q.get(seen, 0.0)) for seen, mass in p.items()))
    delta = TwoBinsPair(ShiftPair(Binomial(3, silence))).delta(epsilon)
    assert max(deltas) <= delta
    assert delta == pytest.approx(max(deltas), rel=1e-8), "not only dominated: all of it is seen"


@pytest.mark.parametrize(("users", "bins"), [(200, 2), (100_000, 1000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = HistogramZSum.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, **plan.quieter(0.8))


def test_one_bin_would_need_less_and_many_users_need_as_much_as_balls() -> None:
    """Protocols section 0: 34.1 silences for one bin, and 42.7, those of balls in bins, for two."""
    one_bin = ShiftPair(Binomial(100_000, 34.1e-5))
    assert one_bin.delta(1.0) == pytest.approx(1e-6, rel=0.05) and TwoBinsPair(one_bin).delta(1.0) > 2e-6
    plan = HistogramZSum.plan(users=100_000, privacy=TARGET, categories=10)
    assert 100_000 * plan.silence == pytest.approx(42.7, abs=0.05)


def test_the_audit_catches_half_the_noise() -> None:
    plan = HistogramZSum.plan(users=60, privacy=Privacy(1, 1e-2), categories=2)
    trials = 40_000
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"


def test_the_claimed_errors_count_the_cut() -> None:
    plan = HistogramZSum.plan(users=80, privacy=Privacy(2, 1e-4), categories=4)
    values = [1] * 2 + [2] * 8 + [3] * 70
    runs, bits = 1000, RandomBits.seeded(3)
    errors = np.array([plan.sample_estimate(values, bits=bits).value for _ in range(runs)]) - plan.true_value(values)
    squares, claimed = errors**2, plan.standard_errors_for(values) ** 2
    assert claimed[0] == 0 and (errors[:, 0] == 0).all() and claimed.max() <= plan.standard_error**2
    for j in (2, 3):
        assert_mean(squares[:, j], claimed[j], squares[:, j].std(), false_alarm=1e-9)
    with pytest.raises(AssertionError):  # what the silences alone would say
        assert_mean(squares[:, 2], Binomial(80, plan.silence).variance, squares[:, 2].std(), false_alarm=1e-9)


def test_the_papers_constants() -> None:
    plan = HistogramZSum.plan(users=100_000, privacy=TARGET, categories=1000, constants="paper")
    assert plan.silence == paper_silence(100_000, TARGET) == pytest.approx(200 * math.log(4e6) / 1e5)
    assert plan.guarantee().delta < 1e-20
    assert plan.error_bound > 40 * HistogramZSum.plan(users=100_000, privacy=TARGET, categories=1000).error_bound
    with pytest.raises(InfeasibleError, match="exact"):
        HistogramZSum.plan(users=1000, privacy=TARGET, categories=5, constants="paper")


def test_refusals_name_the_way_out() -> None:
    with pytest.raises(InfeasibleError, match="decoys"):
        HistogramZSum.plan(users=100_000, privacy=TARGET, categories=1 << 21)
    with pytest.raises(InfeasibleError, match="more users"):
        HistogramZSum.plan(users=50, privacy=TARGET, categories=5)
    plan = HistogramZSum.plan(users=200, privacy=TARGET, categories=5)
    with pytest.raises(ParameterError):
        dataclasses.replace(plan, silence=0.6)
