"""Trees over a line of values, and least squares on them: every range from noisy counts of all nodes.

A node's own count has variance m (one a level), all independent; the root's has `root_variance`, mostly 0. Upwards

    z = alpha y + (1 - alpha) sum of the children's z,     s = alpha m,     alpha = S / (m + S),

where s is z's variance and S the children's s added up; a leaf has z = y. Downwards the estimates agree:

    h_child = z_child + (s_child / S) (h_parent - sum of the children's z).

Derived, with the variance of every prefix and the weight of every count, in docs/theory/range-queries.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class IntervalTree:
    """The values 0..size-1 in nodes of up to `branching` children; level 0 is the root, level `depth` the values.

    >>> tree = IntervalTree(10, 4)
    >>> tree.depth, tree.sizes
    (2, (3, 10))
    """

    size: int
    branching: int

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ParameterError("size", self.size, "must be >= 2", "one value needs no tree")
        if isinstance(self.branching, bool) or not isinstance(self.branching, int) or self.branching < 2:
            raise ParameterError("branching", self.branching, "must be a whole number >= 2", "16 suits most domains")

    @property
    def depth(self) -> int:
        """Levels below the root."""
        depth, width = 0, 1
        while width < self.size:
            depth, width = depth + 1, width * self.branching
        return depth

    def width(self, level: int) -> int:
        """Values in a node."""
        return int(self.branching ** (self.depth - level))

    def nodes(self, level: int) -> int:
        """Nodes of a level; the last one of it may be smaller than the others."""
        return -(-self.size // self.width(level))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of the levels below the root."""
        return tuple(self.nodes(level) for level in range(1, self.depth + 1))


def balanced_branchings(size: int, most: int = 1 << 10) -> tuple[int, ...]:
    """For each depth the smallest branching that reaches it: a larger one would only add children.

    >>> balanced_branchings(65_536)
    (256, 41, 16, 10, 7, 5, 4, 3, 2)
    """
    found: list[int] = []
    depth = 1
    while not found or found[-1] > 2:
        branching = max(2, round(size ** (1 / depth)) - 1)
        while branching**depth < size:
            branching += 1
        if branching <= most and branching not in found:
            found.append(branching)
        depth += 1
    return tuple(found)


