"""The pan-private sum of vectors: a running sum with noise before the first vector and after the last.

Whoever seizes the memory sees a running sum behind the first noise, or leaves the second to protect who comes later, so
one noise's pair is all that is seen of a user.

Reference: [001] Algorithm 6, with integer noise and exact accounting.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.rounding import rounded_difference
from shuffledp.continual.views import UserView
from shuffledp.errors import InfeasibleError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.sets import Floats
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import Vectors
from shuffledp.protocols.error_bounds import CONFIDENCE, noise_and_rounding_bound
from shuffledp.protocols.learner import OpenBatch
from shuffledp.protocols.states import fingerprint_of
from shuffledp.protocols.sums.noise import SkellamNoise
from shuffledp.protocols.vector_sum.base import ROUNDING_PART
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import poisson, poisson_parts, sample_skellam

Whole = NDArray[np.int64]

# Rounding may add this part to a neighbours' distance and to the noise; wider noise takes long to account for.
_ROUNDING_COST, _WIDEST_NOISE = 0.003, 1e5


@dataclass(frozen=True, slots=True, kw_only=True)
class PanPrivateSum:
    """A running sum of vectors no longer than `radius`, with Skellam noise of this variance before and after.

    >>> total = PanPrivateSum.plan(users=3, privacy=Privacy(1, 1e-6), dimension=2, radius=1)
    >>> bits = RandomBits.seeded(1)
    >>> held = total.begin(bits=bits)
    >>> for vector in ([0.6, 0.8], [1.0, 0.0], [0.0, -1.0]):
    ...     held = total.read(held, [vector], bits=bits)
    >>> round(total.standard_error, 1), total.guarantee_delta <= 1e-6
    (12.0, True)
    """

    users: int
    privacy: Privacy
    dimension: int
    radius: float
    grid: int
    variance: float

    @classmethod
    def plan(cls, *, users: int, privacy: Privacy, dimension: int, radius: float) -> Self:
        """The least noise on a grid that is fine enough."""
        deviation, grid = gaussian_standard_deviation(privacy), 1
        while _cost(grid, dimension, users, deviation, privacy) > _ROUNDING_COST:
            finer = math.ceil(grid * 1.1)
            if 2 * finer * deviation > _WIDEST_NOISE:
                break
            grid = finer
        # What tables cut off is far below a thousandth of any delta that is allowed; the rest is for noise.
        target = Privacy(privacy.epsilon, privacy.delta * (1 - 1e-3))
        noise = UserView.of(Vectors(dimension, radius, grid), 1, target).calibrate("skellam", target)
        variance = noise.law().variance
        return cls(users=users, privacy=privacy, dimension=dimension, radius=radius, grid=grid, variance=variance)

    def __post_init__(self) -> None:
        if self.guarantee_delta > self.privacy.delta:
            limits = f"must reach delta {self.privacy.delta:g} but gives {self.guarantee_delta:.3g}"
            raise InfeasibleError("variance", self.variance, limits, "add noise")

    @property
    def domain(self) -> Vectors:
        """How vectors become whole numbers."""
        return Vectors(self.dimension, self.radius, self.grid)

    @property
    def step(self) -> float:
        """One step of the grid."""
        return self.domain.step

    @property
    def standard_error(self) -> float:
        """The standard error of every coordinate: both noises and rounding."""
        return self.step * math.sqrt(2 * self.variance + self.users / 4)

    @property
    def messages_per_user_max(self) -> int:
        """A user shows its data to the analyzer and sends no messages."""
        return 0

    @property
    def batches(self) -> tuple[OpenBatch, ...]:
        """Nothing is shuffled."""
        return ()

    def sampled(self, *, bits: RandomBits, ahead: int = 1) -> "PanPrivateRun":
        """The sums themselves, one after another."""
        return PanPrivateRun(self, bits)

    @property
    def _view(self) -> UserView:
        return UserView.of(self.domain, 1, self.privacy)

    def pair(self, honest: int) -> DominatingPair:
        """One noise, and a neighbour's shift."""
        return self._view.pair(SkellamNoise(self.variance))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta of what one intrusion and the model show."""
        half = Fraction(self.variance) / 2
        parts = poisson_parts(half)
        distance = 4 * self.dimension * parts * poisson(half / parts).distance
        sampling = (1 + math.exp(epsilon)) * distance
        words = "(1 + e^epsilon) times what the tables of both noises cut off and round"
        terms = self._view.delta_terms(SkellamNoise(self.variance), epsilon)
        return (*terms, DeltaTerm("sampling", sampling, words))

    # Its pair is Gaussian as it is.
    gaussian, repeated_terms = pair, delta_terms

    @property
    def guarantee_delta(self) -> float:
        """All of delta at the target's epsilon."""
        return sum(term.value for term in self.delta_terms(self.privacy.epsilon, self.users))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the sum."""
        numbers = (self.dimension, self.radius, self.grid, self.variance)
        return fingerprint_of(["pan-private-sum", self.users, self.privacy.epsilon, self.privacy.delta, *numbers])

    def _noise(self, bits: RandomBits) -> Whole:
        return sample_skellam(Fraction(self.variance), self.dimension, bits=bits)

    def begin(self, *, bits: RandomBits) -> Whole:
        """The first noise."""
        return self._noise(bits)

    def read(self, held: Whole, vectors: ArrayLike, *, bits: RandomBits) -> Whole:
        """The running sum with some users' vectors, rounded at random."""
        steps = self.domain.to_steps(self.domain.check_values(vectors), bits=bits).reshape(-1, self.dimension)
        return np.asarray(held + steps.sum(axis=0))

    def close(self, held: Whole, *, bits: RandomBits) -> VectorEstimate:
        """The estimate behind both noises."""
        return VectorEstimate(
            value=np.asarray(self.step * (held + self._noise(bits)), dtype=np.float64),
            standard_error=self.standard_error,
            bound=self.step * _bound_in_steps(self),
            confidence=CONFIDENCE,
            simulated=not bits.is_secure,
        )


class PanPrivateRun:
    """Sums of users' vectors, one after another: each begins with noise and gets as much again at its end."""

    def __init__(self, total: PanPrivateSum, bits: RandomBits) -> None:
        self._total, self._bits = total, bits
        self._held: Whole | None = None

    def add(self, block: Floats, *, is_clipped: bool = False) -> None:
        """Some users' vectors, a row each."""
        held = self._total.begin(bits=self._bits) if self._held is None else self._held
        self._held = self._total.read(held, block, bits=self._bits)

    def estimate(self) -> VectorEstimate:
        """The estimate over all vectors since the last one."""
        held, self._held = self._held, None
        return self._total.close(self._total.begin(bits=self._bits) if held is None else held, bits=self._bits)


@lru_cache(maxsize=64)
def _bound_in_steps(total: PanPrivateSum) -> float:
    return noise_and_rounding_bound(Skellam(2 * total.variance), total.users, total.dimension)


def _cost(grid: int, dimension: int, users: int, deviation: float, privacy: Privacy) -> float:
    length = rounded_difference(2.0 * grid, dimension, ROUNDING_PART * privacy.delta).length
    return max(length / (2 * grid) - 1, users / (16 * (2 * grid * deviation) ** 2))
