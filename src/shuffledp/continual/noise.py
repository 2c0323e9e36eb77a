"""How much noise every batch of a running sum carries: three families, calibrated by exact composition.

A user is in at most k batches, all of which carry the whole noise, so what is seen of the user is at most k
independent noises, shifted alike: the k-fold composition of one pair, adaptive choices included.
"""

from functools import lru_cache

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.privacy import Privacy
from shuffledp.protocols.sums.noise import (
    TRANSPORT_PART,
    BatchNoise,
    CoinNoise,
    LaplaceNoise,
    SkellamNoise,
    least_laplace,
)

__all__ = ["TRANSPORT_PART", "calibrate"]


@lru_cache(maxsize=256)
def calibrate(family: str, batches: int, privacy: Privacy) -> BatchNoise:
    """The least noise of a family with which a user's batches together are private, each moved by one step.

    >>> calibrate("coins", 4, Privacy(1, 1e-6)).coins
    288
    """
    if family == LaplaceNoise.family:
        return least_laplace(privacy.epsilon, (1 - TRANSPORT_PART) * privacy.delta, batches)
    gaussian = gaussian_standard_deviation(privacy) ** 2 * batches
    if family == CoinNoise.family:
        return CoinNoise(_fewest_coins(batches, privacy, 4 * gaussian))
    within = Privacy(privacy.epsilon, (1 - TRANSPORT_PART) * privacy.delta)
    variance = smallest_meeting(
        lambda variance: SkellamNoise(variance).delta(within.epsilon, batches),
        within.delta,
        0.0,
        1.1 * gaussian,
        relative=1e-3,
    )
    return SkellamNoise(variance)


def _fewest_coins(batches: int, privacy: Privacy, guess: float) -> int:
    """The smallest even number: stepped from the Gaussian's answer, which is close."""

    def enough(coins: int) -> bool:
        return CoinNoise(coins).delta(privacy.epsilon, batches) <= privacy.delta

    step = max(2, 2 * int(guess / 400))
    coins = 2 * max(1, int(guess / 2))
    while not enough(coins):
        coins += step
    while step > 2 or (coins > 2 and enough(coins - 2)):
        if coins > step and enough(coins - step):
            coins -= step
        elif step == 2:
            break
        else:
            step = max(2, step // 4 * 2)
    return coins