class TreeSquares:
    """Weighted least squares on a tree whose counts have one variance a level.

    >>> squares = TreeSquares(IntervalTree(4, 2), (1.0, 1.0))
    >>> squares.leaves([np.array([6.0, 4.0]), np.array([3.0, 3.0, 2.0, 2.0])], 10.0)
    array([3., 3., 2., 2.])
    """

    def __init__(self, tree: IntervalTree, variances: Sequence[float], root_variance: float = 0.0) -> None:
        if len(variances) != tree.depth or not all(variance > 0 for variance in variances):
            raise ParameterError(
                "variances", tuple(variances), f"must be {tree.depth} positive numbers", "give one a level"
            )
        self.tree = tree
        self.variances = (root_variance, *variances)
        subtree = [np.full(tree.size, float(variances[-1]))]
        shares = [np.ones(tree.size)]
        for level in range(tree.depth - 1, -1, -1):
            below = self._children_sum(subtree[0], level)
            shares.insert(0, below / (self.variances[level] + below))
            subtree.insert(0, self.variances[level] * shares[0])
        self._subtree, self._shares = subtree, shares

    def _starts(self, level: int) -> Whole:
        """The first child of each node."""
        return np.arange(self.tree.nodes(level), dtype=np.int64) * self.tree.branching

    def _children_sum(self, below: Floats, level: int) -> Floats:
        return np.add.reduceat(below, self._starts(level), axis=0)

    def _parents(self, level: int) -> Whole:
        """The parent of each node of this level."""
        return np.arange(self.tree.nodes(level), dtype=np.int64) // self.tree.branching

    @cached_property
    def _portions(self) -> list[Floats]:
        """The share of each node below the root: its s over the sum of its own and its siblings'."""
        return [
            self._subtree[level] / self._children_sum(self._subtree[level], level - 1)[self._parents(level)]
            for level in range(1, self.tree.depth + 1)
        ]

    def leaves(self, counts: Sequence[ArrayLike], root: ArrayLike) -> Floats:
        """The values' estimates from the counts of levels 1..depth, further axes side by side."""
        seen = [np.asarray(each, dtype=np.float64) for each in counts]
        trailing = (1,) * (seen[0].ndim - 1)
        own = [np.reshape(root, (1, *seen[0].shape[1:])), *seen]
        upward = [own[-1]]
        for level in range(self.tree.depth - 1, -1, -1):
            share = self._shares[level].reshape(-1, *trailing)
            upward.insert(0, share * own[level] + (1 - share) * self._children_sum(upward[0], level))
        agreed = upward[0]
        for level in range(1, self.tree.depth + 1):
            missing = agreed - self._children_sum(upward[level], level - 1)
            portion = self._portions[level - 1].reshape(-1, *trailing)
            agreed = upward[level] + portion * missing[self._parents(level)]
        return np.asarray(agreed)

    def weights(self, functional: ArrayLike) -> list[Floats]:
        """What each count of levels 0..depth weighs in the estimate of a weighted sum of the values."""
        portion = [np.asarray(functional, dtype=np.float64)]
        trailing = (1,) * (portion[0].ndim - 1)
        for level in range(self.tree.depth, 0, -1):
            weighted = self._portions[level - 1].reshape(-1, *trailing) * portion[0]
            portion.insert(0, self._children_sum(weighted, level - 1))
        inherited = portion[0]
        found = [self._shares[0].reshape(-1, *trailing) * inherited]
        for level in range(1, self.tree.depth + 1):
            above = self._parents(level)
            rest = (1 - self._shares[level - 1]).reshape(-1, *trailing) * inherited
            inherited = (portion[level] - portion[level - 1][above]) + rest[above]
            found.append(self._shares[level].reshape(-1, *trailing) * inherited)
        return found

    def variance(self, functional: ArrayLike) -> float:
        """The variance of the estimate of a weighted sum of the values."""
        return float(sum(m * float(q @ q) for m, q in zip(self.variances, self.weights(functional), strict=True)))

    def prefixes(self, last: Whole | None = None) -> tuple[Floats, Floats]:
        """Variances of the sums of the values 0..j, for each j or those given, and the spans their weights lie in."""
        return self._along_paths(1.0, last)

    def single_values(self) -> tuple[Floats, Floats]:
        """The variance of each value's estimate by itself, and the span that its weights lie in."""
        return self._along_paths(0.0, None)

    def _along_paths(self, left: float, some: Whole | None) -> tuple[Floats, Floats]:
        """Functionals that are `left` before a value, 1 at it and 0 after it, for all values at once."""
        tree, values = self.tree, np.arange(self.tree.size, dtype=np.int64) if some is None else some
        portion, variance = [np.ones(values.size)], np.zeros(values.size)
        for level in range(tree.depth - 1, -1, -1):
            here = self._subtree[level + 1]
            before = np.concatenate(([0.0], np.cumsum(here)))
            child, parent = values // tree.width(level + 1), values // tree.width(level)
            whole = self._children_sum(here, level)[parent]
            lefts = left * (before[child] - before[parent * tree.branching])
            once = lefts + portion[0] * here[child]
            variance += np.maximum(left * lefts + portion[0] ** 2 * here[child] - once**2 / whole, 0.0)
            portion.insert(0, once / whole)
        variance += portion[0] ** 2 * self._subtree[0][0]
        inherited, low, high = portion[0], np.minimum(portion[0], 0.0), np.maximum(portion[0], 0.0)
        for level in range(tree.depth):
            child, parent = values // tree.width(level + 1), values // tree.width(level)
            rest = (1 - self._shares[level][parent]) * inherited
            first = parent * tree.branching
            last = np.minimum(first + tree.branching, tree.nodes(level + 1)) - 1
            inherited = portion[level + 1] - portion[level] + rest
            beside = rest - portion[level]
            for weight, there in ((inherited, True), (beside + left, child > first), (beside, child < last)):
                low = np.where(there, np.minimum(low, weight), low)
                high = np.where(there, np.maximum(high, weight), high)
        return variance, high - low
