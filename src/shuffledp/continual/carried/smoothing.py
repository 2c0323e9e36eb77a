"""How far the law of whole carried noise is from a rounded Gaussian mechanism's, and what that adds to delta."""

import math

from shuffledp.accounting.smoothing import smoothing_error
from shuffledp.continual.carried.weights import CarriedWeights

# A person's own noise has at least this variance: a sum of such noises is what it should be but for 1e-30.
LEAST_OWN_VARIANCE = 16.0


def smoothing_part(
    weights: CarriedWeights, *, users: int, suppliers: int, coordinates: int, part: float = 1.0
) -> float:
    """By which part the law of all running sums is off from a rounded Gaussian mechanism's, at most.

    Args:
        weights: of all slots.
        users: who draw noise.
        suppliers: by how many slots' users each noise is supplied.
        coordinates: numbers in a running sum.
        part: of the noise that the plan counts on, what is drawn.
    """
    noises = weights.windows - 1
    draws = users * noises * suppliers * coordinates
    running = weights.slots * noises * coordinates
    # Sums of two noises of a person's variance at least; then everything but N_1 is summed out; then rounding.
    # Each draw is normalised, and added to the others.
    own = smoothing_error(math.sqrt(LEAST_OWN_VARIANCE / 2), 2 * draws)
    least = [part * float(each) for each in weights.noise_limits[0]]
    steepest = max((1 / each for each in least[1:]), default=0.0) + (4.0**noises / 3) / least[0]
    return own + smoothing_error(1 / math.sqrt(steepest), running) + smoothing_error(2.0, running)


def smoothing_delta(factor: float, part: float) -> float:
    """What a law that is off by this part adds to delta: P <= (1 + part) P~, and Q~ <= Q / (1 - part)."""
    return 2 * part * (1 + 2 * factor)
