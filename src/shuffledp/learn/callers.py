"""Warnings that point at the line of whoever called, however deep in this package they are found."""

import sys
import warnings

# Between a user's line and what warns: this package, and those that fit on a user's behalf.
_BETWEEN = ("shuffledp", "sklearn", "joblib")


def warn_caller(words: str, category: type[Warning]) -> None:
    """Warn as if the nearest line outside this package and scikit-learn had been the one that warned.

    Args:
        words: what is wrong, and the way out.
        category: the warning's class.

    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_caller("few people", UserWarning)
    >>> str(caught[0].message), "shuffledp" in caught[0].filename
    ('few people', False)
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(words, category, stacklevel=level)
