"""What a user's batches show of the user: so many independent noises, all shifted by one whole vector.

Where a user moves one coordinate, or two as a replaced category does: the exact composition of shifted noises (up
or down is the same, as noise is symmetric). Where any: normal scores (docs/theory/vector-sums.md) give a Gaussian
pair for every batch, whatever the shift's direction, and k of them compose to one with sqrt(k) times the shift. A
user rounds once and sends the same steps to all its batches, so one rounding failure covers all.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.continual.noise import TRANSPORT_PART, calibrate
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import SummedDomain
from shuffledp.protocols.sums.noise import (
    NEVER_MEET,
    BatchNoise,
    CoinNoise,
    LaplaceNoise,
    SkellamNoise,
    least_laplace,
)
from shuffledp.protocols.vector_sum.base import ROUNDING_PART, WINDOW_PART
from shuffledp.protocols.vector_sum.calibration import gaussian_pair, smallest_variance


@dataclass(frozen=True, slots=True)
class UserView:
    """A shift of this length, at most `largest_shift` in a coordinate, in each of so many batches.

    >>> from shuffledp.protocols.domains.summed import Bits, Vectors
    >>> privacy = Privacy(1, 1e-6)
    >>> UserView.of(Bits(), 4, privacy).calibrate("coins", privacy)
    CoinNoise(coins=288)
    >>> view = UserView.of(Vectors(dimension=10, radius=1, grid=200), 4, privacy)
    >>> round(math.sqrt(view.calibrate("skellam", privacy).variance) / view.length / 2, 2)
    4.25
    """

    batches: int
    coordinates: int
    moved: int | None
    length: float
    largest_shift: int
    rounding_failure: float
    outside: float

    @classmethod
    def of(cls, domain: SummedDomain, batches: int, privacy: Privacy) -> Self:
        """The view of a user with a value of this domain who is in at most so many batches."""
        difference = domain.difference(ROUNDING_PART * privacy.delta)
        return cls(
            batches=batches,
            coordinates=domain.coordinates,
            moved=domain.moved,
            length=difference.length,
            largest_shift=min(domain.largest_shift, math.ceil(difference.length)),
            rounding_failure=difference.failure,
            outside=WINDOW_PART * privacy.delta / (batches * domain.coordinates),
        )

    def composes_exactly(self, noise: BatchNoise) -> bool:
        """Whether the noise's own pair is composed, and not a Gaussian one that dominates it."""
        return self.moved is not None and (self.largest_shift == 1 or noise.composes_wide)

    @property
    def noises(self) -> int:
        """Noises that a user moves, in all batches."""
        return self.batches * (self.moved or self.coordinates)

    def takes_no_delta(self, noise: BatchNoise, epsilon: float) -> bool:
        """Whether all noises together are pure: discrete Laplace with the ratio of a part of epsilon each."""
        return (
            self.composes_exactly(noise) and epsilon >= self.noises * noise.pair(1.0, self.largest_shift).pure_epsilon
        )

    def pair(self, noise: BatchNoise, surplus: float = 1.0) -> DominatingPair:
        """What one moved coordinate of one batch shows, or a whole batch where any number is moved."""
        if surplus == 0:
            return NEVER_MEET
        if self.composes_exactly(noise):
            return noise.pair(surplus, self.largest_shift)
        return gaussian_pair(noise.law(surplus), self.length, self.largest_shift, self.outside)

    def delta_terms(self, noise: BatchNoise, epsilon: float, surplus: float = 1.0) -> tuple[DeltaTerm, ...]:
        """What all the user's batches leave of delta."""
        if self.composes_exactly(noise):
            words = f"the composition of {self.noises} noises that a user moves by {self.largest_shift}, exact"
            return (DeltaTerm("noise", noise.delta(epsilon, self.noises, surplus, self.largest_shift), words),)
        pair = self.pair(noise, surplus)
        whole = GaussianPair(math.sqrt(self.batches) * pair.shift) if isinstance(pair, GaussianPair) else pair
        return (
            DeltaTerm(
                "noise",
                whole.delta(epsilon),
                f"the curve of the Gaussian pair that dominates {self.batches} shifts of length {self.length:.6g}",
            ),
            DeltaTerm(
                "cut-off",
                self.batches * self.coordinates * self.outside,
                f"{self.batches} times {self.coordinates:,} coordinates' noise outside the window of normal scores",
            ),
            DeltaTerm("rounding", self.rounding_failure, "two neighbours' rounded values are further apart than that"),
        )

    def calibrate(self, family: str, privacy: Privacy) -> BatchNoise:
        """The least noise of a family with which the user's batches together are private."""
        return _calibrated(self, family, privacy)


@lru_cache(maxsize=64)
def _calibrated(view: UserView, family: str, privacy: Privacy) -> BatchNoise:
    if view.moved is not None and view.largest_shift == 1:
        return calibrate(family, view.noises, privacy)
    if family == LaplaceNoise.family:
        if view.moved is None:
            raise ParameterError("noise", family, "must be skellam or coins for vectors", "auto picks the best")
        limit = (1 - TRANSPORT_PART) * privacy.delta
        return least_laplace(privacy.epsilon, limit, view.noises, view.largest_shift)
    certain = view.rounding_failure + view.batches * view.coordinates * view.outside
    transport = 0.0 if family == CoinNoise.family else TRANSPORT_PART * privacy.delta
    within = Privacy(privacy.epsilon, (privacy.delta - transport - certain) * (1 - 1e-6))
    length = math.sqrt(view.batches) * view.length
    if family == CoinNoise.family:
        variance = smallest_variance(_even_coins, length, view.largest_shift, view.outside, within, step=0.5)
        return CoinNoise(_even_coins(variance).trials)
    return SkellamNoise(smallest_variance(Skellam, length, view.largest_shift, view.outside, within))


def _even_coins(variance: float) -> Binomial:
    """The fewest coins, an even number, with at least this variance."""
    return Binomial(2 * math.ceil(2 * variance * (1 - 1e-12)), 0.5)
