"""Sums of vectors by amplification: every user adds the noise itself, and hides in the crowd."""

import math
from dataclasses import dataclass
from functools import lru_cache

from shuffledp.accounting.amplification import local_delta_distance, stronger_clones
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.errors import ParameterError
from shuffledp.privacy import LARGEST_EPSILON, Privacy

_GOLDEN = (math.sqrt(5) - 1) / 2


def _split(local_epsilon: float, users: int, privacy: Privacy) -> Privacy | None:
    """The local guarantee at this local epsilon whose distance uses all of delta that the clones leave."""
    spent = stronger_clones(local_epsilon, users).delta(privacy.epsilon)
    # The distance is proportional to local_delta; the last digits are left for rounding.
    cost = 2 * delta_of_distance(math.exp(privacy.epsilon), local_delta_distance(local_epsilon, 0.5, users))
    left = (privacy.delta * (1 - 1e-9) - spent) / cost
    return Privacy(local_epsilon, left) if left > 0 else None


@lru_cache(maxsize=1024)
def weakest_local_privacy(users: int, privacy: Privacy) -> Privacy:
    """The local guarantee that takes the least Gaussian noise, among those that shuffling brings to `privacy`.

    The delta that the clones leave at a local epsilon settles the local delta; what remains is one number, and the
    noise falls in it and then rises. Without amplification `privacy` itself is the local guarantee.

    >>> local = weakest_local_privacy(100_000, Privacy(1, 1e-6))
    >>> round(local.epsilon, 2), f"{local.delta:.1e}"
    (7.66, '1.9e-09')
    """
    best, least = privacy, gaussian_standard_deviation(privacy)
    if users == 1:
        return best

    def noise(log_epsilon: float) -> float:
        nonlocal best, least
        split = _split(min(math.exp(log_epsilon), LARGEST_EPSILON), users, privacy)
        deviation = math.inf if split is None else gaussian_standard_deviation(split)
        if split is not None and deviation < least:
            best, least = split, deviation
        return deviation

    # Golden section; where both ends are impossible, the local epsilon is too large.
    low = math.log(privacy.epsilon)
    high = math.log(min(LARGEST_EPSILON, privacy.epsilon + math.log(users) + 10))
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    noise_left, noise_right = noise(left), noise(right)
    while high - low > 1e-4:
        if noise_left <= noise_right:
            high, right, noise_right = right, left, noise_left
            left = high - _GOLDEN * (high - low)
            noise_left = noise(left)
        else:
            low, left, noise_left = left, right, noise_right
            right = low + _GOLDEN * (high - low)
            noise_right = noise(right)
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class AmplifiedGaussian:
    """P_Amp: each of n users sends its vector, of norm at most the radius, plus Gaussian noise, as one message.

    The adversary sees the n noisy vectors in random order. The paper's theorem promises (O(epsilon), O(delta));
    here the noise is the least for which the accountant proves (epsilon, delta), the same in every dimension.

    Reference: [002] section 3.2, Algorithms 2-4.

    Attributes:
        users: how many send a message.
        privacy: what must hold for the shuffled messages.
        dimension: how many numbers a vector has.
        radius: no vector is longer.

    >>> round(AmplifiedGaussian(users=10_000, privacy=Privacy(1, 1e-6), dimension=10).standard_error, 1)
    223.3
    """

    users: int
    privacy: Privacy
    dimension: int = 1
    radius: float = 1.0

    def __post_init__(self) -> None:
        for name, count in (("users", self.users), ("dimension", self.dimension)):
            if count < 1:
                raise ParameterError(name, count, "must be >= 1", "count them")
        if not (self.radius > 0 and math.isfinite(self.radius)):
            raise ParameterError("radius", self.radius, "must be > 0 and finite", "1 suits unit vectors")

    @property
    def local_privacy(self) -> Privacy:
        """What a message satisfies alone."""
        return weakest_local_privacy(self.users, self.privacy)

    @property
    def noise_standard_deviation(self) -> float:
        """The standard deviation of the noise that a user adds to each coordinate."""
        return gaussian_standard_deviation(self.local_privacy, 2 * self.radius)

    @property
    def standard_error(self) -> float:
        """The standard error of a coordinate of the sum."""
        return self.noise_standard_deviation * math.sqrt(self.users)

    @property
    def paper_standard_error(self) -> float | None:
        """The standard error with [002] Theorem B.1's noise, which pays for a matrix, too; None outside its range."""
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        if epsilon >= math.sqrt(math.log(2 / delta) / self.users):
            return None
        logs = math.log(2.5 * self.users / delta) * math.log(2 / delta)
        return self.radius * 4 * math.sqrt(2 * logs) / epsilon
