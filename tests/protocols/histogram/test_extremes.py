"""Targets at the ends of what may be asked for: a plan that holds, or one sentence, and soon."""

import dataclasses
import math
import time

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.accounting.laws import Poisson
from shuffledp.accounting.split_coins import SplitCoinsPair, _fair_cdf
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.histogram.opt_in import cut_mean_squares

SECONDS = 20.0  # each took minutes, or all memory


@pytest.mark.parametrize(
    ("users", "bins", "epsilon", "delta", "method"),
    [
        (2, 2, 10, 0.5, "correlated"),  # its error is 0 in 19 of 20 rounds
        (10, 10, 1, 0.5, "correlated"),  # needs no flood
        (5, 7, 100, 0.999, "decoys"),
        (5, 7, 100, 0.999, "opt-in"),
    ],
)
def test_targets_that_ask_for_almost_nothing(users: int, bins: int, epsilon: float, delta: float, method: str) -> None:
    plan = Histogram.plan(users=users, privacy=Privacy(epsilon, delta), categories=bins, method=method)
    assert plan.guarantee().holds and plan.error_bound >= 0


@pytest.mark.parametrize(
    ("users", "bins", "epsilon", "delta", "method"),
    [(10**12, 10, 1, 1e-9, "decoys"), (10**12, 10, 1, 1e-9, "zsum"), (10**9, 10**5, 0.1, 1e-9, "decoys")],
)
def test_very_many_users_are_planned_for_soon(users: int, bins: int, epsilon: float, delta: float, method: str) -> None:
    start = time.process_time()
    plan = Histogram.plan(users=users, privacy=Privacy(epsilon, delta), categories=bins, method=method)
    assert plan.guarantee().holds and time.process_time() - start < SECONDS


@pytest.mark.parametrize("method", ["decoys", "zsum", "sketch"])
def test_a_delta_below_all_windows_is_refused(method: str) -> None:
    with pytest.raises(InfeasibleError, match="delta must be >= 1e-28"):
        Histogram.methods[method].plan(users=1000, privacy=Privacy(1, 1e-40), categories=10)


def test_absurd_fields_are_refused_before_they_are_computed_with() -> None:
    correlated = Histogram.methods["correlated"].plan(users=100, privacy=Privacy(4, 0.01), categories=3)
    for change in ({"flood_shape": 1e299}, {"most_noise": 10**400}, {"most_pairs": 10**400}):
        with pytest.raises(ParameterError):
            dataclasses.replace(correlated, **change)
    for method in ("count-min", "sketch"):
        plan = Histogram.methods[method].plan(users=500, privacy=Privacy(8, 0.01), categories=1000)
        with pytest.raises(ParameterError, match="rows"):
            dataclasses.replace(plan, rows=2**31)
        with pytest.raises(InfeasibleError):
            dataclasses.replace(plan, probability=1e-300)


def test_groups_of_coins_dominate_by_next_to_nothing() -> None:
    # 9000 numbers of coins, more than the curve is asked at: against every one of them.
    rate, epsilon = 120_000.0, 0.03
    pair, law = SplitCoinsPair(rate), Poisson(rate)
    totals = np.arange(*law.window(1e-30), dtype=np.float64)
    last = np.ceil((totals + 1) / (1 + math.exp(epsilon))) - 1
    curve = _fair_cdf(last, totals) - math.exp(epsilon) * _fair_cdf(last - 1, totals)
    exact = float(np.exp(law.log_pmf(totals)) @ curve)
    assert exact < pair.delta(epsilon) < 1.001 * exact


def test_the_error_of_a_cut_count_is_the_mean_over_all_that_opt_in() -> None:
    users, p = 9, 0.6
    squares = cut_mean_squares(users, p)
    for count in range(users + 1):
        total = 0.0
        for n in range(users + 1):
            for tails in range(n + 1):
                mass = math.comb(users, n) * p**n * (1 - p) ** (users - n) * math.comb(n, tails) / 2**n
                total += mass * ((n / 2 - tails) ** 2 if count > tails else count**2)
        assert squares[min(count, squares.size - 1)] == pytest.approx(total, rel=1e-12)
