"""Laws of integer noise, as numbers an accountant can trust: masses, ratios, tails from both sides."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.errors import ParameterError

Floats = NDArray[np.float64]


class IntegerLaw(ABC):
    """A law on the integers. Tails come from sf and cdf, each computed by itself, never as 1 - other."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The expectation."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """The variance."""

    @property
    @abstractmethod
    def is_log_concave(self) -> bool:
        """Whether log-concavity is proved: then the curve of a shift is one tail in each direction."""

    @property
    def is_symmetric(self) -> bool:
        """Whether the law is its own mirror image: then both directions of a shift have one curve."""
        return False

    @property
    def largest_log_ratio(self) -> float:
        """The supremum of |log P[k]/P[k-1]|: a shift by 1 is pure epsilon-private for this epsilon."""
        return math.inf

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest and the largest value, which may be infinite."""

    @abstractmethod
    def log_pmf(self, k: Floats) -> Floats:
        """The logarithm of P[X = k]; -inf outside the support."""

    @abstractmethod
    def log_ratio(self, k: int) -> float:
        """Log P[k]/P[k-1] for k-1 and k in the support."""

    @abstractmethod
    def cdf(self, k: float) -> float:
        """P[X <= k]."""

    @abstractmethod
    def sf(self, k: float) -> float:
        """P[X > k]."""

    @property
    def numerical_error(self) -> float:
        """A bound on what the masses are off in all, where that is not relative to each of them."""
        return 0.0

    @property
    def standard_deviation(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)

    def window(self, tail: float) -> tuple[int, int]:
        """An interval with at most `tail` mass on each side of it."""
        low, high = self.support
        if tail == 0:
            return int(low), int(high)
        start = end = round(self.mean)
        step = 1 + int(self.standard_deviation)
        while start > low and self.cdf(start - 1) > tail:
            start -= step
            step += step // 2
        step = 1 + int(self.standard_deviation)
        while end < high and self.sf(end) > tail:
            end += step
            step += step // 2
        return int(max(start, low)), int(min(end, high))

    def deviation_quantile(self, probability: float) -> int:
        """The smallest whole a with P[|X - mean| > a] <= probability."""

        def outside(a: int) -> float:
            return self.sf(math.floor(self.mean + a)) + self.cdf(math.ceil(self.mean - a) - 1)

        # From a deviation on: near the mean of very wide laws tails take long to compute.
        low, high = -1, max(1, int(self.standard_deviation))
        while outside(high) > probability:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if outside(middle) > probability else (low, middle)
        return high


def stirling_error(x: Floats) -> Floats:
    """Log x! - log(sqrt(2 pi x) (x/e)^x), to full precision for every x >= 0; 0 counts as its limit."""
    large = np.maximum(x, 16.0)
    inverse = 1 / (large * large)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse * (1 / 1188))))) / large
    small = np.clip(x, 1.0, 16.0)
    direct = special.gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * math.log(2 * math.pi)
    return np.where(x >= 16, series, direct)


def _deviance(x: Floats, mean: float) -> Floats:
    """X log(x/mean) + mean - x, without cancellation near x = mean."""
    v = (x - mean) / (x + mean)
    near = np.abs(v) < 0.1
    v_near = np.where(near, v, 0.0)
    # log(x/mean) = 2 artanh(v), and 2 x v - (x - mean) = (x - mean) v: sum the rest of the series.
    total = (x - mean) * v_near
    power = 2 * x * v_near
    for j in range(1, 12):
        power = power * v_near * v_near
        total = total + power / (2 * j + 1)
    far = special.xlogy(x, np.where(x > 0, x, 1.0) / mean) + mean - x
    return np.where(near, total, far)


# Beyond this rate the library's series of an upper tail is cut short: at 3e7 it misses a seventh of it.
_LONG_SERIES = 1e5
# Temme's uniform expansion, in powers of eta: DLMF 8.12.10 and 8.12.11.
_TEMME = (
    (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600, 1 / 25515, -571 / 261273600),
    (-1 / 540, -1 / 288, 1 / 378, -77 / 77760),
)


def _far_incomplete_gamma(a: float, x: float) -> float:
    """P(a, x) for a large a and x well below it: e^-y^2 (erfcx(y)/2 - S/sqrt(2 pi a)) with y^2 = x - a + a log(a/x)."""
    squared = float(_deviance(np.asarray(float(a)), x))
    eta = -math.sqrt(2 * squared / a)
    series = sum(
        sum(each * eta**power for power, each in enumerate(row)) / a**order for order, row in enumerate(_TEMME)
    )
    inner = float(special.erfcx(math.sqrt(squared))) / 2 - series / math.sqrt(2 * math.pi * a)
    return math.exp(-squared) * inner


def check_probability(p: float) -> None:
    """Refuse what is not strictly between 0 and 1."""
    if not 0 < p < 1:
        raise ParameterError("p", p, "must lie strictly between 0 and 1", "pass a probability")


@dataclass(frozen=True)
class Binomial(IntegerLaw):
    """Bin(trials, p): the number of ones among independent bits. Log-concave: a sum of Bernoulli bits.

    Attributes:
        trials: how many bits there are.
        p: the probability of a one.

    >>> round(Binomial(80, 0.5).standard_deviation, 3)
    4.472
    """

    trials: int
    p: float

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ParameterError("trials", self.trials, "must be >= 1", "pass a count")
        check_probability(self.p)

    def __str__(self) -> str:
        return f"Binomial({self.trials:,}, {self.p:.8g})"

    @property
    def mean(self) -> float:
        return self.trials * self.p

    @property
    def variance(self) -> float:
        return self.trials * self.p * (1 - self.p)

    @property
    def is_symmetric(self) -> bool:
        return self.p == 0.5

    @property
    def is_log_concave(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return 0, self.trials

    def log_pmf(self, k: Floats) -> Floats:
        n = float(self.trials)
        inside = (k > 0) & (k < n)
        y = np.where(inside, k, 1.0)
        value = (
            stirling_error(np.asarray(n))
            - stirling_error(y)
            - stirling_error(n - y)
            - _deviance(y, n * self.p)
            - _deviance(n - y, n * (1 - self.p))
            + 0.5 * np.log(n / (2 * math.pi * y * np.where(inside, n - y, 1.0)))
        )
        value = np.where(k == 0, n * math.log1p(-self.p), np.where(k == n, n * math.log(self.p), value))
        return np.where((k >= 0) & (k <= n), value, -np.inf)

    def log_ratio(self, k: int) -> float:
        return math.log((self.trials - k + 1) / k) + math.log(self.p) - math.log1p(-self.p)

    def cdf(self, k: float) -> float:
        if k < 0 or k >= self.trials:
            return 0.0 if k < 0 else 1.0
        return float(special.betaincc(math.floor(k) + 1, self.trials - math.floor(k), self.p))

    def sf(self, k: float) -> float:
        if k < 0 or k >= self.trials:
            return 1.0 if k < 0 else 0.0
        j = math.floor(k)
        if 1 - (1 - self.p) == self.p:
            # Keeps its digits for very many trials, where the lower function loses some.
            return float(special.betaincc(self.trials - j, j + 1, 1 - self.p))
        return float(special.betainc(j + 1, self.trials - j, self.p))


@dataclass(frozen=True)
class Poisson(IntegerLaw):
    """Poisson: the limit of many rare bits. Log-concave: P[k]/P[k-1] = rate/k falls."""

    rate: float

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise ParameterError("rate", self.rate, "must be > 0", "pass a positive number")

    def __str__(self) -> str:
        return f"Poisson({self.rate:.8g})"

    @property
    def mean(self) -> float:
        return self.rate

    @property
    def variance(self) -> float:
        return self.rate

    @property
    def is_log_concave(self) -> bool:
        return True

    @property
    def support(self) -> tuple[float, float]:
        return 0, math.inf

    def log_pmf(self, k: Floats) -> Floats:
        y = np.maximum(k, 1.0)
        value = -stirling_error(y) - _deviance(y, self.rate) - 0.5 * np.log(2 * math.pi * y)
        return np.where(k > 0, value, np.where(k == 0, -self.rate, -np.inf))

    def log_ratio(self, k: int) -> float:
        return math.log(self.rate / k)

    def cdf(self, k: float) -> float:
        return 0.0 if k < 0 else float(special.gammaincc(math.floor(k) + 1, self.rate))

    def sf(self, k: float) -> float:
        if k < 0:
            return 1.0
        above = math.floor(k) + 1
        if self.rate > _LONG_SERIES and above - self.rate > 4 * math.sqrt(above):
            return _far_incomplete_gamma(above, self.rate)
        return float(special.gammainc(above, self.rate))


@dataclass(frozen=True)
class DiscreteLaplace(IntegerLaw):
    """P[k] proportional to p^|k|. Log-concave: -|k| is concave. A shift by 1 costs exactly -log p.

    >>> round(DiscreteLaplace(math.exp(-1)).standard_deviation, 3)
    1.357
    """

    p: float

    def __post_init__(self) -> None:
        check_probability(self.p)

    def __str__(self) -> str:
        return f"DiscreteLaplace(p = {self.p:.8g})"

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def variance(self) -> float:
        return 2 * self.p / (1 - self.p) ** 2

    @property
    def is_symmetric(self) -> bool:
        return True

    @property
    def is_log_concave(self) -> bool:
        return True

    @property
    def largest_log_ratio(self) -> float:
        return -math.log(self.p)

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def log_pmf(self, k: Floats) -> Floats:
        return np.asarray(np.abs(k) * math.log(self.p) + math.log1p(-self.p) - math.log1p(self.p))

    def log_ratio(self, k: int) -> float:
        return math.log(self.p) if k >= 1 else -math.log(self.p)

    def cdf(self, k: float) -> float:
        return self.sf(-math.floor(k) - 1)

    def sf(self, k: float) -> float:
        j = math.floor(k)
        if j >= 0:
            return float(self.p ** (j + 1) / (1 + self.p))
        return 1 - float(self.p**-j / (1 + self.p))
