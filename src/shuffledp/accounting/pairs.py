"""Dominating pairs: the two distributions an adversary must tell apart, and their hockey-stick curve.

H_eps(P||Q) = sum over outcomes of (P - e^eps Q)_+ . A mechanism whose views on any two neighbours
are no easier to tell apart than (P, Q) is (eps, delta)-private for delta = max(H(P||Q), H(Q||P)).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.laws import Floats, IntegerLaw
from shuffledp.errors import ParameterError

# Tails and masses are good to 1e-11 (tests hold them against 40-digit arithmetic); upper bounds allow
# for ten times more.
RELATIVE_ERROR = 1e-10
# Mass that a finite window may leave out; it is added to every delta.
WINDOW_TAIL = 1e-30


@dataclass(frozen=True)
class Atoms:
    """Log masses of P and Q on common outcomes, and bounds on what lies outside them."""

    log_p: Floats
    log_q: Floats
    p_outside: float
    q_outside: float
    absolute_error: float = 0.0  # of all masses of P, and of Q, together

    def reversed(self) -> "Atoms":
        """The atoms of the pair with P and Q swapped."""
        return Atoms(self.log_q, self.log_p, self.q_outside, self.p_outside, self.absolute_error)

    def hockey_stick(self, epsilon: float) -> float:
        """An upper bound on the sum of (P - e^eps Q)_+ though each mass may be off by RELATIVE_ERROR.

        (1+r) P - e^eps (1-r) Q is at most (1+r) (P - e^(eps-3r) Q); every term summed is >= 0.
        """
        with np.errstate(invalid="ignore"):
            gap = np.where(np.isneginf(self.log_p), 1.0, epsilon - 3 * RELATIVE_ERROR + self.log_q - self.log_p)
        inside = gap < 0
        total = float(np.sum(np.exp(self.log_p[inside]) * -np.expm1(gap[inside])))
        return total * (1 + RELATIVE_ERROR) + self.p_outside + (1 + bounded_exp(epsilon)) * self.absolute_error


def bounded_exp(epsilon: float) -> float:
    """e^epsilon, or e^700 beyond: delta falls in epsilon, so a smaller epsilon is still a bound."""
    return math.exp(min(epsilon, 700.0))


class DominatingPair(ABC):
    """Two distributions P and Q that are at least as easy to tell apart as any neighbours' views."""

    @abstractmethod
    def atoms(self) -> Atoms:
        """The masses of both."""

    @abstractmethod
    def describe(self) -> str:
        """P and Q in words."""

    def forward(self, epsilon: float) -> float:
        """An upper bound on H(P||Q)."""
        return self.atoms().hockey_stick(epsilon)

    def reverse(self, epsilon: float) -> float:
        """An upper bound on H(Q||P)."""
        return self.atoms().reversed().hockey_stick(epsilon)

    def delta(self, epsilon: float) -> float:
        """The smallest delta with (epsilon, delta)-privacy, rounded up: the worse of the two directions."""
        return min(1.0, max(self.forward(epsilon), self.reverse(epsilon)))


@dataclass(frozen=True, eq=False)
class FinitePair(DominatingPair):
    """A pair given by its masses.

    >>> round(FinitePair(p=[0.5, 0.5, 0.0], q=[0.5, 0.25, 0.25]).delta(0.0), 6)
    0.25
    """

    p: ArrayLike
    q: ArrayLike
    words: str = "P and Q given by their masses"

    @cached_property
    def _atoms(self) -> Atoms:
        p, q = np.asarray(self.p, dtype=np.float64), np.asarray(self.q, dtype=np.float64)
        if p.shape != q.shape or (p < 0).any() or (q < 0).any() or max(p.sum(), q.sum()) > 1 + 1e-9:
            raise ParameterError("p, q", f"{p.shape}, {q.shape}", "must be masses of equal shape", "check both")
        with np.errstate(divide="ignore"):
            # Rounding in the sums is not mass outside.
            return Atoms(np.log(p), np.log(q), *(max(0.0, 1 - float(m.sum()) - 1e-14 * m.size) for m in (p, q)))

    def atoms(self) -> Atoms:
        return self._atoms

    def describe(self) -> str:
        return self.words


