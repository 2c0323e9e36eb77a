"""Which of very many independent rare events happen, without asking each of them."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import Probability, bernoulli
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.uniform import uniform_below

# Where an event is as common as this, all coins are tossed.
_COMMON = 1 / 32
_BLOCK = 1 << 20


def random_subset(size: int, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
    """`count` different numbers below `size`, sorted, every set of them with the same probability.

    Numbers are drawn one after the other and those seen before are drawn again.

    >>> random_subset(10**15, 3, bits=RandomBits.seeded(0)).size
    3
    """
    if not 0 <= count <= size < 1 << 62:
        raise ParameterError("count", count, f"must lie in 0..{size}, below 2^62", "draw fewer")
    if 2 * count > size:
        # Fewer draws choose those left out.
        left_out = random_subset(size, size - count, bits=bits)
        return np.delete(np.arange(size, dtype=np.int64), left_out)
    drawn = np.unique(uniform_below(size, count, bits=bits).astype(np.int64)) if count else np.zeros(0, dtype=np.int64)
    while drawn.size < count:
        more = uniform_below(size, count - drawn.size, bits=bits).astype(np.int64)
        drawn = np.union1d(drawn, more)
    return drawn


def rare_events(trials: int, p: Probability, *, bits: RandomBits) -> NDArray[np.int64]:
    """The numbers of those of `trials` independent coins that fall on their side of probability p, sorted: exactly.

    >>> rare_events(10**9, 1e-8, bits=RandomBits.seeded(0)).size < 40
    True
    """
    if p >= _COMMON:
        starts = range(0, trials, _BLOCK)
        found = [start + np.flatnonzero(bernoulli(p, min(_BLOCK, trials - start), bits=bits)) for start in starts]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)
    count = int(binomial(trials, p, 1, bits=bits)[0])
    return random_subset(trials, count, bits=bits)
