"""Small primes: fields that categories are numbers of."""

from functools import lru_cache

# Miller-Rabin with these bases is a proof below 3.4e12 (Jaeschke 1993), far beyond 2^32.
_BASES = (2, 3, 5, 7, 11, 13)
LARGEST_PRIME = (1 << 32) - 5


def is_prime(number: int) -> bool:
    """Whether a number below 2^32 is prime.

    >>> [n for n in range(30) if is_prime(n)]
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
    """
    if number < 2:
        return False
    if any(number % base == 0 for base in _BASES):
        return number in _BASES
    twos = ((number - 1) & -(number - 1)).bit_length() - 1
    odd = (number - 1) >> twos
    for base in _BASES:
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True


@lru_cache(maxsize=1024)
def next_prime(number: int) -> int:
    """The smallest prime that is not smaller.

    >>> next_prime(1_000_000), next_prime(LARGEST_PRIME) == LARGEST_PRIME
    (1000003, True)
    """
    while not is_prime(number):
        number += 1
    return number
