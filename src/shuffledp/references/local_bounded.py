"""The local model for sums of bounded numbers: each user answers for itself and nobody shuffles."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.privacy import Privacy
from shuffledp.references.local import LocalRandomizedResponse

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The piecewise mechanism: numbers in [-1, 1] become ones in [-reach, reach], most likely near themselves.

    Reference: Wang et al. 2019, Algorithm 2.

    >>> round(Piecewise(2.0).standard_deviation(1.0), 3)
    1.108
    """

    epsilon: float

    @property
    def width(self) -> float:
        """Of the likely interval; e^epsilon is the ratio of the densities in it and outside."""
        return 2 / math.expm1(self.epsilon / 2)

    @property
    def reach(self) -> float:
        """The largest answer."""
        return 1 + self.width

    def start(self, values: Floats) -> Floats:
        """Where the likely interval begins."""
        return values + self.width / 2 * (values - 1)

    def standard_deviation(self, value: float) -> float:
        """Of the answer, whose mean is the value; it is largest at -1 and 1: 1/(sqrt(3) sinh(epsilon/4))."""
        gain = math.expm1(self.epsilon / 2)
        return math.sqrt(value**2 / gain + (gain + 4) / (3 * gain**2))

    def sample(self, values: Floats, *, generator: np.random.Generator) -> Floats:
        """Answers to the values."""
        near = generator.random(values.size) < special.expit(self.epsilon / 2)
        start, place = self.start(values), generator.random(values.size)
        far = (self.reach + 1) * place - self.reach
        return np.where(near, start + self.width * place, far + self.width * (far > start))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBounded:
    """The better of one bit and of the piecewise mechanism for a sum of numbers between low and high.

    One bit: the number is rounded at random to an end of the range and sent by randomized response, which uses
    delta. Laplace noise never wins: its variance on [-1, 1], 8/epsilon^2, is above the piecewise mechanism's
    1/(3 sinh^2(epsilon/4)) <= 16/(3 epsilon^2).

    Reference: Duchi, Jordan, Wainwright 2018; Wang et al. 2019.

    >>> round(LocalBounded(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1).standard_error, 1)
    108.2
    """

    users: int
    privacy: Privacy
    low: float
    high: float

    def __post_init__(self) -> None:
        if self.users < 1:
            raise ParameterError("users", self.users, "must be >= 1", "count them")
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise ParameterError("high", self.high, f"must be finite and above low, {self.low}", "0 and 1 are common")

    @property
    def _errors(self) -> dict[Literal["one bit", "piecewise"], float]:
        """The worst standard errors of one user's answer."""
        half = (self.high - self.low) / 2
        return {
            # A bit of probability 1/2, which it has in the middle of the range.
            "one bit": half / (1 - 2 * self._response.lie_probability),
            "piecewise": half * Piecewise(self.privacy.epsilon).standard_deviation(1.0),
        }

    @property
    def _response(self) -> LocalRandomizedResponse:
        return LocalRandomizedResponse(users=self.users, privacy=self.privacy)

    @property
    def mechanism(self) -> Literal["one bit", "piecewise"]:
        """The one with the smaller error."""
        return min(self._errors, key=self._errors.__getitem__)

    @property
    def standard_error(self) -> float:
        """Of the unbiased estimate, for the worst values."""
        return self._errors[self.mechanism] * math.sqrt(self.users)

    def sample_estimate(self, values: ArrayLike, *, generator: np.random.Generator) -> Estimate:
        """Randomize every value and estimate their sum."""
        raw = np.asarray(values, dtype=np.float64)
        if raw.shape != (self.users,) or not np.isfinite(raw).all():
            raise DataError("values", f"the shape {raw.shape}", f"must be {self.users} finite numbers", "one a user")
        clipped = np.clip(raw, self.low, self.high)
        shares = (clipped - self.low) / (self.high - self.low)
        if self.mechanism == "one bit":
            bits = generator.random(self.users) < shares
            answered = self._response.sample_estimate(bits, generator=generator).value
        else:
            answers = Piecewise(self.privacy.epsilon).sample(2 * shares - 1, generator=generator)
            answered = (float(answers.sum()) + self.users) / 2
        error = self.standard_error
        return Estimate(
            value=self.low * self.users + (self.high - self.low) * answered,
            standard_error=error,
            # Chebyshev at 95%: the reference needs no sharper bound.
            bound=error * math.sqrt(20),
            confidence=0.95,
            clipped=int(np.count_nonzero(clipped != raw)),
            simulated=True,
        )