@dataclass(frozen=True, eq=False)
class ShiftPair(DominatingPair):
    """(noise, noise + shift): what is left of a sum once everybody else's value is known.

    For log-concave noise P/Q falls along the integers, so {P > e^eps Q} is a lower tail and
    {Q > e^eps P} an upper one: two calls of a tail function each, and the curve grows with the
    shift, so that the largest shift is the worst. Otherwise the whole curve is summed.

    Attributes:
        noise: the law of the noise, on whole numbers.
        shift: how far apart the two neighbours' sums are.

    >>> from shuffledp.accounting.laws import Binomial
    >>> ShiftPair(Binomial(80, 0.5)).delta(1.0) <= 1e-6 < ShiftPair(Binomial(79, 0.5)).delta(1.0)
    True
    """

    noise: IntegerLaw
    shift: int = 1

    def __post_init__(self) -> None:
        if self.shift < 1:
            raise ParameterError("shift", self.shift, "must be >= 1", "swap the two distributions instead")

    def forward(self, epsilon: float) -> float:
        if epsilon >= self.pure_epsilon:
            return 0.0
        if not self.noise.is_log_concave:
            return super().forward(epsilon)
        tails = ((self.noise.cdf(last), self.noise.cdf(last - self.shift)) for last in self._lasts_above(epsilon))
        return max(_difference(p, q, epsilon) for p, q in tails) + self._unsearched

    def reverse(self, epsilon: float) -> float:
        if epsilon >= self.pure_epsilon:
            return 0.0
        if not self.noise.is_log_concave:
            return super().reverse(epsilon)
        # {Q > e^eps P} is everything after the last k with P/Q > e^-eps.
        tails = ((self.noise.sf(last - self.shift), self.noise.sf(last)) for last in self._lasts_above(-epsilon))
        return max(_difference(q, p, epsilon) for q, p in tails) + self._unsearched

    @property
    def pure_epsilon(self) -> float:
        """The epsilon at which delta is 0; infinite for most noise."""
        return self.shift * self.noise.largest_log_ratio * (1 + 1e-14)

    def _log_ratio(self, k: int) -> float:
        """Log P(k)/Q(k), falling in k; +-inf where one of them vanishes."""
        low, high = self.noise.support
        if k - self.shift < low:
            return math.inf
        if k > high:
            return -math.inf
        if self.shift == 1:
            return self.noise.log_ratio(k)
        here, before = (float(mass) for mass in self.noise.log_pmf(np.array([k, k - self.shift], dtype=np.float64)))
        if math.isinf(here) and math.isinf(before):
            return -math.inf if k > self.noise.mean else math.inf  # beyond a table: masses fall outwards
        return here - before

    def _lasts_above(self, threshold: float) -> set[int]:
        """Where to cut: a rounding error in the ratio must not skip a plateau, so both sides of it count."""
        last = self._last_above(threshold - 1e-12)
        # Nearly always there is no plateau here.
        return {last} if self._log_ratio(last) > threshold + 1e-12 else {last, self._last_above(threshold + 1e-12)}

    def _last_above(self, threshold: float) -> int:
        """The largest k with log P(k)/Q(k) > threshold.

        The whole support is searched if it is finite, else a window of all but WINDOW_TAIL of the
        mass, which is added.
        """
        start, end = self._search_window
        start, end = start - 1, end + self.shift + 1
        while end - start > 1:
            middle = (start + end) // 2
            start, end = (middle, end) if self._log_ratio(middle) > threshold else (start, middle)
        return start

    @cached_property
    def _search_window(self) -> tuple[int, int]:
        return self.noise.window(WINDOW_TAIL if self._unsearched else 0.0)

    @cached_property
    def _unsearched(self) -> float:
        return 0.0 if all(math.isfinite(end) for end in self.noise.support) else WINDOW_TAIL

    @cached_property
    def _atoms(self) -> Atoms:
        start, end = self.noise.window(WINDOW_TAIL)
        k = np.arange(start, end + self.shift + 1, dtype=np.float64)
        outside = self.noise.cdf(start - 1) + self.noise.sf(end)
        error = self.noise.numerical_error
        return Atoms(self.noise.log_pmf(k), self.noise.log_pmf(k - self.shift), outside, outside, error)

    def atoms(self) -> Atoms:
        return self._atoms

    def describe(self) -> str:
        return f"P = Z, Q = Z + {self.shift}, where Z ~ {self.noise}"


def _difference(p: float, q: float, epsilon: float) -> float:
    """(P - e^eps Q)_+ rounded up by what the two tails may be wrong."""
    scaled = bounded_exp(epsilon) * q
    return min(max(0.0, p - scaled) + RELATIVE_ERROR * (p + scaled), p * (1 + RELATIVE_ERROR))
