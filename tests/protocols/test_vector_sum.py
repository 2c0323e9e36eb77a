import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.testing.protocols import check_protocol

PRIVACY = Privacy(1, 1e-6)


def half_steps(plan) -> np.ndarray:
    """Vectors between two steps of the grid in every coordinate, where rounding has its largest variance."""
    signs = 1 - 2 * (np.arange(plan.users * plan.dimension).reshape(plan.users, -1) % 2)
    return signs * plan.step * (0.5 + np.arange(plan.users)[:, np.newaxis] % 3)


@pytest.mark.parametrize("method", ["bits", "shares"])
@pytest.mark.parametrize("honest_fraction", [1.0, 0.5])
def test_vector_sums_keep_their_promises(method: str, honest_fraction: float) -> None:
    plan = VectorSum.plan(
        users=30, privacy=Privacy(2, 1e-3), dimension=3, radius=2, method=method, honest_fraction=honest_fraction
    )
    bad = [np.full((30, 3), np.nan), np.full((30, 3), 2.0), np.zeros((30, 2)), np.zeros(30), [["a"] * 3] * 30]
    check_protocol(plan, half_steps(plan), bad, runs=3000)
