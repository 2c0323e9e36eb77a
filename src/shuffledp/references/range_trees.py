"""Range counts beside which ours are held: a trusted curator's tree, and a tree in the local model."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.privacy import Privacy
from shuffledp.references.local_histograms import best_local_histogram
from shuffledp.schedules.interval_trees import IntervalTree, TreeSquares, balanced_branchings

# Prefixes looked at; the worst of them is the worst, or very close to it.
_LOOKED_AT = 4000


@dataclass(frozen=True)
class ReferenceTree:
    """A tree whose counts all have one variance, made consistent by least squares; the root is known."""

    size: int
    branching: int
    noise: str
    node_variance: float

    @cached_property
    def squares(self) -> TreeSquares:
        """How counts are made consistent, and the variances that they have then."""
        tree = IntervalTree(self.size, self.branching)
        return TreeSquares(tree, (self.node_variance,) * tree.depth)

    @cached_property
    def value_error(self) -> float:
        """The standard error of the worst value."""
        return math.sqrt(self.squares.variance(np.eye(1, self.size, 0)[0]))

    @cached_property
    def prefix_error(self) -> float:
        """The standard error of the worst prefix."""
        at = np.unique(np.linspace(0, self.size - 1, min(self.size, _LOOKED_AT)).astype(np.int64))
        return math.sqrt(float(self.squares.prefixes(at)[0].max()))

    def sample_leaves(self, counts: NDArray[np.int64], *, generator: np.random.Generator) -> NDArray[np.float64]:
        """The values' estimates with Gaussian noise of the nodes' variance."""
        tree, levels = self.squares.tree, []
        for level in range(1, tree.depth + 1):
            exact = np.add.reduceat(counts, np.arange(tree.nodes(level)) * tree.width(level))
            levels.append(exact + math.sqrt(self.node_variance) * generator.standard_normal(exact.size))
        return self.squares.leaves(levels, float(counts.sum()))


@lru_cache(maxsize=64)
def best_curator_tree(privacy: Privacy, size: int) -> ReferenceTree:
    """A curator's best tree: any branching, Gaussian or discrete Laplace noise, two nodes a level moved.

    >>> best_curator_tree(Privacy(1, 1e-6), 65_536).noise
    'gaussian'
    """
    found = []
    for branching in balanced_branchings(size):
        moved = 2 * IntervalTree(size, branching).depth
        gaussian = gaussian_standard_deviation(privacy, math.sqrt(moved)) ** 2
        laplace = DiscreteLaplace(math.exp(-privacy.epsilon / moved)).variance
        noise, variance = min((("gaussian", gaussian), ("laplace", laplace)), key=lambda each: each[1])
        found.append(ReferenceTree(size, branching, noise, variance))
    return min(found, key=lambda tree: tree.prefix_error)


@lru_cache(maxsize=64)
def best_local_tree(users: int, privacy: Privacy, size: int) -> ReferenceTree:
    """The local model's best tree: every user reports one level, drawn at random, by the best local histogram.

    The variance is that of nodes nobody is in, without that of who reports which level: a little too kind to it.

    Reference: Cormode, Kulkarni, Srivastava 2019.
    """
    found = []
    for branching in balanced_branchings(size):
        tree = IntervalTree(size, branching)
        group = max(1, users // tree.depth)
        worst = max(
            best_local_histogram(users=group, privacy=privacy, bins=nodes).standard_error for nodes in set(tree.sizes)
        )
        found.append(ReferenceTree(size, branching, "local", (tree.depth * worst) ** 2))
    return min(found, key=lambda each: each.prefix_error)
