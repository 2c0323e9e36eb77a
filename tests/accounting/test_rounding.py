"""Two neighbours rounded with one secret: every draw enumerated, both bounds, and what failing costs."""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting.gaussian import gaussian_delta
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.normal_scores import normal_scores
from shuffledp.accounting.rounding import TOLERANCE, rounded_difference
from shuffledp.privacy import Privacy
from shuffledp.protocols.vector_sum.bits import VectorBits
from shuffledp.protocols.vector_sum.shares import VectorShares
from shuffledp.sampling.rounding import FRACTION_BITS

# Numbers are multiples of 1/PARTS here and the secret one of PARTS values: as in sampling.rounding, where it is 2^32.
PARTS = 6


def coupled(y: tuple[Fraction, ...], z: tuple[Fraction, ...]) -> list[tuple[int, ...]]:
    """The difference of the rounded vectors for every secret there is."""
    secrets = itertools.product((Fraction(u, PARTS) for u in range(PARTS)), repeat=len(y))
    return [
        tuple(math.floor(b + s) - math.floor(a + s) for a, b, s in zip(y, z, secret, strict=True)) for secret in secrets
    ]


def some_vectors(dimension: int, count: int) -> list[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    rng = np.random.default_rng(dimension)
    whole = rng.integers(-5 * PARTS, 5 * PARTS, size=(count, 2, dimension))
    return [tuple(tuple(Fraction(int(x), PARTS) for x in v) for v in pair) for pair in whole]  # type: ignore[misc]


@pytest.mark.parametrize(("dimension", "count"), [(1, 300), (2, 200), (3, 60), (4, 8)])
def test_every_secret_enumerated(dimension: int, count: int) -> None:
    """Floor or ceiling of the difference, with it as mean, independent; and no longer than the bounds say."""
    for y, z in some_vectors(dimension, count):
        t = [b - a for a, b in zip(y, z, strict=True)]
        draws = coupled(y, z)
        for i, x in enumerate(t):
            assert {r[i] for r in draws} <= {math.floor(x), math.ceil(x)}
            assert sum(r[i] for r in draws) == x * len(draws)
        for i, j in itertools.combinations(range(dimension), 2):
            assert sum(r[i] * r[j] for r in draws) == t[i] * t[j] * len(draws)
        length = math.sqrt(sum(x * x for x in t))
        for failure in (0.5, 0.1, 1e-3):
            bound = rounded_difference(length, dimension, failure)
            beyond = sum(math.hypot(*r) > bound.length * (1 + 1e-12) for r in draws)
            assert beyond <= bound.failure * len(draws)


@pytest.mark.parametrize("length", [1, 7, 54, 100_000, 4_000_000])
def test_in_one_dimension_a_whole_length_stays(length: int) -> None:
    assert rounded_difference(float(length), 1, 1e-9).length == length
    assert rounded_difference(length + 0.25, 1, 1e-9).length == length + 1
    assert rounded_difference(float(length), 1, 1e-9).failure == 0


def squares(t: np.ndarray) -> dict[int, float]:
    """The exact law of |R|^2."""
    law = {0: 1.0}
    for x in t.tolist():
        low, joined = math.floor(x), defaultdict(float)
        for square, p in law.items():
            joined[square + low**2] += p * (low + 1 - x)
            joined[square + (low + 1) ** 2] += p * (x - low)
        law = joined
    return law


def directions(dimension: int, length: float) -> list[np.ndarray]:
    rng = np.random.default_rng(dimension)
    axis, even = np.eye(dimension)[0], np.ones(dimension)
    return [v / np.linalg.norm(v) * length for v in (axis, even, *rng.normal(size=(6, dimension)))]


@pytest.mark.parametrize("dimension", [2, 5, 20, 60])
@pytest.mark.parametrize("length", [0.3, 2.0, 11.0, 40.0])
def test_the_probability_of_failing_is_never_passed(dimension: int, length: float) -> None:
    for t in directions(dimension, length):
        law = squares(t)
        for failure in (0.5, 0.1, 1e-3, 1e-6):
            bound = rounded_difference(length, dimension, failure)
            beyond = math.fsum(p for square, p in law.items() if square > bound.length**2 * (1 + 1e-12))
            assert beyond <= bound.failure


def test_bounds_that_forget_the_rounding_fail() -> None:
    """The twins: no longer than before, and no spread around the mean of the square."""
    dimension, length = 20, 11.0
    law = squares(directions(dimension, length)[1])
    assert math.fsum(p for square, p in law.items() if square > length**2) > 0.1
    assert math.fsum(p for square, p in law.items() if square > length**2 + dimension / 4) > 0.1


def test_the_smaller_bound_is_taken() -> None:
    assert rounded_difference(2.0, 2, 1e-9).failure == 0
    assert rounded_difference(200.0, 1000, 1e-9).failure == 1e-9
    for failure in (1e-3, 1e-12):
        assert rounded_difference(200.0, 1000, failure).length <= 200 * (1 + 1e-8) + math.sqrt(1000)


def test_failing_may_be_added_to_delta() -> None:
    """Exact mixtures over both secrets against the whole bound, where the likely length is the smaller one."""
    coins, outside, failure = Binomial(3000, 0.5), 1e-4, 0.3
    k = np.arange(-40.0, 3041.0)
    for y, z in [((0.0, 0.0), (6.5, 6.5)), ((0.3, 0.1), (9.9, 3.2)), ((0.5, 0.5), (-6.0, 7.5))]:
        length = math.dist(y, z)
        bound = rounded_difference(length, 2, failure)
        scores = normal_scores(coins, math.ceil(bound.length), outside)
        assert bound.failure == failure
        laws = []
        for vector in (y, z):
            parts = [
                (math.floor(x) + 1 - x) * np.exp(coins.log_pmf(k - math.floor(x)))
                + (x - math.floor(x)) * np.exp(coins.log_pmf(k - math.floor(x) - 1))
                for x in vector
            ]
            near = [part[1350:1730] for part in parts]
            laws.append(np.multiply.outer(*near))
        for epsilon in (0.0, 0.3, 1.0, 2.0):
            exact = float(np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0).sum())
            assert exact <= gaussian_delta(epsilon, 1.0, bound.length * scores.steepest) + 2 * outside + failure


