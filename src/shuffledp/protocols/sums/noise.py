"""The noise of a sum: three families, of which every user of a batch adds its part."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.accounting.laws import Binomial, IntegerLaw
from shuffledp.accounting.pairs import FinitePair, ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.polya import polya_law, pure_ratio, ratio_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import fair_coin_sums
from shuffledp.sampling.laws import negative_binomial, poisson, poisson_parts, sample_polya_difference, sample_skellam
from shuffledp.sampling.table import LONGEST_TABLE

# The part of delta for shares, where noise needs delta, too.
TRANSPORT_PART = 0.1
# A table of noise reaches to e^-this.
_TABLE_DEPTH = 96
# What a value shows where nothing hides it.
NEVER_MEET = FinitePair([1.0, 0.0], [0.0, 1.0], "P and Q that never meet: too little noise is left")


@dataclass(frozen=True)
class BatchNoise(ABC):
    """What the users of one batch that are counted on add to it together, whatever its size."""

    family: ClassVar[str]
    is_exact: ClassVar[bool] = False
    """Whether it is drawn exactly and sent in bits; otherwise it comes from tables and is sent in shares."""
    composes_wide: ClassVar[bool] = False
    """Whether shifts by several steps compose exactly, and not by a Gaussian pair that dominates them."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What decides the noise."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @abstractmethod
    def law(self, users: float = 1.0, of: int = 1) -> IntegerLaw:
        """The law when so many users add their parts and `of` are counted on; its mean may not be 0."""

    @property
    def deviation(self) -> float:
        """The standard deviation of what the users that are counted on add."""
        return self.law().standard_deviation

    @abstractmethod
    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """The noise of so many batches, in which `surplus` times the users counted on add theirs, less its mean."""

    def dealt(self, users: int, honest: int) -> int:
        """How many coins a batch deals out, so that any `honest` of its users toss enough; 0 where noise is shared."""
        return 0

    def surplus(self, users: int, honest: int) -> Fraction:
        """The noise of a batch of so many users, `honest` of whom are counted on, in what these add at least."""
        return Fraction(users, honest)

    def left(self, users: int, counted: int, honest: int) -> Fraction:
        """The noise of any `honest` of the users, in what is counted on from any `counted` of them."""
        return Fraction(honest, counted)

    @abstractmethod
    def quieter(self, part: float) -> "BatchNoise":
        """Noise of the same family with this part of the variance: for audits, it protects nobody."""

    def draws(self, part: Fraction) -> int:
        """How often a user that adds this part of the noise draws from a table, for one number."""
        return 2

    def table_distance(self, part: Fraction) -> float:
        """How far the table for this part of the noise is from its law."""
        return 0.0

    def sampling_delta(self, users: int, honest: int, coordinates: int, epsilon: float) -> float:
        """What tables of noise cost where each of so many users adds its part, one in `honest`, to every coordinate."""
        part = Fraction(1, honest)
        off = self.draws(part) * users * coordinates * self.table_distance(part)
        return delta_of_distance(math.exp(epsilon), off)

    def pair(self, surplus: float = 1.0, shift: int = 1) -> ShiftPair:
        """One number's view of a user who moves it by so many steps."""
        return shift_pair(self.law(surplus), shift)

    def delta(self, epsilon: float, batches: int, surplus: float = 1.0, shift: int = 1) -> float:
        """What so many noises, each moved by so many steps, leave of delta; all of it where nobody adds noise."""
        if surplus == 0:
            return 1.0
        pair = self.pair(surplus, shift)
        if epsilon >= batches * pair.pure_epsilon:
            return 0.0
        return pair.delta(epsilon) if batches == 1 else _composition(pair.noise, shift, batches).delta(epsilon)


# A part of pure noise's variance below which noise is worth delta, and of its scale; of so many noises it always is.
_WORTH_VARIANCE, _WORTH_SCALE, _MANY = 0.99, 0.995, 9
# Pure noise of a smaller variance is next to none: there is nothing to save.
_NONE_TO_SAVE = 1e-4
# Noise against itself shifted, and Skellam laws: kept for their tables of masses.
shift_pair = lru_cache(maxsize=64)(ShiftPair)
_skellam = lru_cache(maxsize=32)(Skellam)


@lru_cache(maxsize=32)
def _composition(law: IntegerLaw, shift: int, times: int) -> Composition:
    return Composition([(shift_pair(law, shift), times)])


@dataclass(frozen=True)
class LaplaceNoise(BatchNoise):
    """Discrete Laplace in Polya shares."""

    family: ClassVar[str] = "laplace"
    composes_wide: ClassVar[bool] = True
    ratio: float

    def __post_init__(self) -> None:
        if isinstance(self.ratio, bool) or not isinstance(self.ratio, int | float) or not 0 < self.ratio < 1:
            raise ParameterError("ratio", self.ratio, "must lie in (0, 1)", "make the plan again")
        if -math.log(self.ratio) * LONGEST_TABLE < _TABLE_DEPTH:
            raise InfeasibleError(
                "noise", f"ratio {self.ratio!r}", "is too wide to be drawn", "choose a larger epsilon or a coarser grid"
            )

    def law(self, users: float = 1.0, of: int = 1) -> IntegerLaw:
        return polya_law(users / of, self.ratio)

    def quieter(self, part: float) -> "LaplaceNoise":
        return LaplaceNoise(ratio_with(part * self.law().variance))

    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        return sample_polya_difference(surplus, self.ratio, count, bits=bits)

    def table_distance(self, part: Fraction) -> float:
        return negative_binomial(part, self.ratio).distance


