"""The fast Walsh-Hadamard transform."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def walsh_hadamard(values: NDArray[Any]) -> NDArray[Any]:
    """Replace values v, in place and along the last axis, by the sums over i of (-1)^popcount(i & j) v_i.

    log2 of the length rounds of sums and differences; the length must be a power of two. Twice over it is
    multiplication by the length.

    >>> walsh_hadamard(np.array([1, 0, 0, 0, 0, 1, 0, 0])).tolist()
    [2, 0, 2, 0, 0, 2, 0, 2]
    """
    rows, length = values.size // values.shape[-1], values.shape[-1]
    half = 1
    while half < length:
        pairs = values.reshape(rows, -1, 2, half)
        sums = pairs[:, :, 0] + pairs[:, :, 1]
        np.subtract(pairs[:, :, 0], pairs[:, :, 1], out=pairs[:, :, 1])
        pairs[:, :, 0] = sums
        half *= 2
    return values
