"""Correlated noise: the pair of plus and minus ones that flood each other."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from shuffledp.accounting.differences import negative_binomial_masses
from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import Atoms, DominatingPair


@dataclass(frozen=True, eq=False)
class CorrelatedPair(DominatingPair):
    """(Z1 + Z3, Z2 + Z3) against (1 + Z1 + Z3, Z2 + Z3): numbers of plus ones and of minus ones.

    Z1, Z2 ~ NB(h, q) and Z3 ~ NB(h r, p), with h the part of the planned users that is honest. For
    h = 1, P(a, b) = q^|a-b| T[min(a, b)] with T[b] = q^2 T[b-1] + (1-q)^2 P[Z3 = b]: where a > b the
    ratio P/Q is exactly q, where a <= b it depends on a alone, so that one sum over a is the curve.
    Otherwise the whole two-dimensional law is summed, diagonal by diagonal.

    Reference: Ghazi, Kumar, Manurangsi, Pagh 2020, "Private counting from anonymous messages".
    """

    ratio: float
    flood_shape: float
    flood_ratio: float
    honest: float = 1.0

    @cached_property
    def _flood(self) -> Floats:
        return negative_binomial_masses(self.flood_shape * self.honest, self.flood_ratio)

    @cached_property
    def _atoms(self) -> Atoms:
        return self._diagonal_atoms() if self.honest == 1 else self._plane_atoms()

    def _diagonal_atoms(self) -> Atoms:
        q = self.ratio
        # Beyond the flood's table T only decays by q^2 a step: go on until it has.
        flood = np.concatenate((self._flood, np.zeros(int(50 / -math.log(q)) + 1)))
        t = scipy.signal.lfilter([(1 - q) ** 2], [1.0, -q * q], flood)
        p_low, q_low = t / (1 - q), q * np.concatenate(([0.0], t[:-1])) / (1 - q)
        # Discrete Laplace: P[a <= b] = 1/(1+q), P[a > b] = q/(1+q), and Q is q^-1 P there.
        with np.errstate(divide="ignore"):
            log_p = np.log(np.concatenate((p_low, [q / (1 + q)])))
            log_q = np.log(np.concatenate((q_low, [1 / (1 + q)])))
        cut = 1e-35
        return Atoms(log_p, log_q, cut, cut)

    def _plane_atoms(self) -> Atoms:
        centre = negative_binomial_masses(self.honest, self.ratio)
        size = centre.size
        columns = []
        for difference in range(-size + 1, size):
            # Masses of (Z1, Z2) = (j + difference, j), convolved with the flood that moves both.
            low = max(0, -difference)
            high = min(size, size - difference)
            diagonal = np.zeros(size)
            diagonal[low:high] = centre[low + difference : high + difference] * centre[low:high]
            columns.append(np.convolve(diagonal, self._flood))
        plane = np.stack(columns)  # rows: a - b; columns: b
        shifted = np.concatenate((np.zeros((1, plane.shape[1])), plane))
        kept = np.concatenate((plane, np.zeros((1, plane.shape[1]))))
        outside = max(0.0, 1 - float(plane.sum())) + 1e-13
        with np.errstate(divide="ignore"):
            return Atoms(np.log(kept).ravel(), np.log(shifted).ravel(), outside, outside)

    def atoms(self) -> Atoms:
        return self._atoms

    def describe(self) -> str:
        return (
            f"P = (Z1 + Z3, Z2 + Z3), Q = (1 + Z1 + Z3, Z2 + Z3), where Z1, Z2 ~ NB({self.honest:.6g}, "
            f"{self.ratio:.8g}), Z3 ~ NB({self.flood_shape * self.honest:.6g}, {self.flood_ratio:.8g})"
        )
