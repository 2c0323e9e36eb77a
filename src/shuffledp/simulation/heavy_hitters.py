"""A whole search for frequent strings in one process: a histogram a level."""

from collections.abc import Callable
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate


def search_heavy_hitters(
    search: Any,
    strings: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = False,
    progress: Callable[[Any], None] | None = None,
) -> Any:
    """The frequent strings, most frequent first.

    Args:
        search: a plan of `HeavyHitters`.
        strings: a string a person.
        bits: where groups and noise come from.
        fast: whether counts are drawn from their law, without messages.
        progress: called with the state after every level.

    Returns:
        The strings that were found, each with its count and interval.

    >>> from shuffledp import Privacy
    >>> from shuffledp.protocols.heavy_hitters import HeavyHitters
    >>> search = HeavyHitters.plan(users=40_000, privacy=Privacy(1, 1e-6), length=2, top=2, alphabet=b"abc")
    >>> people = ["ab"] * 20_000 + ["c"] * 15_000 + ["ba"] * 5_000
    >>> [found.string for found in search_heavy_hitters(search, people, bits=RandomBits.seeded(1), fast=True)]
    ['ab', 'c']
    """
    splitting, reporting = bits.spawn(2)
    run = partial(simulate, bits=reporting, fast=fast)
    return search.searched(strings, run, bits=splitting, progress=progress).found or ()
