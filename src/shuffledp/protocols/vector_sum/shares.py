"""Vector sum by shares: split-and-mix of every coordinate plus a share of Skellam noise.

Reference: protocols of Balle, Bell, Gascon, Nissim 2020 (shares) and Agarwal, Kairouz, Liu 2021 (Skellam
noise), accounted for by normal scores instead of Renyi divergences.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.accounting.mixing import mixing_distance, robust_messages
from shuffledp.accounting.rounding import RoundedDifference, rounded_difference
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.fields import noise, only_exact
from shuffledp.protocols.request import Request
from shuffledp.protocols.splitting import FALSE_ALARM, modulus_bits_for
from shuffledp.protocols.sums.noise import SkellamNoise
from shuffledp.protocols.sums.plan import SharesSum
from shuffledp.protocols.vector_sum.base import Scale, VectorSumPlan
from shuffledp.protocols.vector_sum.calibration import smallest_variance

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
class VectorShares(SharesSum, VectorSumPlan):
    """Each user adds its part of Skellam noise to each rounded coordinate and sends that in random shares.

    The adversary sees, up to a stated distance, each coordinate's sum modulo 2^modulus_bits: the rounded sum
    plus Skellam noise, which is all but Gaussian. One client that lies, or one lost share, voids the batch.

    >>> plan = VectorShares.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=10, radius=1)
    >>> round(plan.standard_error, 2), plan.shares
    (8.48, 15)
    """

    method: ClassVar[str] = "shares"

    law: ClassVar[str] = "skellam"
    moved: ClassVar[str] = "every coordinate"
    also_saved: ClassVar[tuple[str, ...]] = (
        "variance",
        *SharesSum.also_saved,
        "rotation",
        "rounding_failure",
        "outside",
    )

    variance: float = noise("(0, 10000000000000)")
    shares: int = noise("[1, inf)")
    modulus_bits: int = noise("[1, inf)")
    largest_deviation: int = noise("[0, inf)")

    @classmethod
    def for_request(cls, request: Request, *, dimension: int, radius: float, rotation: int | None = None) -> Self:
        """The honest users' noise alone hides a vector; the shares mix them to within a part of delta."""
        users, privacy = request.users, request.privacy
        only_exact(request.constants)
        coordinates, span, fields = cls.shape_of(request, dimension, radius, rotation)
        failure, outside = fields["rounding_failure"], fields["outside"]
        honest = request.honest
        grid = _grid(users, honest, coordinates, failure, privacy)
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
        sampling = SkellamNoise(most).sampling_delta(users, honest, coordinates, privacy.epsilon)
        if sampling > _TRANSPORT_PART / 2 * privacy.delta:
            raise InfeasibleError(
                "delta",
                privacy.delta,
                "is smaller than what sampling tables round off",
                "choose a larger delta, or the method bits, whose noise is drawn exactly",
            )
        # All coordinates together show less than this in each adds up to: that is left for dropouts.
        distance = (_TRANSPORT_PART * privacy.delta - 2 * sampling) / (1 + math.exp(privacy.epsilon)) / coordinates
        shares = robust_messages(honest, 1 << modulus_bits, distance)
        shown = coordinates * mixing_distance(honest, shares, 1 << modulus_bits)
        # The cut-off once more, which a ledger needs where there is a distance, too.
        spent = certain + coordinates * outside + 2 * sampling + delta_of_distance(math.exp(privacy.epsilon), shown)
        return cls(
            **fields,
            grid=grid,
            variance=variance_within(privacy.delta - spent),
            shares=shares,
            modulus_bits=modulus_bits,
            largest_deviation=deviation,
        )

    @property
    def batch_noise(self) -> SkellamNoise:
        return SkellamNoise(self.variance)

    @property
    def _reached(self) -> tuple[int, int]:
        largest = math.ceil(self.scale.span)
        return -largest, largest

    def log_moment(self, theta: float) -> float:
        variance = self.variance * self.users / self.honest_users
        # cosh - 1 without cancellation; beyond 300 the bound is useless anyway.
        return 2 * variance * math.sinh(min(theta, 300.0) / 2) ** 2

    @property
    def scale(self) -> Scale:
        step = self.radius / self.grid
        return Scale(step, 0.0, self.reach / step)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"variance": part * self.variance}


def _grid(users: int, honest: int, coordinates: int, failure: float, privacy: Privacy) -> int:
    """Fine enough that rounding costs little, coarse enough that a user's table of noise stays small."""
    deviation = gaussian_standard_deviation(privacy)
    if 2 * deviation > _WIDEST_NOISE:
        problem = f"needs noise of more than {_WIDEST_NOISE:.0e} steps of the coarsest grid, too wide to account for"
        raise InfeasibleError(
            "epsilon", privacy.epsilon, problem, "choose a larger epsilon or delta, or the method bits"
        )
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
