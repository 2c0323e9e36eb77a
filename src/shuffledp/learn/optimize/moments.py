"""Second moments of rows: what a user sends of its own, and what their noisy mean says about how to scale steps."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.protocols.vector_sum.matrices import pack_symmetric

Floats = NDArray[np.float64]

# A nearest point is looked for in so many steps, each of which shortens the way by 1 - 1/sqrt(condition).
# Less where a step, squared, is shorter than this part of the point.
_PROJECTION_STEPS, _NEAR_ENOUGH = 80, 1e-8


def packed(rows: Floats, lengths: Floats, bound: float) -> tuple[Floats, int]:
    """Every row's products with itself, none longer than the bound, and how many would have been.

    They are packed as symmetric matrices are, so that a vector is as long as its row is long, squared.

    Args:
        rows: finite features, a row a user.
        lengths: of the rows.
        bound: on the length of what is sent; longer rows are shortened.

    >>> sent, clipped = packed(np.array([[3.0, 4.0], [0.3, 0.4]]), np.array([5.0, 0.5]), 1.0)
    >>> sent.round(3).tolist(), np.linalg.norm(sent, axis=1).round(6).tolist(), clipped
    ([[0.36, 0.679, 0.64], [0.09, 0.17, 0.16]], [1.0, 0.25], 1)
    """
    # A hair shorter than the bound, so that rounding cannot put it beyond.
    longest = math.sqrt(bound) * (1 - TOLERANCE / 8)
    long = lengths > longest
    if long.any():
        rows = np.where(long[:, np.newaxis], rows / np.where(long, lengths, 1.0)[:, np.newaxis] * longest, rows)
    left, right = np.triu_indices(rows.shape[1])
    sent = rows[:, left]
    sent *= rows[:, right]
    sent *= pack_symmetric(np.ones((rows.shape[1], rows.shape[1])))
    return sent, int(np.count_nonzero(lengths > math.sqrt(bound)))


@dataclass(frozen=True, eq=False)
class Conditioner:
    """A metric in which a loss is about equally curved everywhere: one matrix for the block of every score.

    Attributes:
        values: its eigenvalues, all positive.
        vectors: its eigenvectors, a column each.
    """

    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, curvature: Floats, floor: float) -> Self:
        """From noisy curvature, whose negative eigenvalues are noise's, and what is added to every one of them."""
        values, vectors = np.linalg.eigh(curvature)
        return cls(np.maximum(values, 0.0) + floor, vectors)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray((self.vectors / self.values) @ self.vectors.T)

    @cached_property
    def _matrix(self) -> Floats:
        return np.asarray((self.vectors * self.values) @ self.vectors.T)

    def descent(self, gradient: Floats) -> Floats:
        """The gradient in this metric.

        >>> Conditioner.of(np.diag([3.0, 0.0]), 1.0).descent(np.array([4.0, 4.0])).tolist()
        [1.0, 4.0]
        """
        return self._blocks(gradient, self._inverse)

    def nearest(self, point: Floats, domain: ConvexSet) -> Floats:
        """The point of a set that is nearest in this metric, by accelerated steps in the set itself.

        The set's own nearest point is another one: steps that end there would not stop at the set's best model.

        >>> from shuffledp.learn.optimize import L2Ball
        >>> steep = Conditioner.of(np.diag([99.0, 0.0]), 1.0)
        >>> steep.nearest(np.array([1.0, 1.0]), L2Ball(dimension=2, radius=1)).round(3).tolist()
        [0.97, 0.245]
        """
        found = domain.project(point)
        if np.array_equal(found, point):
            return point
        largest, condition = float(self.values.max()), math.sqrt(float(self.values.max() / self.values.min()))
        momentum, asked = (condition - 1) / (condition + 1), found
        for _ in range(_PROJECTION_STEPS):
            moved = domain.project(asked - self._blocks(asked - point, self._matrix) / largest)
            step = moved - found
            asked, found = moved + momentum * step, moved
            if step @ step <= _NEAR_ENOUGH * (moved @ moved):
                break
        return found

    def _blocks(self, vector: Floats, matrix: Floats) -> Floats:
        return np.asarray((vector.reshape(-1, len(matrix)) @ matrix).ravel())
