"""The hard inputs of [000] Theorem 4.1: single random bits among long repetitions of another."""

import math

import numpy as np
from numpy.typing import NDArray


def lower_shape(users: int, shufflers: int, epsilon: float) -> float:
    """Rep_(n, k) of [000] Theorem 4.1: some constant times it is a lower bound for every algorithm once n is large.

    >>> round(lower_shape(1_000_000, 1, 1.0), 2)
    23.59
    """
    power = 1 / (2 * shufflers + 1)
    variance = math.exp(epsilon) / (math.exp(2 * epsilon) + 1)
    return 0.5 * math.pow(users, power) * math.pow(variance, 2 * shufflers * power)


def repetitions(users: int, shufflers: int, epsilon: float) -> int:
    """Rep = n^(1/(2k+1)) c^(2k/(2k+1)) / 2 with c = e^eps / (e^(2 eps) + 1), at least 1.

    >>> repetitions(1_000_000, 1, 1.0)
    24
    """
    return max(1, round(lower_shape(users, shufflers, epsilon)))


def hard_stream(users: int, shufflers: int, epsilon: float, *, seed: int | None = None) -> NDArray[np.uint8]:
    """A draw of Delta_(n, k): a single fair bit, then `repetitions` copies of another, and so on.

    Reference: [000] section 4.

    >>> hard_stream(8, 1, 1.0, seed=1).size
    8
    """
    generator = np.random.default_rng(seed)
    copies = repetitions(users, shufflers, epsilon)
    blocks = -(-users // (copies + 1))
    bits = generator.integers(0, 2, size=(blocks, 2), dtype=np.uint8)
    lengths = np.tile([1, copies], blocks)
    return np.repeat(bits.reshape(-1), lengths)[:users]
