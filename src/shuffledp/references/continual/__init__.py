"""Running counts in other models of trust, for comparison only: they protect nobody here."""

from shuffledp.references.continual.local_counter import LocalCounter
from shuffledp.references.continual.paper_tree import paper_tree_error_bound
from shuffledp.references.continual.square_root import CuratorSquareRoot, best_batch
from shuffledp.references.continual.tree import CuratorTree

__all__ = ["CuratorSquareRoot", "CuratorTree", "LocalCounter", "best_batch", "paper_tree_error_bound"]
