"""Laws of differences X - X' of two independent variables of one law: symmetric noise of the integers."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from shuffledp.accounting.laws import Floats, IntegerLaw, Poisson, check_probability
from shuffledp.errors import ParameterError


class SymmetricDifference(IntegerLaw):
    """X - X' for independent X, X' of one law on 0, 1, 2, ...: masses by convolution of positive terms."""

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def is_symmetric(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    @cached_property
    @abstractmethod
    def _one_sided(self) -> Floats:
        """Masses of X at 0, 1, 2, ..., as far as one is above 1e-40."""

    @property
    def numerical_error(self) -> float:
        return 0.0 if self._is_direct else 1e-12

    @property
    def _is_direct(self) -> bool:
        return self._one_sided.size <= 1 << 14

    @cached_property
    def _masses(self) -> Floats:
        """Masses at 0, 1, 2, ...: convolved directly as long as that is fast."""
        one_sided = self._one_sided
        if self._is_direct:
            masses = np.correlate(one_sided, one_sided, mode="full")
        else:
            masses = np.maximum(scipy.signal.fftconvolve(one_sided, one_sided[::-1]), 0.0)
        return np.asarray(masses[one_sided.size - 1 :])

    @cached_property
    def _tails(self) -> Floats:
        """P[X >= k] for k = 0, 1, 2, ..."""
        return np.cumsum(self._masses[::-1])[::-1]

    def log_pmf(self, k: Floats) -> Floats:
        x, size = np.abs(k).astype(np.int64), self._masses.size
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.where(x < size, self._masses[np.minimum(x, size - 1)], 0.0)))

    def log_ratio(self, k: int) -> float:
        above, below = (float(mass) for mass in self.log_pmf(np.array([k, k - 1], dtype=np.float64)))
        if math.isinf(above) and math.isinf(below):
            return -math.inf if k > 0 else math.inf  # beyond the table: masses fall outwards
        return above - below

    def cdf(self, k: float) -> float:
        return self.sf(-math.floor(k) - 1)

    def sf(self, k: float) -> float:
        j = math.floor(k) + 1
        if j <= 0:
            return 1 - self.sf(-j)
        return float(self._tails[j]) if j < self._tails.size else 0.0


@dataclass(frozen=True)
class PolyaDifference(SymmetricDifference):
    """NB(shape, p) - NB(shape, p): what honest Polya shares add up to, shape 1 being discrete Laplace.

    Log-concave for shape >= 1 (a convolution of log-concave laws); for shape < 1, when users dropped
    out, it is not, and the whole curve must be summed.

    Attributes:
        shape: the part of the users whose shares are left, 1 being all of them.
        p: the ratio of one probability to the one before it.

    >>> round(PolyaDifference(1.0, 0.5).standard_deviation, 3)
    2.0
    """

    shape: float
    p: float

    def __post_init__(self) -> None:
        if not self.shape > 0:
            raise ParameterError("shape", self.shape, "must be > 0", "at least one user must be honest")
        check_probability(self.p)

    def __str__(self) -> str:
        return f"Polya difference(shape = {self.shape:.6g}, p = {self.p:.8g})"

    @property
    def variance(self) -> float:
        return 2 * self.shape * self.p / (1 - self.p) ** 2

    @property
    def is_log_concave(self) -> bool:
        # Tails made by a transform carry noise in which no ratio can be trusted: sum the whole curve.
        return self.shape >= 1 and self._is_direct

    @property
    def largest_log_ratio(self) -> float:
        if not self._is_direct:
            return math.inf
        # Log-concave: |log ratio| grows outwards, to -log p. Otherwise it is largest beside 0.
        return -math.log(self.p) if self.shape >= 1 else -self.log_ratio(1) + 3e-10

    @cached_property
    def _one_sided(self) -> Floats:
        return negative_binomial_masses(self.shape, self.p)


# From this variance on, Debye's expansion to its fourth term is good to 1e-13.
_LARGE_VARIANCE = 400.0
# Masses below e^-300 are left out of tables.
_LOG_NEGLIGIBLE = -300.0


@dataclass(frozen=True)
class Skellam(SymmetricDifference):
    """Poisson(variance/2) - Poisson(variance/2). Log-concave: a convolution of log-concave laws.

    P[k] = e^-v I_k(v); for a large variance v by Debye's expansion of the Bessel function, which
    holds for all orders at once.

    >>> round(Skellam(71.4).standard_deviation, 2)
    8.45
    """

    variance_in_all: float

    def __post_init__(self) -> None:
        if not 0 < self.variance_in_all < 1e13:
            raise ParameterError("variance", self.variance_in_all, "must lie between 0 and 1e13", "coarsen the grid")

    def __str__(self) -> str:
        return f"Skellam({self.variance_in_all:.8g})"

    @property
    def variance(self) -> float:
        return self.variance_in_all

    @property
    def is_log_concave(self) -> bool:
        return self._is_direct

    @property
    def _is_direct(self) -> bool:
        return True

    @cached_property
    def _one_sided(self) -> Floats:
        law = Poisson(self.variance_in_all / 2)
        _, end = law.window(1e-120)
        return np.exp(law.log_pmf(np.arange(end + 1, dtype=np.float64)))

    @cached_property
    def _masses(self) -> Floats:
        if self.variance_in_all < _LARGE_VARIANCE:
            one_sided = self._one_sided
            return np.asarray(np.correlate(one_sided, one_sided, mode="full")[one_sided.size - 1 :])
        end = math.ceil(self.standard_deviation)
        while float(_log_skellam(np.array(float(end)), self.variance_in_all)) > _LOG_NEGLIGIBLE:
            end += math.ceil(self.standard_deviation)
        return np.exp(_log_skellam(np.arange(end + 1, dtype=np.float64), self.variance_in_all))

    def log_pmf(self, k: Floats) -> Floats:
        if self.variance_in_all < _LARGE_VARIANCE:
            return super().log_pmf(k)
        return _log_skellam(np.abs(k), self.variance_in_all)


def _log_skellam(k: Floats, variance: float) -> Floats:
    """-v + log I_k(v) for k >= 0 by Debye's expansion in 1/sqrt(k^2 + v^2) (DLMF 10.41.3)."""
    s = np.hypot(k, variance)
    t = (k / s) ** 2
    first = (3 - 5 * t) / 24
    second = (81 + t * (-462 + t * 385)) / 1152
    third = (30375 + t * (-369603 + t * (765765 - t * 425425))) / 414720
    fourth = (4465125 + t * (-94121676 + t * (349922430 + t * (-446185740 + t * 185910725)))) / 39813120
    series = (first + (second + (third + fourth / s) / s) / s) / s
    # s - v without cancellation.
    exponent = k * k / (s + variance) - k * np.arcsinh(k / variance)
    return np.asarray(exponent - 0.5 * np.log(2 * math.pi * s) + np.log1p(series), dtype=np.float64)


def negative_binomial_size(shape: float, p: float) -> int:
    """How many masses `negative_binomial_masses` has."""
    length = 100 / -math.log(p)
    return int((100 + shape * math.log1p(length * (1 + shape))) / -math.log(p)) + 40


def negative_binomial_masses(shape: float, p: float) -> Floats:
    """Masses of NB(shape, p) at 0, 1, 2, ..., as far as p^k k^shape is above e^-92.

    In logarithms outwards from the mode, then divided by their sum: from 0 upwards, rounding errors would grow with the
    number of steps, and (1 - p)^shape, which a large shape makes smaller than any double, would be the unit.

    >>> [float(negative_binomial_masses(shape, 0.5).sum().round(12)) for shape in (0.5, 10_000)]
    [1.0, 1.0]
    """
    size = negative_binomial_size(shape, p)
    mode = max(0, int((shape - 1) * p / (1 - p)))
    k = np.arange(1, size, dtype=np.float64)
    log_ratios = np.log(p * (k - 1 + shape) / k)
    below = -np.cumsum(log_ratios[:mode][::-1])[::-1]
    masses = np.exp(np.concatenate((below, [0.0], np.cumsum(log_ratios[mode:]))))
    return np.asarray(masses / masses.sum())
