"""The exponent of a running count's error: measured, proved and below the theory's shape nowhere."""

import dataclasses

import numpy as np
import pytest

from shuffledp.continual.counter import Counter
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.experiments.counter import (
    PRIVACY,
    ErrorTask,
    counter_exponent,
    fitted_slope,
    forced_plan,
    largest_error,
    lower_shape,
    measure,
)
from shuffledp.randomness import RandomBits
from shuffledp.simulation.environments.hard_streams import hard_stream, repetitions

RUNS = 40
SIZES = [1000, 1778, 3162, 5623, 10_000, 17_783, 31_623, 56_234, 100_000]


@pytest.fixture(scope="module")
def result():
    return counter_exponent(largest=10**5, runs=RUNS, seed=1)


@pytest.mark.parametrize("shufflers", [1, 2, 3])
def test_a_plan_uses_exactly_so_many_shufflers(shufflers: int) -> None:
    for users in (1000, 10**5, 10**6):
        plan = forced_plan(users, shufflers)
        assert plan.shufflers_used == plan.shufflers == shufflers
        assert PRIVACY.delta < PRIVACY.epsilon / (40 * users * (shufflers + 1))  # as Theorem 4.1 asks
        assert plan.error_bound >= CounterPlan.plan(users=users, shufflers=shufflers, privacy=PRIVACY).error_bound


@pytest.mark.parametrize(("users", "shufflers"), [(1000, 1), (1003, 2), (2345, 3), (5000, 2)])
def test_the_largest_error_is_that_of_every_time(users: int, shufflers: int) -> None:
    counter = Counter(forced_plan(users, shufflers))
    for seed, values in enumerate([hard_stream(users, shufflers, 1.0, seed=s) for s in range(5)]):
        run = counter.run(values, bits=RandomBits.seeded(seed)).every()
        expected = np.abs(run - np.cumsum(values, dtype=np.int64)).max()
        assert largest_error(counter, values, bits=RandomBits.seeded(seed)) == expected


def test_the_lower_shape_is_the_length_of_the_repetitions() -> None:
    for users in (10**3, 10**6, 10**9):
        for shufflers in (1, 2, 3):
            assert repetitions(users, shufflers, 0.7) == max(1, round(lower_shape(users, shufflers, 0.7)))


def test_errors_lie_between_what_is_proved_from_both_sides(result) -> None:
    """Of all runs 5% may pass the bound; the mean error is above twice rep_(n, k), found here, not proved."""
    assert [(row.shufflers, row.users) for row in result.rows] == [(k, n) for k in (1, 2, 3) for n in SIZES]
    # Six deviations for each row, of two inputs; none for all rows together.
    assert all(row.within_bound >= 0.95 - 6 * np.sqrt(0.05 * 0.95 / (2 * RUNS)) for row in result.rows)
    assert np.mean([row.within_bound for row in result.rows]) >= 0.95
    assert all(row.lower_shape < row.error_mean / 2 for row in result.rows)
    assert all(row.error_mean < row.error_quantile for row in result.rows)
    assert all(0.25 * row.bound < row.ones_error_mean < row.bound for row in result.rows)


def test_slopes_are_near_the_theory_and_fall_with_the_shufflers(result) -> None:
    """Generous: from 0.04 below to 0.12 above, as logarithms make slopes larger at n <= 10^5."""
    for row in result.slopes:
        assert row.theory == 1 / (2 * row.shufflers + 1)
        for slope in (row.error, row.ones_error, row.bound, row.without_log):
            assert row.theory - 0.04 < slope.slope < row.theory + 0.12, row
            assert slope.low < slope.slope < slope.high < slope.low + 0.1
        assert row.without_log.slope < row.error.slope
        assert row.bound_without_log.slope == pytest.approx(row.theory, abs=0.015)
    for name in ("error", "ones_error", "bound", "without_log"):
        found = [getattr(row, name).slope for row in result.slopes]
        assert found == sorted(found, reverse=True), name


def test_another_exponent_would_be_seen(result) -> None:
    """The twin that must fail: errors of two shufflers do not pass for those of one."""
    one, two, _ = result.slopes
    assert two.error.high < one.error.low and two.bound.high < one.bound.low


def test_a_slope_is_that_of_the_line() -> None:
    users = [10**3, 10**4, 10**5, 10**6]
    exact = fitted_slope(users, [3 * n**0.2 for n in users])
    assert exact.slope == pytest.approx(0.2) and exact.high - exact.low < 1e-6
    noise = np.random.default_rng(1).normal(0, 0.1, size=(400, 4))
    fits = [fitted_slope(users, [n**0.2 * np.exp(e) for n, e in zip(users, row, strict=True)]) for row in noise]
    held = np.mean([fit.low <= 0.2 <= fit.high for fit in fits])
    assert abs(held - 0.95) < 6 * np.sqrt(0.95 * 0.05 / 400)


def test_a_seed_decides_everything() -> None:
    point = measure(2000, 2, runs=5, seed=7)
    assert measure(2000, 2, runs=5, seed=7) == point != measure(2000, 2, runs=5, seed=8)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.users = 1
    small = counter_exponent(shufflers=[2], largest=10_000, runs=3, seed=3)
    both = counter_exponent(shufflers=[1, 2], largest=10_000, runs=3, seed=3)
    assert small.rows == both.rows[-len(small.rows) :] and small.slopes == both.slopes[1:]


def test_progress_ends_at_its_total() -> None:
    told = []
    counter_exponent(shufflers=[3], largest=10_000, runs=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] == told[-1][1] and told == sorted(told)


@pytest.mark.parametrize(
    ("asked", "parameter"),
    [
        ({"shufflers": []}, "shufflers"),
        ({"shufflers": [0]}, "shufflers"),
        ({"shufflers": [9]}, "shufflers"),
        ({"shufflers": [2, 2]}, "shufflers"),
        ({"largest": 9999}, "largest"),
        ({"largest": 10**9}, "largest"),
        ({"runs": 1}, "runs"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked, parameter) -> None:
    with pytest.raises(ParameterError) as refused:
        counter_exponent(**asked)
    assert refused.value.parameter == parameter


def test_a_second_run_goes_on(tmp_path, monkeypatch) -> None:
    asked, cache = {"shufflers": [3], "largest": 10_000, "runs": 2}, tmp_path / "rows.json"
    first = counter_exponent(**asked, cache=cache)
    monkeypatch.setattr(ErrorTask, "run", lambda task: pytest.fail("measured again"))
    assert counter_exponent(**asked, cache=cache) == first
