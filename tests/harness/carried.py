"""Carried noise by explicit matrices: written from the definitions, with nothing of the code that is tested."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.carried.weights import CarriedWeights

Matrix = NDArray[np.float64]


def later(slots: int) -> Matrix:
    """q: one slot later."""
    return np.eye(slots, k=-1)


def difference(slots: int) -> Matrix:
    """D = 1 - q."""
    return np.eye(slots) - later(slots)


def slot_weights(given: CarriedWeights) -> list[int]:
    """Whole numbers on lines between knots, rounded down, by exact division."""
    found = [given.weights[0]]
    for left, right, low, high in zip(
        given.knots, given.knots[1:], given.weights, given.weights[1:], strict=False
    ):
        found += [low + ((high - low) * (slot - left)) // (right - left) for slot in range(left + 1, right + 1)]
    return found


def variances(given: CarriedWeights) -> Matrix:
    """Of the filter's noise in each slot."""
    whole = given.slots + given.offset
    return np.array(
        [given.variance * math.exp(2 * given.growth * math.log(whole / (whole - t))) for t in range(given.slots)]
    )


def gain(given: CarriedWeights) -> Matrix:
    """kappa(D), of running sums."""
    found, one = np.eye(given.slots), np.eye(given.slots)
    for p, g in given.gains:
        found = found @ (p * one + g * difference(given.slots))
    return found


def signal(given: CarriedWeights) -> Matrix:
    """What a step of each slot adds to every running sum."""
    sums = np.tril(np.ones((given.slots, given.slots)))
    return gain(given) @ sums * np.array(slot_weights(given), dtype=np.float64)


def target(given: CarriedWeights) -> Matrix:
    """The covariance of the filter's noise in all running sums."""
    pattern = np.eye(given.slots)
    for pole in given.poles:
        pattern = pattern @ (np.eye(given.slots) - pole * later(given.slots))
    return pattern * variances(given) @ pattern.T


def covariance(rows: Any, slots: int) -> Matrix:
    """Of sum_i D^(i-1) N_i, N_i having the variances of row i - 1."""
    found, pattern = np.zeros((slots, slots)), np.eye(slots)
    for row in np.asarray(rows):
        found += pattern * row @ pattern.T
        pattern = pattern @ difference(slots)
    return found


def shifts(given: CarriedWeights, noise: Matrix) -> Matrix:
    """By how many deviations of this noise a step of each slot moves all running sums."""
    moved = signal(given)
    return np.asarray(np.sqrt(np.einsum("st,st->t", moved, np.linalg.solve(noise, moved))))


def errors(given: CarriedWeights) -> Matrix:
    """What noise in running sums adds to the estimates of the first 1, 2, ... slots."""
    windows = difference(given.slots)
    slots = np.linalg.solve(gain(given), windows) / np.array(slot_weights(given), dtype=np.float64)[:, np.newaxis]
    return np.cumsum(slots, axis=0)


# --- whole views -----------------------------------------------------------------------------


def discrete_gaussian(size: int, variance: float) -> Matrix:
    """The characteristic function of a discrete Gaussian at multiples of 2 pi / size, from its masses."""
    reach = math.ceil(14 * math.sqrt(variance)) + 2
    places = np.arange(1, reach + 1)
    masses = np.exp(-(places**2) / (2 * variance))
    whole = 1 + 2 * masses.sum()
    waves = np.cos(2 * math.pi / size * np.outer(np.arange(size), places))
    return np.asarray((1 + 2 * waves @ masses) / whole)


def torus_law(size: int, slots: int, parts: Sequence[tuple[Sequence[int], float]]) -> Matrix:
    """The law of sums of discrete Gaussians modulo `size`: for each its pattern in the view, and its variance."""
    transform = np.ones((size,) * slots)
    grids = np.meshgrid(*[np.arange(size)] * slots, indexing="ij", sparse=True)
    for pattern, variance in parts:
        angles = np.asarray(sum(times * grid for times, grid in zip(pattern, grids, strict=True) if times))
        transform *= discrete_gaussian(size, variance)[angles % size]
    # Laws are symmetric: their transforms are real.
    return np.asarray(np.fft.ifftn(transform).real)


def running_parts(rows: Any, slots: int) -> list[tuple[list[int], float]]:
    """Pattern and variance of every noise N_i(s) in the running sums."""
    found, pattern = [], np.eye(slots)
    for row in np.asarray(rows):
        found += [(pattern[:, slot].astype(int).tolist(), float(row[slot])) for slot in range(slots)]
        pattern = pattern @ difference(slots)
    return found


def hockey_stick(law: Matrix, moved: Sequence[int], epsilon: float) -> float:
    """The larger of both directions between a law and the same law, moved."""
    other = np.roll(law, tuple(int(each) for each in moved), axis=tuple(range(law.ndim)))
    factor = math.exp(epsilon)
    return max(
        float(np.maximum(law - factor * other, 0).sum()), float(np.maximum(other - factor * law, 0).sum())
    )


def gaussian_curve(epsilon: float, shift: float) -> float:
    """The same of two Gaussians of deviation 1, so far apart, by the error function."""

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(shift / 2 - epsilon / shift) - math.exp(epsilon) * below(-shift / 2 - epsilon / shift)


# --- samples ---------------------------------------------------------------------------------


def whitened(given: CarriedWeights, noise: Matrix, found: Matrix) -> Matrix:
    """Errors of all estimates (a row a run), made into what should be independent and of variance 1.

    Args:
        given: of the plan.
        noise: the covariance that the running sums' noise should have.
        found: a run's errors in each row, in steps.
    """
    running = np.linalg.solve(errors(given), found.T)
    return np.asarray(np.linalg.solve(np.linalg.cholesky(noise), running).T)


def cells(white: Matrix, count: int) -> NDArray[np.int64]:
    """Which of so many equally likely cells of a standard Gaussian each number falls into."""
    below = np.array([math.erfc(-each / math.sqrt(2)) / 2 for each in white.ravel().tolist()])
    return np.asarray(np.minimum(below * count, count - 1), dtype=np.int64)


def mixed(white: Matrix) -> Matrix:
    """Every run's numbers turned by an orthogonal matrix: independent if they were, and otherwise not."""
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(white.shape[1],) * 2))[0]
    return np.asarray(white @ turn)
