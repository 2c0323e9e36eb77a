"""How far off a noisy sum of randomly rounded numbers can be: the noise's own tails, for the worst data.

A user rounds y to a whole number of steps, up with probability f, the part beyond the step below: it adds a
centred bit B - f. Every such bit is at most, in convex order, a uniform number in [-1, 1]: E(B - f - u)+ <=
(1 - u)^2 / 4 for every f and u >= 0, and that is the uniform number's. Beyond the middle the tail of symmetric unimodal
noise is convex, so what users' bits do to it is at most what so many uniform numbers do, whatever the data
(docs/theory/001-sums.md has the proof). A uniform number is spread to quarters of a step first, which is more again.
"""

import math

import numpy as np
from scipy import fft

from shuffledp.accounting.laws import Floats, IntegerLaw

# Parts of a step on which roundings are added up.
_PARTS = 4
# What the window of their sum leaves out: e^-this.
_DEPTH = 80.0
_MOST_NUMBERS = 1 << 21


def rounded_noise_bound(noise: IntegerLaw, users: int, failure: float, most: float) -> float:
    """Noise less its mean and so many users' roundings are together at most this but for `failure`, in steps.

    Args:
        noise: symmetric about its mean, with one mode; otherwise `most` is returned.
        users: how many numbers are rounded.
        failure: the probability.
        most: a bound that is known, which is returned where no smaller one is found.

    >>> from shuffledp.accounting.laws import Binomial
    >>> rounded_noise_bound(Binomial(9000, 0.5), 1000, 0.05, 148.5)
    100.0
    """
    reach = min(float(users), math.sqrt(2 * users * _DEPTH))
    longest = 2 * (math.ceil(reach) + 1) + math.ceil(most) + 4
    if not (noise.is_symmetric and noise.is_log_concave) or _PARTS * longest > _MOST_NUMBERS:
        return most
    half = _PARTS * (math.ceil(reach) + 1)
    roundings, error = _roundings(users, half)
    middle = math.floor(noise.mean)
    # Tails from the middle down, where they go on in a straight line, to beyond what is asked for.
    whole = np.arange(middle - half // _PARTS - 2.0, middle + math.ceil(most) + half // _PARTS + 3)
    tails = _convex_tails(noise, middle, whole)
    parts = np.interp(np.arange(whole[0] * _PARTS, whole[-1] * _PARTS + 1) / _PARTS, whole, tails)
    error = error * float(tails[0]) + 2 * noise.numerical_error

    def beyond(at: float) -> float:
        """E of the convex tail at a point less the roundings, which are symmetric."""
        place = round(_PARTS * (at - float(whole[0])))
        return float(parts[place - half : place + half + 1] @ roundings)

    def unlikely(halves: int) -> bool:
        a = halves / 2
        return beyond(noise.mean + a - 1) + beyond(noise.mean + a) + 2 * error <= failure

    # From one step on: what is looked up is then beyond the middle.
    low, high = 1, math.floor(2 * most)
    if high <= low or not unlikely(high):
        return most
    while high - low > 1:
        between = (low + high) // 2
        low, high = (low, between) if unlikely(between) else (between, high)
    return high / 2


def _convex_tails(noise: IntegerLaw, middle: int, whole: Floats) -> Floats:
    """P[Z > j] for j from the middle on; below, a straight line that is above it."""
    masses = np.exp(noise.log_pmf(whole))
    beyond = noise.sf(float(whole[-1]))
    tails = beyond + np.append(np.cumsum(masses[:0:-1])[::-1], 0.0)
    at = int(middle - whole[0])
    tails[:at] = tails[at] + masses[at] * np.arange(at, 0, -1)
    return np.asarray(tails)


def _roundings(users: int, half: int) -> tuple[Floats, float]:
    """The law of the sum of so many spread uniform numbers, at -half..half parts of a step; what is rounded in all."""
    size = fft.next_fast_len(2 * half + 1, real=True)
    angles = 2 * np.pi / size * np.arange(size // 2 + 1)
    # Every part of a step between -1 and 1 alike, and half as often at the ends.
    each = (1 + 2 * sum(np.cos(k * angles) for k in range(1, _PARTS)) + np.cos(_PARTS * angles)) / (2 * _PARTS)
    power = np.where(each < 0, (-1.0) ** (users % 2), 1.0) * np.abs(each) ** users
    law = np.maximum(fft.irfft(power, size), 0.0)
    tiny = 2.0**-52
    error = 16 * tiny * users * float(np.abs(power).sum()) + 100 * tiny * math.sqrt(size) + 2 * math.exp(-_DEPTH)
    return np.concatenate((law[-half:], law[: half + 1])), error
