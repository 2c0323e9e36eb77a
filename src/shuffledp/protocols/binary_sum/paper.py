"""The constants of Tenenbaum, Kaplan, Mansour, Stemmer 2021, Algorithm 3, as printed."""

import math

from shuffledp.privacy import Privacy


def paper_coins(privacy: Privacy) -> float:
    """Tau = 96 ln(2/delta) / epsilon^2: the fair coins in all that the paper's proof asks for.

    Reference: [003] Algorithm 3, proved for epsilon <= 1.

    >>> round(math.sqrt(paper_coins(Privacy(1, 1e-6))) / 2, 1)
    18.7
    """
    return 96 * math.log(2 / privacy.delta) / privacy.epsilon**2


def paper_noise(users: int, privacy: Privacy) -> tuple[int, float]:
    """Noise bits a user and their probability of being 1, by the paper's two cases.

    The randomizer says m < tau where the analyzer says m <= tau; we take m <= tau for both.
    """
    tau = paper_coins(privacy)
    if users <= tau:
        return math.ceil(tau / users), 0.5
    return 1, tau / (2 * users)


def paper_standard_error(users: int, privacy: Privacy) -> float | None:
    """What Algorithm 3 costs with its own constants; None outside its theorem's range."""
    if privacy.epsilon > 1:
        return None
    bits_per_user, p = paper_noise(users, privacy)
    return math.sqrt(users * bits_per_user * p * (1 - p))
