"""What learners of gradient sums refuse: noise that proves too little, a cohort told twice, a sum that is none."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.guarantee import OptimizationGuarantee
from shuffledp.learn.optimize.sets import Floats


def check_holds(guarantee: OptimizationGuarantee, way_out: str) -> None:
    """Refuse noise that does not reach the (epsilon, delta) that is claimed.

    Raises:
        ParameterError: more delta is proved than was promised.
    """
    if not guarantee.holds:
        limits = f"must be at most {guarantee.privacy.delta:g}" if guarantee.privacy else ""
        raise ParameterError("delta", f"{guarantee.delta:.3g}", limits, way_out)


def check_told(done: int, rounds: int, users: int, cohort: int, closed: Mapping[int, Any]) -> None:
    """Refuse what is told after the last round, of fewer people than a cohort has, or of another batch.

    Args:
        done: rounds so far.
        rounds: how many there are.
        users: how many people came.
        cohort: how many were asked.
        closed: what is told, by the level of the batch.
    """
    if done == rounds:
        raise ParameterError("state", done, "must have rounds left", "the model is done")
    if users != cohort or set(closed) != {1}:
        raise ParameterError("users", users, f"must be the {cohort} of one batch", "tell it once, full")


def checked_total(estimate: VectorEstimate | ArrayLike, numbers: int) -> Floats:
    """A cohort's sum as so many finite numbers.

    Raises:
        DataError: it is something else.

    >>> checked_total([1, 2.5], 2).tolist()
    [1.0, 2.5]
    """
    try:
        total = np.asarray(estimate.value if isinstance(estimate, VectorEstimate) else estimate, dtype=np.float64)
    except (TypeError, ValueError):
        total = np.full(1, np.nan)
    if total.shape != (numbers,) or not np.isfinite(total).all():
        wanted = f"must be {numbers} finite numbers"
        raise DataError("estimate", f"shape {total.shape}", wanted, "tell the cohort's sum of gradients")
    return total
