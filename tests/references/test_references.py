import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.references.curator import CuratorDiscreteLaplace
from shuffledp.references.local import LocalRandomizedResponse
from shuffledp.testing.statistics import assert_deviation, assert_mean

VALUES = np.arange(500) % 2


@pytest.mark.parametrize(
    "reference",
    [LocalRandomizedResponse(users=500, privacy=Privacy(1, 1e-6)), CuratorDiscreteLaplace(privacy=Privacy(1, 1e-6))],
)
def test_references_have_the_error_that_they_claim(reference) -> None:
    generator = np.random.default_rng(1)
    errors = [reference.sample_estimate(VALUES, generator=generator).value - 250 for _ in range(4000)]
    assert_mean(errors, 0.0, reference.standard_error)
    assert_deviation(errors, reference.standard_error)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-3), (20, 1e-6)])
def test_randomized_response_is_exactly_private(epsilon: float, delta: float) -> None:
    lie = LocalRandomizedResponse(users=1, privacy=Privacy(epsilon, delta)).lie_probability
    assert (1 - lie) - np.exp(epsilon) * lie == pytest.approx(delta, abs=1e-12)


def test_a_curator_takes_bytes_that_add_up_to_nothing() -> None:
    curator, generator = CuratorDiscreteLaplace(privacy=Privacy(1, 1e-6)), np.random.default_rng(1)
    values = [curator.sample_estimate(np.zeros(5, dtype=np.uint8), generator=generator).value for _ in range(50)]
    assert min(values) < 0 < max(values)


def test_a_large_epsilon_does_not_overflow() -> None:
    assert 0 < LocalRandomizedResponse(users=10**9, privacy=Privacy(100, 1e-6)).standard_error < 1e-10
