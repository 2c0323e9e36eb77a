"""A whole search for frequent strings in one process: groups drawn at random, a histogram a level."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import ParameterError
from shuffledp.protocols.heavy_hitters import HeavyHitter, HeavyHitters, SearchState
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.simulation.run import simulate


def search_heavy_hitters(
    search: HeavyHitters,
    strings: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = False,
    progress: Callable[[SearchState], None] | None = None,
) -> tuple[HeavyHitter, ...]:
    """The frequent strings, most frequent first.

    >>> from shuffledp import Privacy
    >>> search = HeavyHitters(users=40_000, privacy=Privacy(1, 1e-6), length=2, top=2, alphabet=b"abc")
    >>> people = ["ab"] * 20_000 + ["c"] * 15_000 + ["ba"] * 5_000
    >>> [found.string for found in search_heavy_hitters(search, people, bits=RandomBits.seeded(1), fast=True)]
    ['ab', 'c']
    """
    every = search.as_bytes(strings)
    if every.size != search.users:
        raise ParameterError("strings", every.size, f"must be the search's {search.users} users", "plan for as many")
    splitting, reporting = bits.spawn(2)
    order = uniform_permutation(search.users, bits=splitting)
    state = search.start()
    for group in search.groups():
        if state.found is not None:
            break
        if progress is not None:
            progress(state)
        codes = search.encode(state, every[np.asarray(order)[group]])
        state = search.tell(state, simulate(search.ask(state), codes, bits=reporting, fast=fast))
    return state.found or ()
