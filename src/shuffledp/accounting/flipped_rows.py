"""One-hot rows among rows of zeros, every bit of all of them flipped: two columns move when one user's row does."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.laws import Binomial, Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, WINDOW_TAIL, Atoms, DominatingPair, bounded_exp
from shuffledp.errors import ParameterError


@dataclass(frozen=True, eq=False)
class FlippedRowsPair(DominatingPair):
    """(Z + Ber(1-f), Z' + Ber(f)) against (Z + Ber(f), Z' + Ber(1-f)) with Z, Z' ~ Bin(rows, f) independent.

    The likelihood ratio rises in the first column's sum and falls in the second's, so that for every first
    sum the curve takes one tail of the second. Swapping the columns swaps the two distributions: both directions
    are equal.

    >>> FlippedRowsPair(10_000, 0.00422).delta(1.0) < 1e-6 < FlippedRowsPair(10_000, 0.0042).delta(1.0)
    True
    """

    rows: int
    flip: float

    def __post_init__(self) -> None:
        if not 0 < self.flip < 0.5:
            raise ParameterError("flip", self.flip, "must lie in (0, 1/2)", "half of all bits flipped says nothing")

    @cached_property
    def _column(self) -> tuple[Floats, Floats, float]:
        """Masses of a column's sum with the user's one in it, and without; what is outside, of each."""
        law, f = Binomial(self.rows, self.flip), self.flip
        low, high = law.window(WINDOW_TAIL)
        k = np.arange(low, high + 2, dtype=np.float64)
        inside = (k <= high).astype(np.float64)
        here, before = np.exp(law.log_pmf(k)) * inside, np.exp(law.log_pmf(k - 1)) * (k > low)
        outside = law.cdf(low - 1) + law.sf(high)
        return f * here + (1 - f) * before, (1 - f) * here + f * before, outside

    def forward(self, epsilon: float) -> float:
        one, none, outside = self._column
        with np.errstate(divide="ignore"):
            ratio = np.log(one) - np.log(none)
        # Rounding must not upset the order that the search needs: the ratio rises with the sum.
        ratio = np.maximum.accumulate(ratio)
        # P > e^eps Q exactly if the second sum's ratio is below the first's less eps.
        ends = np.searchsorted(ratio, ratio - epsilon, side="left")
        upto_none, upto_one = (np.concatenate(([0.0], np.cumsum(each))) for each in (none, one))
        scaled = bounded_exp(epsilon) * none
        p, q = one * upto_none[ends], scaled * upto_one[ends]
        # Sums so near to the edge that rounding may have put them on the wrong side are off by their own rounding only.
        edge = np.searchsorted(ratio, ratio - epsilon + 10 * RELATIVE_ERROR, side="left")
        slack = 20 * RELATIVE_ERROR * (one * upto_none[edge] + scaled * upto_one[edge])
        return float(np.sum(np.maximum(p - q, 0.0) + slack)) + 2 * outside

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.forward(epsilon))

    def atoms(self) -> Atoms:
        one, none, outside = self._column
        log_one, log_none = np.log(one), np.log(none)
        log_p, log_q = np.add.outer(log_one, log_none).ravel(), np.add.outer(log_none, log_one).ravel()
        return Atoms(log_p, log_q, 2 * outside, 2 * outside)

    def describe(self) -> str:
        return (
            f"P = (Z + Ber(1-f), Z' + Ber(f)), Q = (Z + Ber(f), Z' + Ber(1-f)), where Z, Z' ~ "
            f"Binomial({self.rows:,}, f), f = {self.flip:.8g}"
        )
