"""Bounds that are far off, where too few people are there to count it privately: what whoever holds the rows is told.

The look reads rows without noise. Its only result is a warning in the process that has them already: no part of a model
or of a guarantee depends on it, and the command line shows it with `--with-truth` only.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from shuffledp.errors import UncountedBoundsWarning
from shuffledp.learn.callers import warn_caller
from shuffledp.learn.estimators.clipping import CLIPPED, TOO_MANY
from shuffledp.learn.estimators.declared import Changed
from shuffledp.learn.estimators.preparation import Preparation

# A column that uses less than this part of its bounds is next to a constant to a model.
_USED = 0.02
_WHOSE = "(Read without noise, for whoever holds the rows; no part of the model.)"


def look_at_bounds(prepared: Preparation, people: Any, clipped: Mapping[str, Changed], *, counted: bool) -> None:
    """Warn where what was declared is far off: cut off more than a tenth, or left most of the bounds unused.

    Args:
        prepared: what was declared.
        people: rows as they came.
        clipped: whose rows and targets had to be clipped.
        counted: whether a private count says how many were clipped; then nothing is said of it here.
    """
    for what, which in clipped.items():
        if not counted and what in CLIPPED and np.mean(which) > TOO_MANY:
            warn_caller(f"More than {TOO_MANY:.0%} of {CLIPPED[what]}. {_WHOSE}", UncountedBoundsWarning)
    unused = _hardly_used(prepared, people)
    if unused:
        warn_caller(
            f"{unused} of {prepared.columns.width} features use less than {_USED:.0%} of their declared bounds, so "
            f"that noise hides them: declare narrower feature_bounds, from public knowledge. {_WHOSE}",
            UncountedBoundsWarning,
        )


def _hardly_used(prepared: Preparation, people: Any) -> int:
    """How many columns of numbers lie within a small part of their bounds."""
    features = prepared.features
    dense = isinstance(people, np.ndarray) and people.dtype.kind in "fiu"
    if not features.bounded or not dense or prepared.columns.levels or len(people) < 2:
        return 0
    inside = np.clip(people, features.lows, features.highs)
    used = np.ptp(inside, axis=0) / (features.highs - features.lows)
    # A column that is one value is a constant whatever its bounds are.
    return int(np.count_nonzero((used < _USED) & (np.ptp(people, axis=0) > 0)))
