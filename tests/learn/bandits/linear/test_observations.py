"""Joint vectors: there and back, and how far apart two of them are, by optimisation."""

import math

import numpy as np
import pytest
from scipy import optimize

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.linear.observations import JointVectors


def farthest(joint: JointVectors, seed: int) -> float:
    """The largest distance that a search over two users' features and rewards finds."""
    size = joint.dimension

    def users(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        features = point[: 2 * size].reshape(2, size)
        features = features / np.maximum(1.0, np.linalg.norm(features, axis=1))[:, None]
        if joint.nonnegative:
            # Reflected where the inner product would be negative: the search stays inside the promise.
            features[1] *= -1.0 if features[0] @ features[1] < 0 else 1.0
        low = joint.lowest_reward
        return features, low + (1 - low) * (1 + np.cos(point[2 * size :])) / 2

    def apart(point: np.ndarray) -> float:
        first, second = joint.pack(*users(point))
        return -float(np.linalg.norm(first - second))

    generator = np.random.default_rng(seed)
    starts = generator.normal(size=(24, 2 * size + 2)) * 2
    return max(
        -optimize.minimize(apart, start, method="Nelder-Mead", options={"maxiter": 4000}).fun for start in starts
    )


@pytest.mark.parametrize(
    ("dimension", "nonnegative", "lowest", "expected"),
    [
        (1, False, 0, 2.0),
        (1, True, 0, math.sqrt(2)),
        (2, False, 0, math.sqrt(4.5)),
        (2, False, -1, math.sqrt(4.5)),
        (3, False, 0, math.sqrt(4.5)),
        (3, True, 0, 2.0),
        # Negative rewards undo the promise about features.
        (2, True, -1, math.sqrt(4.5)),
    ],
)
def test_apart_is_attained_and_never_passed(dimension: int, nonnegative: bool, lowest: float, expected: float) -> None:
    joint = JointVectors(dimension, nonnegative, lowest)
    assert joint.apart == pytest.approx(expected, rel=1e-15)
    found = farthest(joint, seed=1)
    assert found <= joint.apart * (1 + 1e-12)
    assert found >= joint.apart * (1 - 1e-4)


def test_the_worst_pair_by_hand() -> None:
    joint = JointVectors(2)
    features = [[1.0, 0.0], [-0.5, math.sqrt(0.75)]]
    first, second = joint.pack(features, [1.0, 1.0])
    assert np.linalg.norm(first - second) == pytest.approx(joint.apart, rel=1e-14)
    assert np.linalg.norm(first) == pytest.approx(joint.radius, rel=1e-14)


def test_there_and_back() -> None:
    generator = np.random.default_rng(2)
    joint = JointVectors(4)
    features, rewards = generator.normal(size=(7, 3, 4)), generator.random((7, 3))
    matrix, vector = joint.unpack(joint.pack(features, rewards).sum(axis=1))
    assert np.allclose(matrix, np.einsum("itd,ite->ide", features, features))
    assert np.allclose(vector, np.einsum("itd,it->id", features, rewards))
    assert np.allclose(joint.pack_matrix(matrix), joint.pack(features, rewards).sum(axis=1)[:, 4:])
    # Lengths of joint vectors are Frobenius norms.
    packed = joint.pack(features[0, 0], 0.0)
    assert np.linalg.norm(packed) == pytest.approx(np.linalg.norm(np.outer(features[0, 0], features[0, 0])))


def test_bad_rows_are_named() -> None:
    joint = JointVectors(2)
    with pytest.raises(DataError, match=r"rewards must lie in \[0, 1\], got something else in row 2"):
        joint.check([[0.1, 0.2], [0.3, 0.4]], [0.5, 1.5])
    with pytest.raises(DataError, match=r"a longer one in row 2: shorten it first"):
        joint.check([[0.1, 0.2], [1.0, 1.0]], [0.5, 0.5])
    # What rounding made too long by a hair is shortened.
    hair = 1 + TOLERANCE / 2
    features, _ = joint.check([[0.1, 0.2], [0.6 * hair, 0.8 * hair]], [0.5, 0.5])
    assert features[0].tolist() == [0.1, 0.2] and np.linalg.norm(features[1]) <= 1 + 1e-15
    assert features[1] == pytest.approx([0.6, 0.8], abs=1e-15)
    with pytest.raises(DataError, match="finite"):
        joint.check([[0.1, np.nan]], [0.5])
    with pytest.raises(DataError, match="rows of 2 numbers"):
        joint.check([[0.1]], [0.5])
    with pytest.raises(DataError, match="1 numbers"):
        joint.check([[0.1, 0.2]], [0.5, 0.5])
    with pytest.raises(ParameterError, match="dimension"):
        JointVectors(0)
    with pytest.raises(ParameterError, match="lowest_reward"):
        JointVectors(2, lowest_reward=-2)
