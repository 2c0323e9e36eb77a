"""Rewards in [0, 1], and the bit that a device reports of one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError
from shuffledp.learn.spec import as_floats, refuse_first
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import round_randomly


def check_rewards(rewards: ArrayLike) -> NDArray[np.float64]:
    """The rewards as floats in [0, 1], or a DataError that names the first bad row.

    >>> check_rewards([0, 0.5, 1.5])
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: rewards must lie in [0, 1], got something else in row 3: scale them into it.
    """
    numbers = as_floats("rewards", rewards)
    if numbers.ndim != 1 or numbers.size == 0:
        raise DataError(
            "rewards", f"shape {numbers.shape}", "must be a column of at least one number", "pass one a user"
        )
    bad = ~((numbers >= 0) & (numbers <= 1))
    refuse_first("rewards", numbers, bad, "must lie in [0, 1]", "scale them into it")
    return numbers


def reward_bits(rewards: ArrayLike, *, bits: RandomBits) -> NDArray[np.uint8]:
    """The client's side: each reward as a bit whose mean it is.

    >>> reward_bits([0, 1, 1], bits=RandomBits.seeded(1)).tolist()
    [0, 1, 1]
    """
    return round_randomly(check_rewards(rewards), bits=bits).astype(np.uint8)
