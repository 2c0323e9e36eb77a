"""The constants of [001] Lemma 3.1, kept for comparison."""

import math

from shuffledp.privacy import Privacy


def paper_bits(users: int, privacy: Privacy, grid: int) -> tuple[int, float]:
    """Noise bits a user and their probability: b > 180 g^2 ln(2/delta) / (eps^2 n), p = b's half of it.

    >>> paper_bits(10_000, Privacy(1, 1e-6), 100)[0]
    2612
    """
    scale = grid**2 * math.log(2 / privacy.delta) / (privacy.epsilon**2 * users)
    coins = math.floor(180 * scale) + 1
    return coins, 90 * scale / coins


def paper_grid(users: int) -> int:
    """The grid of the lemma, with the erratum: at least sqrt(n), for a range of any width."""
    return max(3, math.ceil(math.sqrt(users)))


def paper_standard_error(users: int, privacy: Privacy, width: float) -> float | None:
    """The standard error of [001] Algorithm 1 for epsilon (1 + 2/g), as its lemma says; None beyond epsilon 15."""
    if privacy.epsilon > 15:
        return None
    grid = paper_grid(users)
    # The lemma gives epsilon (2/g + 1): ask it for so much less.
    asked = Privacy(privacy.epsilon / (1 + 2 / grid), privacy.delta)
    coins, probability = paper_bits(users, asked, grid)
    return width / grid * math.sqrt(users * coins * probability * (1 - probability) + users / 4)


def robust_epsilon(privacy: Privacy, honest_fraction: float) -> float | None:
    """Claim A.8: epsilon / gamma when a fraction gamma >= 1/3 is honest, for epsilon <= 1.

    >>> robust_epsilon(Privacy(1, 1e-6), 0.5)
    2.0
    """
    return privacy.epsilon / honest_fraction if privacy.epsilon <= 1 and honest_fraction >= 1 / 3 else None
