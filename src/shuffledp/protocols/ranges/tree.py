"""Ranges of one axis: a tree over the values, least squares, and the error of every prefix."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.axes import AnyAxes, Axis, as_axes
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.error_bounds import remembered
from shuffledp.protocols.histogram.blanket import paper_blanket
from shuffledp.protocols.presentation import Chart, Presentation, View, present_quantiles
from shuffledp.protocols.ranges.base import Errors, RangesPlan, tree_squares
from shuffledp.protocols.ranges.bounds import every_sum_bound
from shuffledp.protocols.ranges.estimates import Quantile, RangeEstimate
from shuffledp.protocols.ranges.planning import SPLITS, Considered, best_of, shares_for, thrown
from shuffledp.protocols.request import Request
from shuffledp.references.range_trees import best_curator_tree, best_local_tree
from shuffledp.schedules.interval_trees import IntervalTree, TreeSquares, balanced_branchings

# Without a limit on messages: the fewest among plans with at most this part more than the least error.
_TOLERANCE = 1.5
# Prefixes looked at while branchings are compared; the chosen plan's error is that of all of them.
_LOOKED_AT = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(RangesPlan):
    """Each user sends the node it is in at every level of a tree, and decoys; least squares makes them agree.

    The adversary sees how many messages name each node of each level.

    Reference: [004] B.3; Hay, Rastogi, Miklau, Suciu 2010 (consistency), here with levels of different variances.

    >>> plan = Tree.plan(users=100_000, privacy=Privacy(1, 1e-6), axes=1000, branching=10)
    >>> plan.trees[0].sizes, plan.messages_per_user_max
    ((10, 100, 1000), 6)
    >>> round(plan.errors.prefix), round(plan.errors.prefix_bound)
    (27, 114)
    """

    method: ClassVar[str] = "tree"

    @classmethod
    def for_request(cls, request: Request, *, axes: AnyAxes, branching: int | None = None) -> Self:
        """The least error of the worst prefix within the messages allowed; without a limit, few messages for it."""
        (axis,) = cls.checked_axes(axes)
        common = {**request.common, "axes": (axis,)}
        if request.constants == "paper":
            sizes = IntervalTree(axis.size, branching or 2).sizes
            mean = _paper_mean(request.privacy, len(sizes))
            coins, probabilities = thrown(request.honest, sizes, [mean] * len(sizes))
            return cls(branching=(branching or 2,), coins=coins, probabilities=probabilities, **common)
        looked_at = np.unique(np.linspace(0, axis.size - 1, min(axis.size, _LOOKED_AT)).astype(np.int64))
        rows: list[Considered] = []
        for each in balanced_branchings(axis.size) if branching is None else (branching,):
            tree = IntervalTree(axis.size, each)
            for split in SPLITS if tree.depth > 1 else SPLITS[:1]:
                shares = shares_for(tree.sizes, split)

                def error(scale: float, tree: IntervalTree = tree, shares: tuple[float, ...] = shares) -> float:
                    squares = TreeSquares(tree, [scale * share for share in shares])
                    return math.sqrt(float(squares.prefixes(looked_at)[0].max()))

                rows += Considered.all_of(request, (each,), tree.sizes, shares, error)
        return cls(**common, **best_of(rows, request, _TOLERANCE))

    @classmethod
    def checked_axes(cls, axes: AnyAxes) -> tuple[Axis, ...]:
        found = as_axes(axes)
        if len(found) != 1:
            raise ParameterError("domain", f"{len(found)} axes", "must be one for a tree", "two take the method grid")
        return found

    @property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        return tuple((level,) for level in range(1, self.trees[0].depth + 1))

    @property
    def squares(self) -> tuple[TreeSquares, ...]:
        return (tree_squares(self.trees[0], self.blanket_means),)

    def _leaves(self, counts: list[Floats]) -> Floats:
        return self.squares[0].leaves(counts, float(self.users))

    @remembered
    def errors(self) -> Errors:
        values, value_spans = self.squares[0].single_values()
        prefixes, spans = self.squares[0].prefixes()
        return Errors(
            math.sqrt(float(values.max())),
            every_sum_bound(values, value_spans),
            math.sqrt(float(prefixes.max())),
            every_sum_bound(prefixes, spans),
            float(spans.max()),
        )

    def standard_errors_for(self, values: ArrayLike) -> Floats:
        return np.sqrt(self.squares[0].single_values()[0])

    def ranges(self, estimate: VectorEstimate) -> RangeEstimate:
        """Every range, the distribution function and quantiles, from an estimate of this plan."""
        return RangeEstimate(plan=self, values=estimate)

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        """Quantiles with their intervals, and the distribution function."""
        return present_ranges(self, self.ranges(estimate), truth, view)

    @property
    def question(self) -> str:
        return f"count {self.users:,} users in all ranges of {self.axes[0]}"

    def reference(self) -> dict[str, float | None]:
        size = self.axes[0].size
        curator = best_curator_tree(self.privacy, size)
        local = best_local_tree(self.users, self.privacy, size)
        dyadic = IntervalTree(size, 2)
        paper = _paper_mean(self.privacy, dyadic.depth) * self.users / self.honest_users
        # The paper adds up the nodes of a prefix, at most one a level, without least squares.
        return {
            "paper_standard_error": math.sqrt(paper),
            "central_standard_error": curator.value_error,
            "local_standard_error": local.value_error,
            "paper_prefix_standard_error": math.sqrt(dyadic.depth * paper),
            "central_prefix_standard_error": curator.prefix_error,
            "local_prefix_standard_error": local.prefix_error,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Dyadic(Tree):
    """The paper's own tree: every node is split into halves.

    >>> plan = Dyadic.plan(users=10_000, privacy=Privacy(1, 1e-6), axes=64)
    >>> plan.branching, len(plan.levels)
    ((2,), 6)
    """

    method: ClassVar[str] = "dyadic"

    @classmethod
    def for_request(cls, request: Request, *, axes: AnyAxes, branching: int | None = None) -> Self:
        """The least noise for a tree in which every node is split into halves."""
        if branching not in (None, 2):
            raise ParameterError("branching", branching, "must be 2 in a dyadic tree", "choose --method tree")
        # Named, because a dataclass with slots is made again and an implied class would be the first one.
        return super(Dyadic, cls).for_request(request, axes=axes, branching=2)

    def _check_domain(self) -> None:
        super(Dyadic, self)._check_domain()
        if tuple(self.branching) != (2,):
            raise ParameterError("branching", self.branching, "must be 2 in a dyadic tree", "choose --method tree")


def present_ranges(plan: Any, ranges: RangeEstimate, truth: Any, view: View | None) -> Presentation:
    """Quantiles with their intervals, and the distribution function, of one axis.

    Args:
        plan: what was answered.
        ranges: all ranges that its answer knows.
        truth: how many have each value, where that may be shown.
        view: which quantiles are shown.
    """
    (axis,), estimate, total = plan.axes, ranges.values, max(ranges.total, 1.0)
    every = 0.0 if truth is None else float(np.sum(truth))
    shares = np.cumsum(truth) / every if every else None
    found = [ranges.quantile(rank) for rank in (view or View()).quantiles]
    rows = [
        {"q": each.q, "value": each.value, "lower": each.lower, "upper": each.upper}
        | _true_quantile(axis, shares, every, each)
        for each in found
    ]
    bound = ranges.rank_bound
    chart = {
        "values": [axis.end(code) for code in range(axis.size)],
        "shares": ranges.cdf(),
        "bound": bound,
        "confidence": estimate.confidence,
        "title": plan.cautioned(f"{plan.users:,} users, {plan.privacy}"),
        "truth": shares,
        "quantiles": [(each.q, each.value, each.lower, each.upper) for each in found],
    }
    figures = {"quantiles": rows, "rank_bound": bound, "rank_standard_error": plan.errors.prefix / total}
    facts = (("all ranks within", f"{min(1.0, bound):.3%} with {estimate.confidence:.0%} confidence"),)
    columns = {"value": np.array(chart["values"]), "estimate": estimate.value, "share": chart["shares"]}
    return Presentation(facts, (present_quantiles(rows),), Chart("distribution", chart), columns, figures)


def _true_quantile(axis: Axis, shares: Floats | None, people: float, found: Quantile) -> dict[str, Any]:
    """The first value that a share of at least this rank has at most, and how far the rank is from the value found."""
    if shares is None:
        return {"truth": None, "rank_error": None}
    # Shares are sums of counts: a rank that is met exactly must not be missed by rounding.
    truth = axis.middle(int(np.argmax(shares * people >= found.q * people - 1e-6)))
    code = int(axis.encode(np.array([found.value]))[0])
    below = float(shares[code - 1]) if code else 0.0
    return {"truth": truth, "rank_error": max(0.0, below - found.q, found.q - float(shares[code]))}


def _paper_mean(privacy: Privacy, levels: int) -> float:
    """The paper's blanket with an equal part of epsilon and delta for each level."""
    return paper_blanket(Privacy(privacy.epsilon / levels, privacy.delta / levels))
