"""Warnings of this package, kept to be shown with the rest of an answer."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from shuffledp.errors import FittedScalingWarning, RepeatedFitWarning, ShuffleDPWarning, UncountedBoundsWarning

UNNOISED = (FittedScalingWarning, RepeatedFitWarning, UncountedBoundsWarning)
"""What is told by a look at people's rows without noise."""


@contextmanager
def kept_warnings(*, with_truth: bool = True) -> Iterator[list[str]]:
    """Collect this package's warnings, each once; others go where they would have gone.

    Args:
        with_truth: whether warnings that are read from people's rows without noise may be told.

    >>> with kept_warnings() as said:
    ...     warnings.warn("few people", ShuffleDPWarning)
    >>> said
    ['few people']
    """
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShuffleDPWarning)
        try:
            yield said
        finally:
            ours = [each for each in caught if issubclass(each.category, ShuffleDPWarning)]
            told = [each for each in ours if with_truth or not issubclass(each.category, UNNOISED)]
            said.extend(dict.fromkeys(str(each.message) for each in told))
            others = [each for each in caught if each not in ours]
    for each in others:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