@pytest.mark.parametrize("method", [VectorBits, VectorShares])
@pytest.mark.parametrize(("dimension", "rotation"), [(2, None), (3, 5), (40, None), (40, 5)])
def test_floats_a_little_too_long_are_allowed_for(method, dimension: int, rotation: int | None) -> None:
    """Neighbours as long as check_values lets pass, in fixed point: compared as rational numbers."""
    plan = method.plan(users=500, privacy=Privacy(1, 1e-4), dimension=dimension, radius=1 / 3, rotation=rotation)
    allowed = 2 * plan.radius / plan.step * (1 + TOLERANCE) + math.sqrt(plan.coordinates) * TOLERANCE
    rng = np.random.default_rng(1)
    for x in (np.eye(dimension)[0], np.ones(dimension), *rng.normal(size=(20, dimension))):
        long = x / np.linalg.norm(x) * plan.radius * (1 + 0.49 * TOLERANCE)
        scaled = plan.scaled(plan.rotated(plan.check_values([long, -long])))
        fixed = np.rint(scaled * 2.0**FRACTION_BITS)
        apart = [Fraction(int(a) - int(b), 1 << FRACTION_BITS) for a, b in fixed.T]
        assert math.sqrt(sum(t * t for t in apart)) <= allowed
        assert max(math.ceil(abs(t)) for t in apart) <= plan.largest_shift


def test_clipping_to_the_grid_brings_vectors_no_further_apart() -> None:
    plan = VectorBits.plan(users=50, privacy=Privacy(1, 1e-4), dimension=1024, radius=1.0, rotation=3)
    # Vectors that the rotation turns onto an axis, against all odds over its signs.
    rotated_axes = np.eye(1024)[:2] * [[1.0], [-1.0]]
    scaled = plan.scaled(rotated_axes)
    assert plan.reach < plan.radius and scaled.min() == 0 and scaled.max() == plan.grid
    assert np.linalg.norm(scaled[0] - scaled[1]) < np.linalg.norm(rotated_axes[0] - rotated_axes[1]) / plan.step
