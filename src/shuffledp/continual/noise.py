"""The noise of every batch of a running sum: three families, calibrated by exact composition.

A user is in at most k batches, all of which carry the whole noise, so what is seen of the user is at most k
independent noises, shifted alike: the k-fold composition of one pair, adaptive choices included.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.differences import PolyaDifference, Skellam
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.polya import pure_ratio, ratio_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import fair_coin_sums
from shuffledp.sampling.laws import sample_polya_difference, sample_skellam
from shuffledp.sampling.table import LONGEST_TABLE

# From so many shufflers on, delta makes room for less discrete Laplace noise than the pure epsilon / k.
DELTA_HELPS_LAPLACE = 9
# The part of delta for the shares of all a user's batches, where noise needs delta, too.
TRANSPORT_PART = 0.1
# A table of noise reaches to e^-this.
_TABLE_DEPTH = 96


@dataclass(frozen=True)
class BatchNoise(ABC):
    """What all users of one batch add to it together, whatever its size."""

    family: ClassVar[str]

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What decides the noise."""

    @abstractmethod
    def law(self, surplus: float = 1.0) -> IntegerLaw:
        """The law when `surplus` times the users that are counted on add their parts; its mean may not be 0."""

    @abstractmethod
    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """The noise of so many batches, less its mean."""

    @abstractmethod
    def quieter(self, part: float) -> "BatchNoise":
        """Noise of the same family with this part of the variance: for audits, it protects nobody."""

    def pair(self, surplus: float = 1.0) -> ShiftPair:
        """One batch's view of a user's bit."""
        return ShiftPair(self.law(surplus))

    def delta(self, epsilon: float, batches: int, surplus: float = 1.0) -> float:
        """What so many batches' noises leave of delta."""
        pair = self.pair(surplus)
        if epsilon >= batches * pair.pure_epsilon:
            return 0.0
        return pair.delta(epsilon) if batches == 1 else _composition(self, batches, surplus).delta(epsilon)


@lru_cache(maxsize=32)
def _composition(noise: BatchNoise, batches: int, surplus: float) -> Composition:
    return Composition([(noise.pair(surplus), batches)])


@dataclass(frozen=True)
class LaplaceNoise(BatchNoise):
    """Discrete Laplace in Polya shares."""

    family: ClassVar[str] = "laplace"
    ratio: float

    def __post_init__(self) -> None:
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, int | float) or not 0 < self.ratio < 1:
            raise ParameterError("ratio", self.ratio, "must lie in (0, 1)", "make the plan again")
        if -math.log(self.ratio) * LONGEST_TABLE < _TABLE_DEPTH:
            raise InfeasibleError(
                "noise", f"ratio {self.ratio!r}", "is too wide to be drawn", "choose a larger epsilon or a coarser grid"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        return {"ratio": self.ratio}

    def law(self, surplus: float = 1.0) -> IntegerLaw:
        return DiscreteLaplace(self.ratio) if surplus == 1 else PolyaDifference(surplus, self.ratio)

    def quieter(self, part: float) -> "LaplaceNoise":
        return LaplaceNoise(ratio_with(part * self.law().variance))

    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        return sample_polya_difference(surplus, self.ratio, count, bits=bits)


@dataclass(frozen=True)
class SkellamNoise(BatchNoise):
    """Skellam in Skellam shares."""

    family: ClassVar[str] = "skellam"
    variance: float

    def __post_init__(self) -> None:
        is_number = isinstance(self.variance, int | float) and not isinstance(self.variance, bool)
        if not is_number or not 0 < self.variance < math.inf:
            raise ParameterError("variance", self.variance, "must be a positive number", "make the plan again")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"variance": self.variance}

    def law(self, surplus: float = 1.0) -> IntegerLaw:
        return Skellam(self.variance * surplus)

    def quieter(self, part: float) -> "SkellamNoise":
        return SkellamNoise(part * self.variance)

    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        return sample_skellam(Fraction(self.variance) * surplus, count, bits=bits)


@dataclass(frozen=True)
class CoinNoise(BatchNoise):
    """An even number of fair coins, dealt out evenly to the users of a batch."""

    family: ClassVar[str] = "coins"
    coins: int

    def __post_init__(self) -> None:
        if isinstance(self.coins, bool) or not isinstance(self.coins, int) or self.coins < 2 or self.coins % 2:
            raise ParameterError("coins", self.coins, "must be an even number >= 2", "make the plan again")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"coins": self.coins}

    def law(self, surplus: float = 1.0) -> IntegerLaw:
        return Binomial(max(1, math.floor(self.coins * surplus + 1e-9)), 0.5)

    def quieter(self, part: float) -> "CoinNoise":
        return CoinNoise(max(2, 2 * int(part * self.coins / 2)))

    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        coins = math.floor(self.coins * surplus)
        return fair_coin_sums(coins, count, bits=bits) - coins // 2


FAMILIES = {kind.family: kind for kind in (LaplaceNoise, CoinNoise, SkellamNoise)}


@lru_cache(maxsize=256)
def calibrate(family: str, batches: int, privacy: Privacy) -> BatchNoise:
    """The least noise of a family with which a user's batches together are private.

    >>> calibrate("coins", 4, Privacy(1, 1e-6)).coins
    288
    """
    if family == LaplaceNoise.family:
        return _laplace(batches, privacy)
    gaussian = gaussian_standard_deviation(privacy) ** 2 * batches
    if family == CoinNoise.family:
        return CoinNoise(_fewest_coins(batches, privacy, 4 * gaussian))
    within = Privacy(privacy.epsilon, (1 - TRANSPORT_PART) * privacy.delta)
    variance = smallest_real(
        lambda variance: SkellamNoise(variance).delta(within.epsilon, batches) <= within.delta,
        0.0,
        1.1 * gaussian,
        relative=1e-3,
    )
    return SkellamNoise(variance)


def _laplace(batches: int, privacy: Privacy) -> LaplaceNoise:
    pure = LaplaceNoise(pure_ratio(privacy.epsilon, batches))
    if batches < DELTA_HELPS_LAPLACE:
        return pure
    limit = (1 - TRANSPORT_PART) * privacy.delta
    scale = smallest_real(
        lambda scale: LaplaceNoise(math.exp(-1 / scale)).delta(privacy.epsilon, batches) <= limit,
        0.0,
        batches / privacy.epsilon,
        relative=1e-3,
    )
    return min(pure, LaplaceNoise(math.exp(-1 / scale)), key=lambda noise: noise.law().variance)


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
