"""Which transport, with how many shares or coins, carries one batch of a running sum."""

import math
from collections.abc import Iterable
from functools import lru_cache

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.mixing import MOST_SHARES, distance_of_each, mixing_distance, smallest_messages
from shuffledp.errors import InfeasibleError
from shuffledp.protocols.domains.summed import BITS, SummedDomain
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.sums.batches import CoinBatch, ShareBatch, SumBatch
from shuffledp.protocols.sums.noise import BatchNoise

# Shares mix this part of the honest users, too.
_ROBUST = 0.8


@lru_cache(maxsize=256)
def _spread(noise: BatchNoise, surplus: float, false_alarm: float) -> int:
    return noise.law(surplus).deviation_quantile(false_alarm)


def _plausible(users: int, honest: int, noise: BatchNoise, domain: SummedDomain) -> tuple[int, int]:
    """The sums that a batch has in every coordinate, but for a probability of FALSE_ALARM."""
    spread = _spread(noise, users / honest, FALSE_ALARM / domain.coordinates)
    return users * domain.lowest - spread, users * domain.highest + spread


def moduli_of(sizes: Iterable[int], honest_fraction: float, noise: BatchNoise, domain: SummedDomain) -> list[list[int]]:
    """The modulus that batches of these sizes are sent in, as a power of two, from each size on where it changes.

    >>> from shuffledp.protocols.sums.noise import SkellamNoise
    >>> moduli_of([45, 90, 405], 1.0, SkellamNoise(34.0), BITS)
    [[45, 48], [405, 49]]
    """
    found: list[list[int]] = []
    for size in sorted(sizes):
        lowest, highest = _plausible(size, honest_users(size, honest_fraction), noise, domain)
        bits = modulus_bits_for(highest - lowest + 1)
        if not found or found[-1][1] != bits:
            found.append([size, bits])
    return found


@lru_cache(maxsize=4096)
def batch_mechanism(
    users: int,
    honest_fraction: float,
    noise: BatchNoise,
    distance: float,
    domain: SummedDomain = BITS,
    mixed_together: bool = True,
) -> SumBatch:
    """The mechanism of a batch of this size, refused where its shares would show more than `distance`.

    Unless `mixed_together`, every coordinate has its part of the distance, as if distances added up.
    """
    honest = honest_users(users, honest_fraction)
    if coins := noise.dealt(users, honest):
        if (users + 1) * coins >= 1 << 63:
            raise InfeasibleError("users", users, "and coins must fit into 64 bits together", "plan smaller batches")
        return CoinBatch(users, coins, domain.coordinates, domain.lowest, domain.highest - domain.lowest)
    lowest, highest = _plausible(users, honest, noise, domain)
    modulus_bits = modulus_bits_for(highest - lowest + 1)
    parts = domain.coordinates
    modulus, each = 1 << modulus_bits, distance_of_each(distance, parts) if mixed_together else distance / parts
    # Enough for a few users fewer, too, so that dropouts leave something to say.
    shares = smallest_messages(max(1, math.floor(_ROBUST * honest)), modulus, each)
    while mixing_distance(honest, shares, modulus) > each and shares < MOST_SHARES:
        shares += 1
    splitting = Splitting(shares, modulus_bits, lowest, highest)
    mechanism = ShareBatch(users, honest, noise, splitting, domain.coordinates)
    if mechanism.distance_with(honest) > distance:
        raise InfeasibleError("users", users, "are too few in a batch to mix shares", "choose the noise coins")
    return mechanism
