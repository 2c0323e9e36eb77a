import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.testing.protocols import check_protocol

PRIVACY = Privacy(1, 1e-6)
BAD = [[float("nan")] * 60, [7.0] * 60, [[0.0]] * 60, ["a"] * 60, [], [float("inf")] * 60]


def half_steps(plan) -> np.ndarray:
    """Values between two steps of the grid, where rounding has its largest variance."""
    return plan.low + plan.step * (0.5 + np.arange(plan.users) % plan.grid)


@pytest.mark.parametrize("method", ["bits", "shares"])
@pytest.mark.parametrize("honest_fraction", [1.0, 0.5])
def test_bounded_sums_keep_their_promises(method: str, honest_fraction: float) -> None:
    plan = BoundedSum.plan(users=60, privacy=PRIVACY, low=-3, high=5, method=method, honest_fraction=honest_fraction)
    check_protocol(plan, half_steps(plan), BAD)
