"""Least squares on trees: the two passes, weights and variances beside plain linear algebra."""

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.schedules.interval_trees import IntervalTree, TreeSquares, balanced_branchings

TREES = [(8, 2), (10, 3), (7, 2), (27, 3), (11, 4), (5, 8), (2, 2)]


def _observed(tree: IntervalTree) -> list[np.ndarray]:
    """Which values each node of levels 0..depth holds, as matrices of zeros and ones."""
    matrices = []
    for level in range(tree.depth + 1):
        matrix = np.zeros((tree.nodes(level), tree.size))
        matrix[np.arange(tree.size) // tree.width(level), np.arange(tree.size)] = 1
        matrices.append(matrix)
    return matrices


def _unequal(tree: IntervalTree) -> list[float]:
    return [1 + 2.5 * ((3 * level) % 4) for level in range(tree.depth)]


def _whole(tree: IntervalTree, variances: list[float], root: float | None) -> tuple[np.ndarray, np.ndarray]:
    """The estimator as a matrix, and its covariance; an exact root by a change of variables."""
    matrices = _observed(tree)
    deviations = np.repeat(np.sqrt(variances), tree.sizes)
    if root is not None:
        weights = 1 / np.concatenate(([np.sqrt(root)], deviations))
        solver = np.linalg.lstsq(weights[:, None] * np.vstack(matrices), np.diag(weights), rcond=None)[0]
        noise = np.concatenate(([root], deviations**2))
        return solver, solver * noise @ solver.T
    # x = total e_last + N u: the last value is what the others leave.
    design = np.vstack(matrices[1:])
    null = np.vstack((np.eye(tree.size - 1), -np.ones(tree.size - 1)))
    last = np.eye(tree.size)[:, -1:]
    inner = np.linalg.lstsq(design @ null / deviations[:, None], np.diag(1 / deviations), rcond=None)[0]
    solver = np.hstack((last - null @ inner @ design @ last, null @ inner))
    return solver, solver[:, 1:] * deviations**2 @ solver[:, 1:].T


@pytest.mark.parametrize(("size", "branching"), TREES)
@pytest.mark.parametrize("root", [None, 1.7])
def test_two_passes_are_least_squares(size: int, branching: int, root: float | None) -> None:
    tree = IntervalTree(size, branching)
    for variances in ([1.0] * tree.depth, _unequal(tree)):
        squares = TreeSquares(tree, variances, root or 0.0)
        solver, covariance = _whole(tree, variances, root)
        seen = np.random.default_rng(1).normal(size=solver.shape[1]) * 5
        parts = np.split(seen[1:], np.cumsum(tree.sizes)[:-1])
        assert squares.leaves(parts, seen[0]) == pytest.approx(solver @ seen, abs=1e-9)
        prefixes = np.tril(np.ones((size, size)))
        assert squares.prefixes()[0] == pytest.approx(np.diag(prefixes @ covariance @ prefixes.T), abs=1e-9)
        assert squares.single_values()[0] == pytest.approx(np.diag(covariance), abs=1e-9)
        weights = np.vstack(squares.weights(prefixes.T))
        assert weights == pytest.approx((prefixes @ solver).T, abs=1e-9)
        some = np.random.default_rng(2).normal(size=size)
        assert squares.variance(some) == pytest.approx(some @ covariance @ some)


@pytest.mark.parametrize(("size", "branching"), TREES)
def test_spans_hold_all_weights(size: int, branching: int) -> None:
    tree = IntervalTree(size, branching)
    squares = TreeSquares(tree, _unequal(tree))
    for found, functionals in (
        (squares.prefixes(), np.triu(np.ones((size, size)))),
        (squares.single_values(), np.eye(size)),
    ):
        weights = np.vstack(squares.weights(functionals))
        assert (weights.max(axis=0) - weights.min(axis=0) <= found[1] + 1e-12).all()


@pytest.mark.parametrize(("size", "branching"), TREES)
def test_an_exact_root_makes_weights_of_a_level_add_up_to_nothing(size: int, branching: int) -> None:
    """So centring every level changes neither the estimate nor its variance."""
    tree = IntervalTree(size, branching)
    for level in TreeSquares(tree, _unequal(tree)).weights(np.triu(np.ones((size, size))))[1:]:
        assert np.abs(level.sum(axis=0)).max() < 1e-12


def test_consistency_is_worth_it() -> None:
    tree = IntervalTree(256, 2)
    prefixes, _ = TreeSquares(tree, (1.0,) * tree.depth).prefixes()
    assert prefixes.max() < 0.5 * tree.depth


def test_balanced_branchings_reach_every_depth() -> None:
    for size in (2, 3, 10, 100, 1000):
        found = balanced_branchings(size)
        assert found[-1] == 2 and sorted(found, reverse=True) == list(found)
        for branching in found[:-1]:
            assert IntervalTree(size, branching).depth < IntervalTree(size, branching - 1).depth


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="branching"):
        IntervalTree(8, 1)
    with pytest.raises(ParameterError, match="size"):
        IntervalTree(1, 2)
    with pytest.raises(ParameterError, match="variances"):
        TreeSquares(IntervalTree(8, 2), (1.0, 1.0))
