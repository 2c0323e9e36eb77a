"""Made-up data for any plan."""

from typing import Any

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.distinct_elements import Parities
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.simulation.environments.binary import synthetic_bits
from shuffledp.simulation.environments.codes import synthetic_codes
from shuffledp.simulation.environments.reals import synthetic_reals, synthetic_vectors


def synthetic_values(plan: Plan, *, seed: int | None = None) -> Any:
    """Values in the plan's domain, one for each user.

    >>> from shuffledp import BoundedSum, Privacy
    >>> synthetic_values(BoundedSum.plan(users=5, privacy=Privacy(1, 1e-6), low=0, high=1)).size
    5
    """
    if isinstance(plan, BinarySumPlan):
        return synthetic_bits(plan.users, seed=seed)
    if isinstance(plan, BoundedSumPlan):
        return synthetic_reals(plan.users, plan.low, plan.high, seed=seed)
    if isinstance(plan, VectorSumPlan):
        return synthetic_vectors(plan.users, plan.dimension, plan.radius, seed=seed)
    if isinstance(plan, RangesPlan):
        return synthetic_points(plan, seed=seed)
    if isinstance(plan, HistogramPlan | Parities):
        return synthetic_codes(plan.users, plan.bins, seed=seed)
    raise ParameterError("protocol", plan.protocol, "has no synthetic data", "name a file")


def synthetic_points(plan: RangesPlan, *, seed: int | None = None) -> Any:
    """Codes around a place in each axis's lower half, with a long tail upwards."""
    generator = np.random.default_rng(seed)
    columns = []
    for axis in plan.axes:
        draws = generator.gamma(3.0, axis.size / 12, plan.users)
        columns.append(np.minimum(draws, axis.size - 1).astype(np.int64))
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
