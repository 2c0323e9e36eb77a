"""What a user tells about one round: features times reward, and the features' own square, as ONE vector.

Off the diagonal the square's entries are multiplied by sqrt(2) and sent once, so that the vector's length is the
matrix's Frobenius norm, and noise that is alike in every coordinate is alike in every direction.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.spec import as_floats, check_declared, check_flag, declared, number, refuse_first, whole

Floats = NDArray[np.float64]

LARGEST_DIMENSION = 200


@dataclass(frozen=True)
class JointVectors:
    """The joint vectors of features no longer than 1 and rewards in [lowest_reward, 1], lowest_reward being 0 or -1.

    `nonnegative` promises that no two users' features have a negative inner product: whoever makes the features
    answers for it. It helps where rewards are not negative either.

    Proof of the distances: docs/theory/002-linear-bandits.md.

    Attributes:
        dimension: how many features there are.
        nonnegative: promises that no two users' features have a negative inner product.
        lowest_reward: 0, or -1 where rewards may be negative.

    >>> joint = JointVectors(2)
    >>> joint.pack([[0.6, 0.8]], [0.5]).round(4).tolist()
    [[0.3, 0.4, 0.36, 0.6788, 0.64]]
    >>> round(joint.apart**2, 12), JointVectors(2, nonnegative=True).apart
    (4.5, 2.0)
    """

    dimension: int = whole(1, LARGEST_DIMENSION, "count the features")
    nonnegative: bool = declared(
        lambda name, value: check_flag(name, value, "True promises that no two features are opposed"), default=False
    )
    lowest_reward: float = number(-1, 0, "scale rewards to [0, 1]", default=0.0)

    def __post_init__(self) -> None:
        check_declared(self)
        if self.lowest_reward not in (0, -1):
            raise ParameterError("lowest_reward", self.lowest_reward, "must be 0 or -1", "scale rewards to [0, 1]")
        # -0.0 + 0.0 is 0.0.
        object.__setattr__(self, "lowest_reward", self.lowest_reward + 0.0)

    @property
    def length(self) -> int:
        """Coordinates of a joint vector."""
        return self.dimension + self.dimension * (self.dimension + 1) // 2

    @property
    def radius(self) -> float:
        """No joint vector is longer."""
        return math.sqrt(2)

    @property
    def apart(self) -> float:
        """No two joint vectors are further apart, and some two are as far."""
        if self.nonnegative and self.lowest_reward == 0:
            return self.radius if self.dimension == 1 else 2.0
        return 2.0 if self.dimension == 1 else math.sqrt(4.5)

    @cached_property
    def _triangle(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
        rows, columns = np.triu_indices(self.dimension)
        return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))

    def pack(self, features: ArrayLike, rewards: ArrayLike) -> Floats:
        """Joint vectors of features (..., dimension) and rewards (...), unchecked."""
        phi, reward = np.asarray(features, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
        rows, columns, weights = self._triangle
        packed = np.empty((*phi.shape[:-1], self.length))
        packed[..., : self.dimension] = phi * reward[..., np.newaxis]
        packed[..., self.dimension :] = phi[..., rows] * phi[..., columns] * weights
        return packed

    def unpack(self, sums: ArrayLike) -> tuple[Floats, Floats]:
        """The matrix (..., dimension, dimension) and the vector (..., dimension) in sums of joint vectors."""
        packed = np.asarray(sums, dtype=np.float64)
        rows, columns, weights = self._triangle
        matrix = np.empty((*packed.shape[:-1], self.dimension, self.dimension))
        entries = packed[..., self.dimension :] / weights
        matrix[..., rows, columns] = entries
        matrix[..., columns, rows] = entries
        return matrix, packed[..., : self.dimension]

    def pack_matrix(self, matrix: Floats) -> Floats:
        """A symmetric matrix's part of a joint vector: inner products of these are those of the matrices."""
        rows, columns, weights = self._triangle
        return np.asarray(matrix[..., rows, columns] * weights)

    def check(self, features: ArrayLike, rewards: ArrayLike) -> tuple[Floats, Floats]:
        """A row of features and a reward for each user as arrays, or an error that names the first bad row."""
        phi, reward = as_floats("features", features), as_floats("rewards", rewards)
        if phi.ndim != 2 or phi.shape[1] != self.dimension or len(phi) == 0:
            wanted = f"must be rows of {self.dimension} numbers"
            raise DataError("features", f"shape {phi.shape}", wanted, "pass a row a user")
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(phi, axis=1)
        for row in np.flatnonzero(~np.isfinite(lengths))[:1].tolist():
            problem = "must have finite lengths"
            raise DataError("features", f"a row {row + 1} that is not", problem, "leave that user out")
        for row in np.flatnonzero(lengths > 1 + TOLERANCE)[:1].tolist():
            problem = "must be no longer than 1"
            raise DataError("features", f"a longer one in row {row + 1}", problem, "shorten it first")
        if reward.shape != phi.shape[:1]:
            raise DataError("rewards", f"shape {reward.shape}", f"must be {len(phi)} numbers", "pass one a user")
        bad = ~((reward >= self.lowest_reward) & (reward <= 1))
        limits = f"must lie in [{self.lowest_reward:g}, 1]"
        refuse_first("rewards", reward, bad, limits, "scale or clip the rewards first")
        # Also those that rounding made too long by a hair: `apart` leaves no room for it.
        return np.asarray(phi / np.maximum(lengths, 1.0)[:, np.newaxis]), reward
