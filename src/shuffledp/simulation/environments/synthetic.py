"""Made-up data for any plan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.protocols.plan import Plan


def synthetic_values(plan: Plan, *, seed: int | None = None) -> NDArray[Any]:
    """Encoded values of the plan's domain, an entry or a row for each of its users.

    >>> from shuffledp import BoundedSum, Privacy
    >>> synthetic_values(BoundedSum.plan(users=5, privacy=Privacy(1, 1e-6), low=0, high=1)).size
    5
    """
    return plan.domain.synthesize(plan.users, np.random.default_rng(seed))


def synthetic_rows(plan: Plan, first: int, rows: int, *, seed: int) -> NDArray[Any]:
    """As `synthetic_values`, of some users of more than memory holds: the same whenever they are asked for.

    Args:
        plan: says what values are.
        first: users before them.
        rows: how many they are.
        seed: decides everybody's values, with `first`.
    """
    return plan.domain.synthesize(rows, np.random.default_rng((seed, first)))
