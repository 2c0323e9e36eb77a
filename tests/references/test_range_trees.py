"""Reference trees: their standard errors are those of what they sample."""

import numpy as np
import pytest

from shuffledp.privacy import Privacy
from shuffledp.references.range_trees import ReferenceTree, best_curator_tree, best_local_tree
from shuffledp.testing.statistics import assert_deviation

TARGET = Privacy(1, 1e-6)


def test_the_worst_prefix_is_as_noisy_as_said() -> None:
    tree = ReferenceTree(27, 3, "gaussian", 9.0)
    counts, generator = np.arange(27), np.random.default_rng(1)
    errors = np.array([tree.sample_leaves(counts, generator=generator) - counts for _ in range(3000)])
    prefixes = np.cumsum(errors, axis=1)[:, :-1]
    worst = prefixes[:, int(prefixes.std(axis=0).argmax())]
    assert_deviation(errors[:, 0], tree.value_error, false_alarm=1e-9)
    assert worst.std() == pytest.approx(tree.prefix_error, rel=0.1)
    with pytest.raises(AssertionError):
        assert_deviation(0.8 * errors[:, 0], tree.value_error, false_alarm=1e-9)


def test_the_best_is_the_best() -> None:
    curator = best_curator_tree(TARGET, 256)
    for branching in (2, 16):
        other = ReferenceTree(256, branching, "gaussian", (4.22 * np.sqrt(2 * np.log(256) / np.log(branching))) ** 2)
        assert curator.prefix_error <= other.prefix_error * 1.01
    assert best_local_tree(100_000, TARGET, 256).prefix_error > 30 * curator.prefix_error
