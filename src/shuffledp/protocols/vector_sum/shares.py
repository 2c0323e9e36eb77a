"""Vector sum by shares: split-and-mix of every coordinate plus a share of Skellam noise.

Reference: protocols of Balle, Bell, Gascon, Nissim 2020 (shares) and Agarwal, Kairouz, Liu 2021 (Skellam
noise), accounted for by normal scores instead of Renyi divergences.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.mixing import mixing_distance, robust_messages
from shuffledp.accounting.rounding import RoundedDifference, rounded_difference
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch, Payloads
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.ball import check_ball
from shuffledp.protocols.fields import only_exact, optional_whole_number, real_number, whole_number
from shuffledp.protocols.request import Request
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.vector_sum.base import (
    CLIPPING,
    ROUNDING_PART,
    WINDOW_PART,
    Floats,
    VectorSumPlan,
    Whole,
)
from shuffledp.protocols.vector_sum.calibration import smallest_variance
from shuffledp.protocols.vector_sum.rotation import likely_range, padded_dimension
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import poisson, poisson_parts, sample_skellam

# Shuffled shares may show this part of delta.
_TRANSPORT_PART = 0.03
# Rounding may lengthen a neighbours' difference, and add to the error, by this part each.
_ROUNDING_COST = 0.003
# A user's table of noise has at most about this many entries: 27 deviations.
_LONGEST_TABLE = 1 << 19
# Noise of a larger deviation, in steps, would take long to account for.
_WIDEST_NOISE = 1e5
# Sums that leave a margin in 64 bits.
_LARGEST_SUM = 1 << 54


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorShares(VectorSumPlan):
    """Each user adds its part of Skellam noise to each rounded coordinate and sends that in random shares.

    The adversary sees, up to a stated distance, each coordinate's sum modulo 2^modulus_bits: the rounded sum
    plus Skellam noise, which is all but Gaussian. One client that lies, or one lost share, voids the batch.

    >>> plan = VectorShares.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=10, radius=1)
    >>> round(plan.standard_error, 2), plan.shares
    (8.48, 15)
    """

    method: ClassVar[str] = "shares"
    can_be_voided: ClassVar[bool] = True

    variance: float
    shares: int
    modulus_bits: int
    largest_deviation: int

    @classmethod
    def for_request(cls, request: Request, *, dimension: int, radius: float, rotation: int | None = None) -> Self:
        """The honest users' noise alone hides a vector; the shares mix them to within a part of delta."""
        users, privacy = request.users, request.privacy
        only_exact(request.constants)
        check_ball(dimension, radius)
        honest = request.honest
        coordinates = dimension if rotation is None else padded_dimension(dimension)
        failure, outside = ROUNDING_PART * privacy.delta, WINDOW_PART * privacy.delta / coordinates
        grid = _grid(users, honest, coordinates, failure, privacy)
        span = 1.0 if rotation is None else likely_range(users, coordinates, CLIPPING)
        difference = rounded_difference(2.0 * grid, coordinates, failure)
        certain = difference.failure + coordinates * outside

        def variance_within(delta: float) -> float:
            return smallest_variance(
                Skellam,
                difference.length,
                math.ceil(min(2 * grid * span * (1 + 1e-8) + 1, difference.length)),
                outside,
                Privacy(privacy.epsilon, delta * (1 - 1e-6)),
            )

        # More noise than in the end, to be sure that the modulus holds it.
        most = variance_within((1 - _TRANSPORT_PART) * privacy.delta - certain)
        deviation = Skellam(most * users / honest).deviation_quantile(FALSE_ALARM / coordinates)
        modulus_bits = modulus_bits_for(2 * users * math.ceil(grid * span) + 2 * deviation + 1)
        sampling = _sampling_delta(users, honest, coordinates, most, privacy.epsilon)
        if sampling > _TRANSPORT_PART / 2 * privacy.delta:
            raise InfeasibleError(
                "delta",
                privacy.delta,
                "is smaller than what sampling tables round off",
                "choose a larger delta, or the method bits, whose noise is drawn exactly",
            )
        distance = (_TRANSPORT_PART * privacy.delta - 2 * sampling) / (1 + math.exp(privacy.epsilon)) / coordinates
        shares = robust_messages(honest, 1 << modulus_bits, distance)
        shown = coordinates * mixing_distance(honest, shares, 1 << modulus_bits)
        # The cut-off once more, which a ledger needs where there is a distance, too.
        spent = certain + coordinates * outside + 2 * sampling + delta_of_distance(math.exp(privacy.epsilon), shown)
        return cls(
            **request.common,
            dimension=dimension,
            radius=radius,
            rotation=rotation,
            grid=grid,
            variance=variance_within(privacy.delta - spent),
            shares=shares,
            modulus_bits=modulus_bits,
            largest_deviation=deviation,
            rounding_failure=failure,
            outside=outside,
        )

    @property
    def _splitting(self) -> Splitting:
        largest = self.users * math.ceil(self.reach / self.step) + self.largest_deviation
        return Splitting(self.shares, self.modulus_bits, -largest, largest)

    def _check_noise(self) -> None:
        if not 0 < self.variance < 1e13:
            raise ParameterError("variance", self.variance, "must lie between 0 and 1e13", "make the plan again")
        self._splitting.check(self.largest_deviation)

    @property
    def noise(self) -> dict[str, Any]:
        return {
            "law": "skellam",
            "grid": self.grid,
            "variance": self.variance,
            "share_of": self.honest_users,
            "shares": self.shares,
            "modulus_bits": self.modulus_bits,
            "largest_deviation": self.largest_deviation,
            "rotation": self.rotation,
            "rounding_failure": self.rounding_failure,
            "outside": self.outside,
        }

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
            grid=whole_number(noise, "grid"),
            variance=real_number(noise, "variance"),
            shares=whole_number(noise, "shares"),
            modulus_bits=whole_number(noise, "modulus_bits"),
            largest_deviation=whole_number(noise, "largest_deviation"),
            rotation=optional_whole_number(noise, "rotation"),
            rounding_failure=real_number(noise, "rounding_failure"),
            outside=real_number(noise, "outside"),
            **common,
        )

    def noise_law(self, users: int) -> Skellam:
        return _skellam(self.variance * users / self.honest_users)

    def log_moment(self, theta: float) -> float:
        variance = self.variance * self.users / self.honest_users
        # cosh - 1 without cancellation; beyond 300 the bound is useless anyway.
        return 2 * variance * math.sinh(min(theta, 300.0) / 2) ** 2

    @property
    def step(self) -> float:
        return self.radius / self.grid

    @property
    def messages_per_user_mean(self) -> float:
        return float(self.messages_per_user_max)

    @property
    def messages_per_user_max(self) -> int:
        return self.coordinates * self.shares

    @property
    def bits_per_message(self) -> int:
        return self.modulus_bits + self.label_bits

    @property
    def alphabet_size(self) -> int:
        return 1 << self.modulus_bits

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            *self._noise_terms(epsilon, honest),
            *self._splitting.transport_terms(honest, epsilon, self.coordinates),
            DeltaTerm(
                "sampling",
                _sampling_delta(self.users, self.honest_users, self.coordinates, self.variance, epsilon),
                "(1 + e^epsilon) times what the users' noise tables cut off and round",
            ),
        )

    @property
    def influence(self) -> None:
        return None

    @property
    def lying_client(self) -> str:
        return self._splitting.lying_client("every coordinate")

    @property
    def _origin(self) -> float:
        return 0.0

    def _scaled(self, block: Floats) -> Floats:
        # Floats may be longer than the radius by a hair, and a rotated coordinate larger than its reach.
        largest = self.reach / self.step
        scaled = np.multiply(block, 1 / self.step)
        return np.clip(scaled, -largest, largest, out=scaled)

    def _messages(self, rounded: Whole, bits: RandomBits) -> Payloads:
        noise = sample_skellam(Fraction(self.variance) / self.honest_users, rounded.size, bits=bits)
        return self._splitting.split(rounded + noise.reshape(rounded.shape), bits=bits)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self._splitting.tally(batch, malformed, self.coordinates)

    def _totals(self, tally: Tally) -> tuple[Whole, int]:
        return self._splitting.sums(tally, self.users * self.shares), 0

    def quieter(self, part: float) -> dict[str, Any]:
        return {"variance": part * self.variance}

    def _centre(self, steps: Whole) -> Floats:
        return steps.astype(np.float64)

    def _sample_noise(self, count: int, bits: RandomBits) -> Whole:
        return sample_skellam(Fraction(self.variance) * self.users / self.honest_users, count, bits=bits)

    def _checked_totals(self, totals: Whole) -> Whole:
        return self._splitting.decode(totals.astype(np.uint64) & self._splitting.mask)

    def _run_sums(self, payloads: Payloads) -> Whole:
        return self._splitting.centred(self._splitting.total(payloads))


