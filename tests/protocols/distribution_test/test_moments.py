"""Means and variances of the statistics: by enumeration, and the survey's own figures by simulation."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.protocols.distribution_test.moments import (
    balls_moments,
    fixed_users_variance,
    poissonised_variance,
    rows_moments,
    symmetric_bits_moments,
)

LAWS = [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.3, 0.1), (0.9, 0.05, 0.05), (0.5, 0.5, 0.0)]


def _moments(outcomes) -> tuple[float, float]:
    weights, totals = (np.array(column) for column in zip(*outcomes, strict=True))
    mean = float(weights @ totals)
    return mean, float(weights @ totals**2) - mean**2


def _collisions(users: int, decoys: int, law: tuple[float, ...]):
    bins, messages = len(law), users + decoys
    for thrown in itertools.product(range(bins), repeat=messages):
        weight = math.prod(law[place] for place in thrown[:users]) / bins**decoys
        seen = np.bincount(thrown, minlength=bins)
        yield weight, float((seen * (seen - 1)).sum()) - messages * (messages - 1) / bins


def _rows(users: int, kept: float, spurious: float, law: tuple[float, ...]):
    bins = len(law)
    mean = (kept - spurious) / bins + spurious
    rows = {}
    for row in itertools.product((0, 1), repeat=bins):
        chances = [[(1 - rate, rate)[bit] for bit, rate in zip(row, rates, strict=True)] for rates in
                   ([kept if j == x else spurious for j in range(bins)] for x in range(bins))]  # fmt: skip
        rows[row] = sum(share * math.prod(each) for share, each in zip(law, chances, strict=True))
    for sent in itertools.product(rows, repeat=users):
        n = np.sum(sent, axis=0)
        total = n * (n - 1) - 2 * (users - 1) * mean * n + users * (users - 1) * mean**2
        yield math.prod(rows[row] for row in sent), float(total.sum())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", ["balls", "rows", "flips"])
def test_moments_by_enumeration(kind: str, law: tuple[float, ...]) -> None:
    distance_squared = sum((share - 1 / 3) ** 2 for share in law)
    if kind == "balls":
        claimed, outcomes = balls_moments(4, 3, 3), _collisions(4, 3, law)
    else:
        kept, spurious = (0.7, 0.1) if kind == "rows" else (0.8, 0.2)
        claimed, outcomes = rows_moments(3, kept, spurious, 3), _rows(3, kept, spurious, law)
    mean, variance = _moments(outcomes)
    assert mean == pytest.approx(claimed.signal * distance_squared, abs=1e-9)
    assert variance <= claimed.variance(distance_squared) * (1 + 1e-9)
    if law == LAWS[0]:
        assert variance == pytest.approx(claimed.level, rel=1e-9)


def _poissonised(mean_users: int, law: np.ndarray, rate: float, runs: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    d, m = law.size, mean_users
    counts = generator.poisson(m * law, (runs, d)).astype(float)
    counts += (generator.poisson(rate / 2, (runs, d)) - generator.poisson(rate / 2, (runs, d))) / 2
    return d / m * ((counts - m / d) ** 2 - counts).sum(axis=1) - d**2 / m * rate / 4


# By 100,000 runs of another simulation.
@pytest.mark.parametrize(("users", "alarm", "miss"), [(800, 0.0363, 0.0871), (1600, 0.0, 0.0008)])
def test_the_surveys_tester_with_symmetric_bits(users: int, alarm: float, miss: float) -> None:
    d, distance, rate, runs = 100, 0.25, 85.3, 8000
    uniform = np.full(d, 1 / d)
    far = uniform * (1 + 2 * distance * np.where(np.arange(d) % 2, -1, 1))
    null, other = _poissonised(users, uniform, rate, runs, 1), _poissonised(users, far, rate, runs, 2)
    threshold = 2 * users * distance**2
    # 6.2 standard errors of 8000 runs, for a false alarm of 1e-9, beside the last digit given.
    for measured, expected in ((np.mean(null > threshold), alarm), (np.mean(other <= threshold), miss)):
        assert abs(measured - expected) <= 6.2 * math.sqrt(max(expected, 1e-3) / runs) + 5e-4
    claimed = poissonised_variance(users, d, *symmetric_bits_moments(rate))
    assert np.var(null) == pytest.approx(claimed, rel=0.05)
    assert np.mean(other) == pytest.approx(4 * users * distance**2, rel=0.02)


def test_a_formula_that_forgets_the_noise_misses() -> None:
    null = _poissonised(800, np.full(100, 0.01), 85.3, 4000, 3)
    assert np.var(null) > 2 * poissonised_variance(800, 100, 0.0, 0.0)


def test_a_fixed_number_of_users() -> None:
    d, n, rate, runs = 50, 400, 60.0, 12_000
    generator = np.random.default_rng(4)
    counts = generator.multinomial(n, np.full(d, 1 / d), runs).astype(float)
    counts += (generator.poisson(rate / 2, (runs, d)) - generator.poisson(rate / 2, (runs, d))) / 2
    variance, square_variance = symmetric_bits_moments(rate)
    total = ((counts - n / d) ** 2).sum(axis=1) - n * (1 - 1 / d) - d * variance
    claimed = fixed_users_variance(n, d, variance, square_variance)
    assert abs(total.mean()) <= 6 * math.sqrt(claimed / runs)
    assert total.var() == pytest.approx(claimed, rel=0.08)
