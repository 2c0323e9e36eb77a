"""Gaussian noise of running sums of vectors, release by release, for many instances at once: references only."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from shuffledp.accounting.filter_designs import Design
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.privacy import Privacy
from shuffledp.references.continual.square_root import square_root_coefficients, sum_of_squares

Floats = NDArray[np.float64]


def tree_deviation(releases: int, privacy: Privacy, sensitivity: float) -> float:
    """The deviation of the noise of one node of a binary tree: a user is in one node of each level."""
    return gaussian_standard_deviation(privacy, sensitivity * math.sqrt(max(1, releases.bit_length())))


def tree_deviations(releases: int, privacy: Privacy, sensitivity: float) -> Floats:
    """The deviation of every release's noise, which is that of one node for each binary digit 1.

    >>> deviations = tree_deviations(8, Privacy(1, 1e-6), 1.0)
    >>> (deviations[[0, 2, 6, 7]] / deviations[0]).round(3).tolist()
    [1.0, 1.414, 1.732, 1.0]
    """
    nodes = np.bitwise_count(np.arange(1, releases + 1, dtype=np.uint64)).astype(np.float64)
    return np.asarray(tree_deviation(releases, privacy, sensitivity) * np.sqrt(nodes))


def tree_noise(
    releases: int, deviation: float, shape: tuple[int, ...], *, generator: np.random.Generator
) -> Iterator[Floats]:
    """The binary tree's noise of each release in turn: a new node takes the place of all below it."""
    nodes = np.zeros((max(1, releases.bit_length()), *shape))
    for release in range(1, releases + 1):
        level = (release & -release).bit_length() - 1
        nodes[:level] = 0.0
        nodes[level] = deviation * generator.standard_normal(shape)
        yield nodes.sum(axis=0)


def square_root_deviations(releases: int, privacy: Privacy, sensitivity: float) -> Floats:
    """The deviation of every release's noise, by the square root of the summing matrix."""
    column = float(sum_of_squares(releases))
    each = gaussian_standard_deviation(privacy, sensitivity * math.sqrt(column))
    return np.asarray(each * np.sqrt(sum_of_squares(np.arange(1, releases + 1))))


def square_root_noise(
    releases: int, first_deviation: float, shape: tuple[int, ...], *, generator: np.random.Generator
) -> Iterator[Floats]:
    """Its noise of each release in turn; the first release's is one noise alone."""
    drawn = generator.standard_normal((releases, *shape))
    spread = signal.fftconvolve(drawn, square_root_coefficients(releases).reshape(-1, *(1 for _ in shape)), axes=0)
    yield from first_deviation * spread[:releases]


def buffered_noise(
    design: Design, releases: int, deviation: float, shape: tuple[int, ...], *, generator: np.random.Generator
) -> Iterator[Floats]:
    """The noise of a filter with few poles: each slot's C^-1 w over its weight, added up."""
    along = (slice(None), *(np.newaxis,) * len(shape))
    variances = design.variances(releases)
    slots = np.sqrt(variances)[along] * generator.standard_normal((releases, *shape))
    for zero, pole in zip(design.filter.zeros, (*design.filter.poles, 1.0), strict=True):
        slots = signal.lfilter([1.0, -pole], [1.0, -zero], slots, axis=0)
    lengths = design.filter.column_lengths(variances)
    yield from deviation * np.cumsum(slots * lengths[along], axis=0)


def walk_noise(
    releases: int, deviation: float, shape: tuple[int, ...], *, generator: np.random.Generator
) -> Iterator[Floats]:
    """Noise that adds up: so much more with every release."""
    total = np.zeros(shape)
    for _ in range(releases):
        total = total + deviation * generator.standard_normal(shape)
        yield total