@lru_cache(maxsize=32)
def _skellam(variance: float) -> Skellam:
    """Cached for its table of masses."""
    return Skellam(variance)


def _grid(users: int, honest: int, coordinates: int, failure: float, privacy: Privacy) -> int:
    """Fine enough that rounding costs little, coarse enough that a user's table of noise stays small."""
    deviation = gaussian_standard_deviation(privacy)
    grid = 1
    while _cost(rounded_difference(2.0 * grid, coordinates, failure), grid, users, deviation) > _ROUNDING_COST:
        finer = math.ceil(grid * 1.1)
        spread = 2 * finer * deviation
        too_long = 27 * spread > _LONGEST_TABLE * math.sqrt(2 * honest)
        if too_long or spread > _WIDEST_NOISE or 2 * users * finer > _LARGEST_SUM:
            break
        grid = finer
    return grid


def _cost(difference: RoundedDifference, grid: int, users: int, deviation: float) -> float:
    """How much longer rounding makes a difference, and how much it adds to the error."""
    return max(difference.length / (2 * grid) - 1, users / (8 * (2 * grid * deviation) ** 2))


def _sampling_delta(users: int, honest: int, coordinates: int, variance: float, epsilon: float) -> float:
    """Two draws a user and coordinate, each within the table's distance of its law."""
    half = Fraction(variance) / honest / 2
    parts = poisson_parts(half)
    draws = 2 * users * coordinates * parts
    return delta_of_distance(math.exp(epsilon), draws * poisson(half / parts).distance)
