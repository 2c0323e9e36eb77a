"""How large a symmetric Gaussian matrix is: the exact law of its largest absolute eigenvalue.

Let N be symmetric with variance 1 on and 1/2 off the diagonal, which is Gaussian noise of deviation 1 in every
coordinate of a joint vector. Its eigenvalues have the density c prod |l_i - l_j| exp(-sum l^2 / 2), so by de Bruijn's
formula P[all eigenvalues lie in [-x, x]] is the ratio of two Pfaffians, Pf A(x) / Pf A(oo), with

    A_ij(x) = integral over -x < u < v < x of f_i(u) f_j(v) - f_j(u) f_i(v)

for any functions f_i that span the polynomials of degree below the dimension times exp(-u^2 / 2); if the dimension is
odd, one more row holds the integrals of the f_i. Hermite functions keep A well conditioned, Gauss-Legendre nodes make
the integrals exact to rounding, and the tail is computed from A(oo) - A(x), so that it keeps its digits.

Reference: de Bruijn 1955; Mehta, Random Matrices, section 5.
"""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy import optimize, special

from shuffledp.errors import ParameterError

Floats = NDArray[np.float64]

# Beyond the edge of the spectrum by so much, nothing is left in doubles.
_BEYOND = 10.0
# Rounding moves a tail by less than this times the dimension (2.2e-13 was the most seen, at 200). That much of the
# failure is left for it, and of failures below a thousand times as much the proved bound is taken.
_ROUNDING = 2e-15


def _hermite_functions(points: Floats, count: int) -> Floats:
    """The first so many orthonormal Hermite functions, a row each."""
    rows = np.zeros((count, points.size))
    rows[0] = math.pi**-0.25 * np.exp(-(points**2) / 2)
    if count > 1:
        rows[1] = math.sqrt(2) * points * rows[0]
    for degree in range(2, count):
        rows[degree] = math.sqrt(2 / degree) * points * rows[degree - 1] - math.sqrt(1 - 1 / degree) * rows[degree - 2]
    return rows


@lru_cache(maxsize=8)
def _rule(count: int) -> tuple[Floats, Floats, Floats]:
    """Gauss-Legendre nodes and weights on [-1, 1], and the matrix that integrates from -1 to every node."""
    nodes, weights = legendre.leggauss(count)
    degrees = np.arange(count)
    to_coefficients = legendre.legvander(nodes, count - 1).T * weights * ((2 * degrees + 1) / 2)[:, np.newaxis]
    integrals = legendre.legval(nodes, legendre.legint(np.eye(count), lbnd=-1, axis=0))
    return nodes, weights, np.asarray(integrals.T @ to_coefficients)


def _pairings(dimension: int, reach: float) -> Floats:
    """A(reach)."""
    nodes, weights, from_left = _rule(80 + 6 * dimension)
    values = _hermite_functions(reach * nodes, dimension)
    one_way = reach**2 * ((values @ from_left.T) * weights) @ values.T
    pairings = one_way - one_way.T
    if dimension % 2 == 0:
        return np.asarray(pairings)
    alone = reach * (values @ weights)
    return np.block([[pairings, alone[:, np.newaxis]], [-alone[np.newaxis, :], np.zeros((1, 1))]])


@lru_cache(maxsize=64)
def _everywhere(dimension: int) -> Floats:
    return _pairings(dimension, math.sqrt(2 * dimension) + _BEYOND)


def operator_norm_tail(dimension: int, size: float) -> float:
    """The probability that the noise matrix has an eigenvalue beyond `size`, on either side.

    >>> round(operator_norm_tail(1, 1.959964), 6)
    0.05
    """
    if size >= math.sqrt(2 * dimension) + _BEYOND:
        return 0.0
    whole = _everywhere(dimension)
    missing = np.linalg.solve(whole, whole - _pairings(dimension, size))
    sign, log_left = np.linalg.slogdet(np.eye(len(whole)) - missing)
    return float(-math.expm1(log_left / 2)) if sign > 0 else 1.0


@lru_cache(maxsize=4096)
def operator_norm_quantile(dimension: int, failure: float) -> float:
    """What the noise matrix's largest absolute eigenvalue passes with this probability.

    Args:
        dimension: how many rows the symmetric noise matrix has.
        failure: the probability with which the eigenvalue may pass the quantile.

    Returns:
        The quantile for noise of deviation 1, rounded up.

    Raises:
        ParameterError: a probability outside (0, 1).

    >>> round(operator_norm_quantile(5, 0.01), 2), round(proved_operator_norm(5, 0.01), 2)
    (4.24, 5.58)
    """
    if not 0 < failure < 1:
        raise ParameterError("failure", failure, "must lie strictly between 0 and 1", "0.05 is a common choice")
    rounding = _ROUNDING * dimension
    if failure < 1000 * rounding:
        return proved_operator_norm(dimension, failure)
    low, high = 1e-3, math.sqrt(2 * dimension) + _BEYOND
    found = optimize.brentq(
        lambda size: operator_norm_tail(dimension, size) - (failure - rounding), low, high, xtol=1e-10
    )
    return float(found) * (1 + 1e-9)


def proved_operator_norm(dimension: int, failure: float) -> float:
    """A bound that needs no integrals: sqrt(2) E|g| + z, by comparison with a Gaussian vector g and isoperimetry.

    Proof: docs/theory/002-linear-bandits.md.

    Args:
        dimension: how many rows the symmetric noise matrix has.
        failure: the probability with which the eigenvalue may pass the bound.

    Returns:
        The bound for noise of deviation 1.

    >>> round(proved_operator_norm(5, 0.01), 2)
    5.58
    """
    mean = math.sqrt(2) * math.exp(special.gammaln((dimension + 1) / 2) - special.gammaln(dimension / 2))
    return math.sqrt(2) * mean - float(special.ndtri(failure / 2))


def vector_norm_quantile(dimension: int, failure: float) -> float:
    """What the length of a standard Gaussian vector passes with this probability."""
    return float(scipy.stats.chi.isf(failure, dimension))
