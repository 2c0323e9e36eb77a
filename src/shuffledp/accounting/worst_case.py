"""Pairs for those of whom nothing more is known: a bare claim, and a pair met in either order."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, Atoms, DominatingPair
from shuffledp.privacy import Privacy


@dataclass(frozen=True, eq=False)
class ClaimPair(DominatingPair):
    """With probability delta everything is shown, else one bit by randomized response at epsilon.

    It dominates every (epsilon, delta)-private mechanism, both orders of neighbours included.

    Reference: Kairouz, Oh, Viswanath 2015, "The composition theorem for differential privacy", Thm 3.

    >>> pair = ClaimPair(Privacy(1, 1e-6))
    >>> pair.delta(1.0), pair.delta(2.0), round(pair.delta(0.0), 6)
    (1e-06, 1e-06, 0.462118)
    """

    claim: Privacy

    def forward(self, epsilon: float) -> float:
        delta, gap = self.claim.delta, epsilon - self.claim.epsilon
        if gap >= 0:
            return delta
        return delta + (1 - delta) * -math.expm1(gap) / (1 + math.exp(-self.claim.epsilon))

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def atoms(self) -> Atoms:
        ruin, rest = math.log(self.claim.delta), math.log1p(-self.claim.delta)
        lie = -math.log1p(math.exp(self.claim.epsilon))
        log_p = np.array([ruin, rest + lie + self.claim.epsilon, rest + lie, -np.inf])
        return Atoms(log_p, log_p[::-1].copy(), 0.0, 0.0)

    def describe(self) -> str:
        return f"any mechanism that is private for epsilon {self.claim.epsilon:g} and delta {self.claim.delta:g}"


@dataclass(frozen=True, eq=False)
class EitherOrder(DominatingPair):
    """The pair whose curve is the larger of both directions of another, at every epsilon.

    A person whose answers change from (0, 1) to (1, 0) is met by one pair forwards and by the next
    backwards, so composing each direction by itself could say too little. The larger of two curves,
    convex in e^epsilon, is again the curve of a pair (Zhu, Dong, Wang 2022, Prop. 9), and products of
    such pairs dominate whatever the orders. It is made from the outcomes likelier under P, of both
    directions: the concave hull of the two curves of (Q, P) of the likeliest outcomes. Its other half
    is the mirror image, what is left is equally likely under both.

    >>> from shuffledp.accounting.laws import Poisson
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> pair = ShiftPair(Poisson(30.0))
    >>> pair.forward(1.0) > pair.reverse(1.0)
    True
    >>> either = EitherOrder(pair).atoms()
    >>> either.hockey_stick(1.0) == either.reversed().hockey_stick(1.0) >= pair.forward(1.0)
    True
    """

    pair: DominatingPair

    @cached_property
    def _atoms(self) -> Atoms:
        given = self.pair.atoms()
        forward, reverse = _likelier(given), _likelier(given.reversed())
        vertices = _concave_hull(np.concatenate((forward, reverse)))
        q, p = np.diff(vertices, axis=0).T
        # Where the hull rises by no more than it goes along (up to less than masses are off), the other half begins.
        steep = p > q * (1 + RELATIVE_ERROR / 10)
        p, q = p[steep], q[steep]
        outside = max(given.p_outside, given.q_outside)
        level = 1 - float(p.sum()) - float(q.sum()) - outside
        both = [level] if level > 0 else []
        with np.errstate(divide="ignore"):
            log_p, log_q = np.log(np.concatenate((p, q, both))), np.log(np.concatenate((q, p, both)))
        return Atoms(log_p, log_q, outside, outside)

    def forward(self, epsilon: float) -> float:
        return self.pair.delta(epsilon)

    def reverse(self, epsilon: float) -> float:
        return self.pair.delta(epsilon)

    def atoms(self) -> Atoms:
        return self._atoms

    def describe(self) -> str:
        return f"{self.pair.describe()}, in either order"


def _likelier(atoms: Atoms) -> Floats:
    """Rows (Q, P) of the sets of outcomes with the largest ratios P/Q above 1, summed from the tail."""
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isneginf(atoms.log_p), -np.inf, atoms.log_p - atoms.log_q)
    order = np.argsort(-ratio, kind="stable")[: int(np.count_nonzero(ratio > 0))]
    return np.cumsum(np.exp(np.stack((atoms.log_q[order], atoms.log_p[order]), axis=1)), axis=0)


def _concave_hull(points: Floats) -> Floats:
    """The vertices from (0, 0) of the least concave curve above all points, which lie above the diagonal."""
    hull = [(0.0, 0.0)]
    for x, y in points[np.lexsort((points[:, 1], points[:, 0]))].tolist():
        while len(hull) > 1:
            (x0, y0), (x1, y1) = hull[-2:]
            if (y1 - y0) * (x - x0) > (y - y0) * (x1 - x0):
                break
            hull.pop()
        hull.append((x, y))
    return np.array(hull)
