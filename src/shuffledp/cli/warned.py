"""Warnings of this package, kept to be shown with the rest of an answer."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from shuffledp.errors import ShuffleDPWarning


@contextmanager
def kept_warnings() -> Iterator[list[str]]:
    """Collect this package's warnings, each once; others go where they would have gone.

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
            said.extend(dict.fromkeys(str(each.message) for each in ours))
            others = [each for each in caught if each not in ours]
    for each in others:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
