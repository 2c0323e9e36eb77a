"""Which Gaussian pair dominates a vector sum, and the smallest noise with which it is private."""

import math
from collections.abc import Callable

from shuffledp.accounting.gaussian import GaussianPair, gaussian_standard_deviation
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.accounting.normal_scores import normal_scores
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.sums.noise import NEVER_MEET

_MOST_STEPS = 200


def gaussian_pair(law: IntegerLaw, length: float, largest_shift: int, outside: float) -> DominatingPair:
    """What dominates noise of this law in every coordinate against itself, shifted by a vector of this length.

    Args:
        law: of the noise in one coordinate.
        length: of the shift, in steps.
        largest_shift: in one coordinate.
        outside: the mass of the law that the window of its normal scores leaves out.
    """
    shift = length * normal_scores(law, largest_shift, outside).steepest
    if not math.isfinite(shift):
        return NEVER_MEET
    return GaussianPair(shift)


def smallest_variance(
    law: Callable[[float], IntegerLaw],
    length: float,
    largest_shift: int,
    outside: float,
    privacy: Privacy,
    *,
    step: float = 0.0,
) -> float:
    """A variance at which shifts of this length are as private as Gaussian noise of the target.

    The steepest normal score is all but 1/deviation, so scaling the variance by what is missing converges in
    a few steps, from below. `step` is the smallest change of variance that changes the law.
    """
    slope = 1 / (length * gaussian_standard_deviation(privacy)) * (1 - 1e-9)
    variance = slope**-2
    for _ in range(_MOST_STEPS):
        steepest = normal_scores(law(variance), largest_shift, outside).steepest
        if steepest <= slope:
            return variance
        variance = max(variance + step, variance * min(1.5, (steepest / slope) ** 2 * (1 + 1e-7)))
    raise InfeasibleError("noise", f"{variance:.3g}", "must stay finite", "choose a larger epsilon or delta")