def least_laplace(epsilon: float, delta: float, noises: int = 1, shift: int = 1) -> LaplaceNoise:
    """The least discrete Laplace noise that hides a shift of so many of them at once: pure, or with this much delta.

    Of a few noises, delta is taken only where it saves a hundredth of the variance: pure noise leaves it to others.

    >>> least_laplace(1.0, 1e-6).ratio == pure_ratio(1.0), round(least_laplace(1.0, 0.1).law().variance, 2)
    (True, 1.38)
    """
    pure = LaplaceNoise(pure_ratio(epsilon, noises * shift))
    if pure.law().variance < _NONE_TO_SAVE:
        return pure
    scale = noises * shift / epsilon
    is_free = noises >= _MANY and shift == 1
    if not is_free and _least_delta(epsilon, math.exp(-1 / (_WORTH_SCALE * scale)), noises, shift) > delta:
        return pure
    found = smallest_meeting(
        lambda scale: LaplaceNoise(math.exp(-1 / scale)).delta(epsilon, noises, shift=shift),
        delta,
        0.0,
        scale,
        relative=1e-3,
    )
    less = LaplaceNoise(math.exp(-1 / found))
    worth = 1.0 if is_free else _WORTH_VARIANCE
    return less if less.law().variance < worth * pure.law().variance else pure


def _least_delta(epsilon: float, ratio: float, noises: int, shift: int) -> float:
    """What so many shifted noises leave of delta at least: where none is above 0, all log ratios are the largest."""
    return (1 + ratio) ** -noises * -math.expm1(min(0.0, epsilon + noises * shift * math.log(ratio)))


@dataclass(frozen=True)
class SkellamNoise(BatchNoise):
    """Skellam in Skellam shares."""

    family: ClassVar[str] = "skellam"
    variance: float

    def __post_init__(self) -> None:
        is_number = isinstance(self.variance, int | float) and not isinstance(self.variance, bool)
        if not is_number or not 0 < self.variance < math.inf:
            raise ParameterError("variance", self.variance, "must be a positive number", "make the plan again")

    def law(self, users: float = 1.0, of: int = 1) -> IntegerLaw:
        return _skellam(self.variance * users / of)

    def quieter(self, part: float) -> "SkellamNoise":
        return SkellamNoise(part * self.variance)

    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        return sample_skellam(Fraction(self.variance) * surplus, count, bits=bits)

    def draws(self, part: Fraction) -> int:
        return 2 * poisson_parts(Fraction(self.variance) * part / 2)

    def table_distance(self, part: Fraction) -> float:
        half = Fraction(self.variance) * part / 2
        return poisson(half / poisson_parts(half)).distance


@dataclass(frozen=True)
class CoinNoise(BatchNoise):
    """An even number of fair coins, tossed by the users of a batch."""

    family: ClassVar[str] = "coins"
    is_exact: ClassVar[bool] = True
    coins: int

    def __post_init__(self) -> None:
        if isinstance(self.coins, bool) or not isinstance(self.coins, int) or self.coins < 2 or self.coins % 2:
            raise ParameterError("coins", self.coins, "must be an even number >= 2", "make the plan again")

    def law(self, users: float = 1.0, of: int = 1) -> IntegerLaw:
        # Whole coins, also where a division has rounded them down by a hair.
        return Binomial(math.floor(self.coins * users / of * (1 + 1e-12) + 1e-9), 0.5)

    def quieter(self, part: float) -> "CoinNoise":
        return CoinNoise(max(2, 2 * int(part * self.coins / 2)))

    def sample(self, surplus: Fraction, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
        coins = math.floor(self.coins * surplus)
        return fair_coin_sums(coins, count, bits=bits) - coins // 2

    def draws(self, part: Fraction) -> int:
        return 0

    def dealt(self, users: int, honest: int) -> int:
        """An even number of coins of which any `honest` of the users toss enough.

        Where everybody is honest that is what is needed. Else any seat may be a dishonest user's: every seat gets the
        same number, at least one, so that a batch of many users has as many coins as users.

        >>> noise = CoinNoise(288)
        >>> noise.dealt(100, 100), noise.dealt(100, 50), noise.dealt(1001, 900)
        (288, 600, 1002)
        """
        total = self.coins if honest == users else users * -(-self.coins // honest)
        return total + total % 2

    def surplus(self, users: int, honest: int) -> Fraction:
        return Fraction(self.dealt(users, honest), self.coins)

    def left(self, users: int, counted: int, honest: int) -> Fraction:
        return Fraction(fewest_dealt(self.dealt(users, counted), users, honest), self.coins)


def fewest_dealt(coins: int, users: int, honest: int) -> int:
    """The coins of those `honest` of the users who have the fewest, where coins are dealt out evenly by seat.

    >>> fewest_dealt(20, 9, 9), fewest_dealt(20, 9, 7), fewest_dealt(3, 9, 6)
    (20, 14, 0)
    """
    every, more = divmod(coins, users)
    return honest * every + max(0, honest - (users - more))


FAMILIES = {kind.family: kind for kind in (LaplaceNoise, CoinNoise, SkellamNoise)}
