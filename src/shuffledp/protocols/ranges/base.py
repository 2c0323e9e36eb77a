"""What all range counts share: a user sends the nodes that its value is in, and decoys, level by level."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache, reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.products import ProductPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.errors import ParameterError
from shuffledp.messages import Reports
from shuffledp.protocols.counted import CountedPlan
from shuffledp.protocols.domains.axes import AnyAxes, Axes, Axis, as_axes
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.error_bounds import remembered
from shuffledp.protocols.fields import AGAIN, domain, forwarded, noise
from shuffledp.protocols.histogram.blanket import blanket_sizes
from shuffledp.protocols.histogram.decoys import with_decoys, without_decoys
from shuffledp.protocols.presentation import ALONE, APART, CURATOR, TRUST, Column, Listing, ListingRow
from shuffledp.protocols.ranges.bounds import DecoyWeights
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below
from shuffledp.schedules.interval_trees import IntervalTree, TreeSquares

LARGEST_COINS = 1 << 20
LARGEST_DOMAIN = 1 << 22
# In an audit, steps of the logarithm of the likelihood ratio.
_STEPS = 50


@lru_cache(maxsize=64)
def _product(throws: tuple[tuple[int, float], ...]) -> ProductPair:
    return ProductPair([BallsPair(balls, hit) for balls, hit in throws])


@dataclass(frozen=True, slots=True)
class Errors:
    """What a plan's estimates can be off by.

    Rounded up to about eight digits, which every machine agrees on: plans are compared by the numbers in their files.
    """

    value: float  # standard error of the worst single value
    value_bound: float  # all values at once
    prefix: float  # standard error of the worst prefix
    prefix_bound: float  # all prefixes at once
    reach: float  # how far one message can move a prefix

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, float(f"{getattr(self, field.name) * (1 + 1e-8):.9g}"))


@lru_cache(maxsize=32)
def tree_squares(tree: IntervalTree, variances: tuple[float, ...], root: float = 0.0) -> TreeSquares:
    """Least squares on a tree whose levels' counts have these variances, and whose root's has this; cached."""
    return TreeSquares(tree, variances, root)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesPlan(CountedPlan):
    """Counts of all ranges of values, from a tree over the values of each axis.

    Values are codes 0, 1, ... along each axis; `axes` says what they stand for. At each level (two dimensions: at each
    pair of levels) a user sends the node it is in and up to `coins` decoys, nodes drawn uniformly from that level, each
    with its level's probability.
    """

    protocol: ClassVar[str] = "ranges"
    theory_page: ClassVar[str] = "docs/theory/range-queries.md"
    file_command: ClassVar[str] = "quantile"
    title: ClassVar[str] = "Private counts of all ranges"

    law: ClassVar[str] = "blankets"
    curve: ClassVar[str] = "the levels' two-bin pairs, composed exactly"
    drawn: ClassVar[str] = "coins and decoys are drawn exactly"
    dominates_because: ClassVar[str] = (
        "With all others' values known the view is, level by level, the user's node among honest users' decoys, "
        "independent between levels. Two values are in at most two nodes a level, and a level where they share one "
        "shows nothing: the product over all levels is the worst."
    )

    axes: tuple[Axis, ...] = domain(read=as_axes, write=lambda axes: [axis.document() for axis in axes])
    branching: tuple[int, ...] = domain("[2, inf)", read=tuple)
    coins: tuple[int, ...] = noise(f"[1, {LARGEST_COINS}]")
    probabilities: tuple[float, ...] = noise("(0, 1]")

    @classmethod
    @abstractmethod
    def checked_axes(cls, axes: AnyAxes) -> tuple[Axis, ...]:
        """The axes, or a ParameterError where they are too many, too few or too long for this method."""

    def _check_domain(self) -> None:
        self.checked_axes(self.axes)
        if not isinstance(self.branching, list | tuple) or len(self.branching) != len(as_axes(self.axes)):
            raise ParameterError("branching", self.branching, "must be one number an axis", AGAIN)

    def _check_noise(self) -> None:
        super(RangesPlan, self)._check_noise()
        if self.size > LARGEST_DOMAIN:
            raise ParameterError("domain", self.size, f"must have at most {LARGEST_DOMAIN} cells", "take wider steps")
        if sum(self.level_sizes) >= 1 << 32:
            raise ParameterError("branching", self.branching, "makes too many nodes", "take a larger one")
        levels = len(self.levels)
        if len(self.coins) != levels or len(self.probabilities) != levels:
            raise ParameterError("coins", self.coins, f"must be {levels} numbers, one a level", AGAIN)

    @property
    def domain(self) -> Axes:
        return Axes(self.axes)

    @property
    def options(self) -> str:
        return f"{self.domain.options} --branching {self.branching[0]}"

    @remembered
    def trees(self) -> tuple[IntervalTree, ...]:
        """The tree over the values of each axis."""
        return tuple(IntervalTree(axis.size, each) for axis, each in zip(self.axes, self.branching, strict=True))

    @property
    def size(self) -> int:
        """How many values there are, in all dimensions together."""
        return math.prod(axis.size for axis in self.axes)

    @property
    @abstractmethod
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The levels that are sent, each as a level of every axis."""

    @remembered
    def level_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Nodes along each axis, of every level that is sent."""
        trees = self.trees
        return tuple(tuple(tree.nodes(each) for tree, each in zip(trees, level, strict=True)) for level in self.levels)

    @property
    def level_sizes(self) -> tuple[int, ...]:
        """Nodes of every level that is sent."""
        return tuple(math.prod(shape) for shape in self.level_shapes)

    @property
    def _thrown(self) -> Iterable[tuple[int, float, int]]:
        """Coins, their probability and the nodes they fall into, level by level."""
        return zip(self.coins, self.probabilities, self.level_sizes, strict=True)

    @property
    def blanket_means(self) -> tuple[float, ...]:
        """Decoys of all users in one node, on average, level by level."""
        return tuple(self.users * coins * probability / nodes for coins, probability, nodes in self._thrown)

    @property
    def messages_per_user_mean(self) -> float:
        return len(self.levels) + float(np.dot(self.coins, self.probabilities))

    @property
    def messages_per_user_max(self) -> int:
        return len(self.levels) + sum(self.coins)

    @property
    def alphabet_size(self) -> int:
        return sum(self.level_sizes)

    @property
    @abstractmethod
    def errors(self) -> Errors:
        """What the estimates can be off by, from the weights of all counts."""

    @property
    @abstractmethod
    def squares(self) -> tuple[TreeSquares, ...]:
        """Least squares along each axis."""

    standard_error = forwarded("errors.value")

    @property
    def influence(self) -> float:
        """How far one client that lies can move a prefix."""
        return self.messages_per_user_max * self.errors.reach

    error_bound = forwarded("errors.value_bound")

    @property
    def message_influence(self) -> float:
        """How far one message can move a range, which is a difference of prefixes: two, or four corners."""
        return float(1 << len(self.axes)) * self.errors.reach

    @property
    def lying_client(self) -> str:
        return f"moves a prefix by at most {self.influence:.3g}: {self.errors.reach:.3g} for each of its messages"

    def further_numbers(self) -> dict[str, Any]:
        errors = self.errors
        return {
            "values_bound": errors.value_bound,
            "prefix_standard_error": errors.prefix,
            "prefix_bound": errors.prefix_bound,
        }

    def level_weights(self, functionals: Sequence[Floats]) -> list[DecoyWeights]:
        """What each level's counts weigh in the estimate of a product of sums, one factor an axis."""
        sides = []
        for squares, functional in zip(self.squares, functionals, strict=True):
            distinct = [np.unique(level, return_counts=True) for level in squares.weights(functional)]
            sides.append([(weights, times / times.sum()) for weights, times in distinct])
        found = []
        for level, coins, probability in zip(self.levels, self.coins, self.probabilities, strict=True):
            factors = [side[each] for side, each in zip(sides, level, strict=True)]
            weights, shares = (reduce(np.multiply.outer, part).reshape(-1) for part in zip(*factors, strict=True))
            found.append(DecoyWeights(self.users * coins, probability, weights, shares))
        return found

    def techniques(self) -> list[dict[str, Any]]:
        """The survey's Table 6 without its constants, at these parameters: growth, not figures."""
        dimensions, logarithm = len(self.axes), math.log2(self.size)
        epsilon, delta = self.privacy.epsilon, self.privacy.delta
        rows = [
            ("count-min", 2 * dimensions + 1.5, 3 * dimensions + 3, math.log(1 / delta)),
            ("hadamard", 2 * dimensions + 0.5, 2 * dimensions, math.log(1 / (epsilon * delta))),
        ]
        return [
            {
                "technique": name,
                "error_order": logarithm**error * last / epsilon,
                "messages_order": logarithm**messages * last / epsilon**2,
            }
            for name, error, messages, last in rows
        ]

    def facts(self) -> list[tuple[str, str]]:
        errors, people = self.errors, self.users
        return [
            ("each user sends", self.sends),
            ("levels", ", ".join(f"{nodes:,}" for nodes in self.level_sizes) + " nodes"),
            ("decoys in a node", ", ".join(f"{mean:.3g}" for mean in self.blanket_means)),
            ("worst prefix", f"standard error {errors.prefix:.4g} users, {errors.prefix / people:.3%} in rank"),
            (
                "all prefixes",
                f"within {errors.prefix_bound:,.4g} users, {errors.prefix_bound / people:.3%}, 95% confidence",
            ),
            ("one lying client", self.lying_client),
        ]

    def beside(self) -> dict[str, Any]:
        return {"techniques": self.techniques()}

    def compared(self) -> Listing:
        """Standard errors of one value and of the worst prefix beside others', and the survey's orders of growth."""
        reference = self.reference()
        reference |= {"own_standard_error": self.standard_error, "own_prefix_standard_error": self.errors.prefix}
        rows = [
            (f"this plan ({self.method})", "own", APART),
            ("trusted curator's tree", "central", CURATOR),
            ("the paper's constants, dyadic", "paper", "as this plan"),
            ("local model's tree", "local", ALONE),
        ]
        shown = []
        for name, key, trust in rows:
            errors = (reference.get(f"{key}_{of}standard_error") for of in ("", "prefix_"))
            shown.append(ListingRow((name, *("-" if error is None else f"{error:,.4g}" for error in errors), trust)))
        for row in self.techniques():
            order = f"order {row['error_order']:.3g}"
            shown.append(ListingRow((f"{row['technique']} (Table 6)", "", order, "as this plan, no constants")))
        whom = Column("whom one trusts", right=False, style="dim", width=40)
        columns = (Column("who", right=False), Column("one value"), Column("worst prefix"), whom)
        return Listing("Beside others", columns, tuple(shown), TRUST)

    def pair(self, honest: int) -> ProductPair:
        return _product(tuple((honest * coins, probability / nodes) for coins, probability, nodes in self._thrown))

    def epsilon_with(self, honest_fraction: float) -> float:
        return self.pair(honest_users(self.users, honest_fraction)).epsilon(self.privacy.delta)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"probabilities": tuple(part * each for each in self.probabilities)}

    def _nodes(self, codes: Codes) -> list[Codes]:
        """The node of every user, level by level."""
        columns = codes.reshape(len(codes), -1)
        found = []
        for level, shape in zip(self.levels, self.level_shapes, strict=True):
            node = np.zeros(len(codes), dtype=np.int64)
            for axis, (tree, each, nodes) in enumerate(zip(self.trees, level, shape, strict=True)):
                node = node * nodes + columns[:, axis] // tree.width(each)
            found.append(node)
        return found

    def true_value(self, values: ArrayLike) -> Floats:
        leaves = self._nodes(self.check_values(values))[-1]
        return np.bincount(leaves, minlength=self.size).astype(np.float64)

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        users, levels = len(codes), len(self.levels)
        sizes = np.empty((users, levels), dtype=np.int64)
        for level, (coins, probability) in enumerate(zip(self.coins, self.probabilities, strict=True)):
            sizes[:, level] = blanket_sizes(users, coins, probability, bits=bits)
        starts = (np.cumsum(sizes) - sizes.reshape(-1)).reshape(users, levels)
        payloads = np.empty(int(sizes.sum()), dtype=self._kind)
        offset = 0
        for level, (nodes, own) in enumerate(zip(self.level_sizes, self._nodes(codes), strict=True)):
            here, start = sizes[:, level], starts[:, level]
            drawn = uniform_below(nodes, int(here.sum()), bits=bits).astype(np.int64)
            first = np.cumsum(here) - here
            drawn[first] = own
            places = np.repeat(start - first, here) + np.arange(drawn.size)
            payloads[places] = drawn + offset
            offset += nodes
        return Reports(payloads, sizes.sum(axis=1))

    @abstractmethod
    def _leaves(self, counts: list[Floats]) -> Floats:
        """The values' estimates from the centred counts of every level."""

    def _own(self, seen: Codes) -> Sequence[Codes]:
        return np.split(seen, np.cumsum(self.level_sizes)[:-1])

    def _read(self, seen: Codes) -> Floats:
        """All but the users' own messages are decoys, so their number is seen: each node's share is taken off."""
        counts: list[Floats] = []
        for each, shape in zip(self._own(seen), self.level_shapes, strict=True):
            counts.append(without_decoys(each, self.users).reshape(shape))
        return self._leaves(counts).reshape(-1)

    def _summed(self, codes: Codes, bits: RandomBits) -> Codes:
        levels = zip(self._nodes(codes), self._thrown, strict=True)
        return np.concatenate([np.bincount(own, minlength=nodes) for own, (_, _, nodes) in levels])

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        levels = zip(self._own(summed), self._thrown, strict=True)
        return np.concatenate([with_decoys(own, self.users * coins, p, bits=bits) for own, (coins, p, _) in levels])

    @property
    def neighbours(self) -> tuple[Codes, Codes, Codes]:
        """The two ends of the domain, which share no node; all others have the first value, which is known."""
        ends = np.array([[0] * len(self.axes), [axis.size - 1 for axis in self.axes]], dtype=np.int64)
        low, high = (end.reshape(1, -1) if len(self.axes) > 1 else end for end in ends)
        return low, high, low

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The logarithm of the likelihood ratio of the two ends, in steps: all that a run says about which it is."""
        return self.end_ratios(reports, trials)

    def end_ratios(self, reports: Reports, trials: int, replaced: int = 1) -> NDArray[np.int64]:
        """How much more of the first end than of the last one is seen in each run, as a logarithm, in steps.

        Args:
            reports: of all runs.
            trials: how many runs there are.
            replaced: how many reports of a run are at one end or at the other; all others are of the first value.
        """
        low, high, others = (self._nodes(each) for each in self.neighbours)
        runs = np.repeat(np.arange(trials), reports.sizes.reshape(trials, -1).sum(axis=1))
        known = len(reports) // trials - replaced
        total, offset = np.zeros(trials), 0
        for level, nodes in enumerate(self.level_sizes):
            ends = []
            for side in (low, high):
                hits = reports.payloads == offset + int(side[level][0])
                count = np.bincount(runs[hits], minlength=trials)
                ends.append(count - known * int(side[level][0] == others[level][0]))
            # One of the two counts is at least 1; half a message keeps the logarithm finite.
            total += np.log((ends[0] + 0.5) / (ends[1] + 0.5)) * (low[level][0] != high[level][0])
            offset += nodes
        return np.rint(total * _STEPS).astype(np.int64)[:, np.newaxis]
