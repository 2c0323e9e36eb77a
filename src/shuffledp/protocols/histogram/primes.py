"""Small primes: fields that categories are numbers of."""

import math
from functools import lru_cache

import numpy as np

LARGEST_PRIME = (1 << 32) - 5


def is_prime(number: int) -> bool:
    """Whether a number below 2^32 is prime.

    >>> [n for n in range(30) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    """
    return number > 1 and bool((number % np.arange(2, math.isqrt(number) + 1)).all())


@lru_cache(maxsize=1024)
def next_prime(number: int) -> int:
    """The smallest prime that is not smaller.

    >>> next_prime(1_000_000), next_prime(LARGEST_PRIME) == LARGEST_PRIME
    (1000003, True)
    """
    while not is_prime(number):
        number += 1
    return number
