"""Rectangles of two axes: a node of each tree at every pair of levels, least squares along one axis and the other."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.axes import AnyAxes, Axis, as_axes
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.error_bounds import remembered
from shuffledp.protocols.fields import only_exact
from shuffledp.protocols.histogram.blanket import paper_blanket
from shuffledp.protocols.ranges.base import Errors, RangesPlan, tree_squares
from shuffledp.protocols.ranges.bounds import every_sum_bound
from shuffledp.protocols.ranges.estimates import GridEstimate
from shuffledp.protocols.ranges.planning import Considered, best_of
from shuffledp.protocols.request import Request
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import best_local_histogram
from shuffledp.schedules.interval_trees import IntervalTree, TreeSquares, balanced_branchings

LARGEST_SIDE = 1 << 10
_SPLITS = (0.0, 10.0, 1000.0)
# Without a limit on messages: the fewest among plans with at most this part more than the least error.
_TOLERANCE = 2.0
# Corners along an axis that are looked at while branchings are compared.
_LOOKED_AT = 40


@dataclass(frozen=True, slots=True, eq=False)
class _AxisWeights:
    """Weights of many functionals of one axis: their squares and sums at each level from 0, and the largest of all."""

    squares: Floats
    sums: Floats
    largest: Floats

    @classmethod
    def of(cls, squares: TreeSquares, functionals: Floats) -> "_AxisWeights":
        weights = squares.weights(functionals)
        return cls(
            np.array([(level**2).sum(axis=0) for level in weights]),
            np.array([level.sum(axis=0) for level in weights]),
            np.max([np.abs(level).max(axis=0) for level in weights], axis=0),
        )


def _variances(means: Floats, trees: Any, first: _AxisWeights, second: _AxisWeights) -> Floats:
    """Variances of all products of a functional of either axis, whose decoys are centred in every level."""
    nodes = _nodes_table(trees)
    uncentred = first.squares.T @ means @ second.squares
    return np.maximum(uncentred - (first.sums**2).T @ (means / nodes) @ second.sums**2, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid(RangesPlan):
    """Each user sends its cell at every pair of levels of two trees, and decoys.

    The adversary sees how many messages name each cell of each pair of levels. The blankets' means are products of a
    number for either axis's level, so that least squares over all pairs is least squares along one axis, then along
    the other; the number of users, which is known, is used as if it were as noisy.

    Reference: [004] B.3, Table 6 (d = 2).

    >>> plan = Grid.plan(users=100_000, privacy=Privacy(1, 1e-6), axes=[16, 16], branching=4)
    >>> len(plan.levels), plan.messages_per_user_max
    (8, 16)
    """

    method: ClassVar[str] = "grid"
    file_command: ClassVar[str] = "simulate"

    @classmethod
    def for_request(cls, request: Request, *, axes: AnyAxes, branching: int | None = None) -> Self:
        """The least error of the worst corner within the messages allowed; without a limit, few messages for it."""
        only_exact(request.constants)
        both, rows = cls.checked_axes(axes), []
        choices = [balanced_branchings(axis.size) if branching is None else (branching,) for axis in both]
        for branchings in itertools.product(*choices):
            trees = [IntervalTree(axis.size, each) for axis, each in zip(both, branchings, strict=True)]
            for split in _SPLITS:
                rows += _considered(trees, split, request)
        return cls(**request.common, axes=both, **best_of(rows, request, _TOLERANCE))

    @classmethod
    def checked_axes(cls, axes: AnyAxes) -> tuple[Axis, ...]:
        found = as_axes(axes)
        if len(found) != 2:
            raise ParameterError("domain", f"{len(found)} axes", "must be two for a grid", "one takes the method tree")
        longest = max(axis.size for axis in found)
        if longest > LARGEST_SIDE:
            raise ParameterError("domain", longest, f"must have sides of at most {LARGEST_SIDE}", "take wider steps")
        return found

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        first, second = self.trees
        return tuple(itertools.product(range(first.depth + 1), range(second.depth + 1)))[1:]

    @property
    def _means(self) -> Floats:
        """Blankets by the levels of either axis; 0 for the root, which is not sent."""
        first, second = self.trees
        return np.reshape((0.0, *self.blanket_means), (first.depth + 1, second.depth + 1))

    @property
    def squares(self) -> tuple[TreeSquares, ...]:
        variances = (self._means[:, 1].tolist(), self._means[1, :].tolist())
        return tuple(
            tree_squares(tree, tuple(below), root) for tree, (root, *below) in zip(self.trees, variances, strict=True)
        )

    def _leaves(self, counts: list[Floats]) -> Floats:
        first, second = self.squares
        depth = second.tree.depth + 1
        every = [np.full((1, 1), float(self.users)), *counts]
        along = [first.leaves(every[level::depth][1:], every[level]) for level in range(depth)]
        return second.leaves([each.T for each in along[1:]], along[0].T).T

    @property
    def _singles(self) -> list[_AxisWeights]:
        """Weights of single values of either axis."""
        return [_AxisWeights.of(each, np.eye(each.tree.size)) for each in self.squares]

    @remembered
    def errors(self) -> Errors:
        corners = [_AxisWeights.of(each, np.triu(np.ones((each.tree.size,) * 2))) for each in self.squares]
        found = []
        for first, second in (self._singles, corners):
            variances = _variances(self._means, self.trees, first, second)
            # A weight less its level's mean is within twice the largest.
            spans = 2 * np.outer(first.largest, second.largest)
            bound = every_sum_bound(variances.reshape(-1), spans.reshape(-1))
            found.append((math.sqrt(float(variances.max())), bound, float(spans.max())))
        (value, value_bound, _), (corner, corner_bound, reach) = found
        return Errors(value, value_bound, corner, corner_bound, reach)

    def standard_errors_for(self, values: ArrayLike) -> Floats:
        return np.sqrt(_variances(self._means, self.trees, *self._singles)).reshape(-1)

    def ranges(self, estimate: VectorEstimate) -> GridEstimate:
        """Every rectangle, from an estimate of this plan."""
        return GridEstimate(plan=self, values=estimate)

    @property
    def question(self) -> str:
        return f"count {self.users:,} users in all rectangles of {' x '.join(str(axis) for axis in self.axes)}"

    def reference(self) -> dict[str, float | None]:
        """Errors of single cells: a plain histogram is the best that a curator and the local model can do for one."""
        levels = len(self.levels)
        paper = paper_blanket(Privacy(self.privacy.epsilon / levels, self.privacy.delta / levels))
        return {
            "paper_standard_error": math.sqrt(paper * self.users / self.honest_users),
            "central_standard_error": CuratorHistogram(privacy=self.privacy, bins=self.size).standard_error,
            "local_standard_error": best_local_histogram(
                users=self.users, privacy=self.privacy, bins=self.size
            ).standard_error,
        }


def _nodes_table(trees: Any) -> Floats:
    first, second = ([tree.nodes(level) for level in range(tree.depth + 1)] for tree in trees)
    return np.outer(first, second).astype(np.float64)


def _considered(trees: list[IntervalTree], split: float, request: Request) -> list[Considered]:
    """Two trees with one split of the noise: a product of a number for either axis's level."""
    parts: list[NDArray[np.float64]] = []
    for tree in trees:
        nodes = np.array([tree.nodes(level) for level in range(tree.depth + 1)])
        parts.append(1 / np.sqrt(1 + split * nodes / tree.size))
    table = np.outer(*parts)
    sizes = tuple(int(size) for size in _nodes_table(trees).reshape(-1)[1:])
    shares = tuple(float(share) for share in table.reshape(-1)[1:])

    def error(scale: float) -> float:
        means = scale * table
        means[0, 0] = 0.0
        sides = []
        for tree, part in zip(trees, parts, strict=True):
            at = np.unique(np.linspace(0, tree.size - 1, min(tree.size, _LOOKED_AT)).astype(np.int64))
            corners = (np.arange(tree.size)[:, np.newaxis] <= at).astype(np.float64)
            sides.append(_AxisWeights.of(TreeSquares(tree, part[1:].tolist(), float(part[0])), corners))
        return math.sqrt(float(_variances(means, trees, *sides).max()))

    return Considered.all_of(request, tuple(tree.branching for tree in trees), sizes, shares, error)
