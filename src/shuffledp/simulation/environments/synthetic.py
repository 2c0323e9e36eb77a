"""Made-up data for any plan."""

from typing import Any

import numpy as np

from shuffledp.protocols.plan import Plan


def synthetic_values(plan: Plan, *, seed: int | None = None) -> Any:
    """Encoded values in the plan's domain, one for each user.

    >>> from shuffledp import BoundedSum, Privacy
    >>> synthetic_values(BoundedSum.plan(users=5, privacy=Privacy(1, 1e-6), low=0, high=1)).size
    5
    """
    return plan.domain.synthesize(plan.users, np.random.default_rng(seed))
