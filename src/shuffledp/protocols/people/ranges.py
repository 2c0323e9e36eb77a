"""Ranges and quantiles of people's rows: a tree over the values, and one cell more for rows that nobody has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.groups import one_step
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Reports
from shuffledp.protocols.domains.axes import Axis, as_axes
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.domains.repeated import RowPlaces, check_at_most
from shuffledp.protocols.family import AT_MOST, Choice, Family
from shuffledp.protocols.fields import AGAIN, domain, forwarded
from shuffledp.protocols.people.steps import StepsPlan
from shuffledp.protocols.presentation import Presentation, View
from shuffledp.protocols.ranges import AXES, Ranges, axes_asked
from shuffledp.protocols.ranges.bounds import DecoyWeights
from shuffledp.protocols.ranges.estimates import RangeEstimate
from shuffledp.protocols.ranges.tree import present_ranges
from shuffledp.protocols.request import Request
from shuffledp.references.range_trees import best_curator_tree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowRanges(RangeEstimate):
    """All ranges of rows on one axis, from one estimate; how many rows there are is known with noise, too."""

    @property
    def total(self) -> float:
        """How many rows there are in all, of which ranks are parts: as estimated, and not below 0."""
        return max(0.0, float(self.prefixes()[-1]))

    @property
    def rank_bound(self) -> float:
        """No value's rank is further off: its own number and the total may both be, in opposite directions."""
        return 2 * self.prefix_bound / self.total if self.total > 2 * self.prefix_bound else 1.0

    def reach(self, q: float) -> float:
        """How far off the number of rows at or below a value, less a part q of all, is at most.

        Where no row seems to be there, any value may be a quantile.
        """
        return (1 + q) * self.prefix_bound if self.total > 0 else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRanges(StepsPlan):
    """How many rows lie in each range of values, where a person has many and at most `at_most` of them count.

    `sum_plan` is a tree over the values and one cell behind them, for rows that a person does not have.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = RepeatedRangesFamily.plan(users=3000, privacy=Privacy(2, 1e-6), domain=(0, 99), at_most=2)
    >>> people = plan.encode([[10, 30], [50], []] * 1000)
    >>> median = plan.ranges(simulate(plan, people, bits=RandomBits.secure())).median()
    >>> 25 <= median.value <= 35 and median.lower <= 30 <= median.upper
    True
    """

    protocol: ClassVar[str] = "repeated-ranges"
    title: ClassVar[str] = "Private counts of all ranges of rows"
    unit: ClassVar[str] = " rows of every value"
    file_command: ClassVar[str] = "quantile"
    counted_in: ClassVar[str] = "the ranges, whatever values they have"
    summed = Ranges

    axes: tuple[Axis, ...] = domain(read=as_axes, write=lambda axes: [axis.document() for axis in axes])
    branching: tuple[int, ...] = domain("[2, inf)", read=tuple)
    at_most: int = domain("[1, 1000]")

    @classmethod
    def sum_domain(cls, *, axes: Any, branching: Sequence[int], at_most: int) -> dict[str, Any]:  # type: ignore[override]
        check_at_most(at_most)
        return {"axes": cells_and_none(axes), "branching": tuple(branching)}

    @classmethod
    def for_request(  # type: ignore[override]
        cls, request: Request, *, method: str = "auto", axes: Any, at_most: int, branching: int | None = None
    ) -> Self:
        """The tree for all rows of everybody, at the privacy of one."""
        rows = cls.row_request(request, at_most)
        kind = cls.summed.methods["tree" if method == "auto" else method]
        tree = kind.for_request(rows, axes=cells_and_none(axes), branching=branching)
        return cls.of_people(tree, request.common, axes=as_axes(axes), branching=tree.branching, at_most=at_most)

    @classmethod
    def check_saved(cls, domain: Mapping[str, Any]) -> None:
        for name in ("axes", "branching"):
            if not isinstance(domain[name], list):
                raise DataError(f"plan.{name}", domain[name], "must be a list", AGAIN)

    @property
    def domain(self) -> RowPlaces:
        return RowPlaces(self.axes[0], self.at_most)

    @property
    def options(self) -> str:
        return f"{self.domain.options} --branching {self.branching[0]}"

    errors = forwarded("sum_plan.errors")
    further_numbers = forwarded("sum_plan.further_numbers")

    def level_weights(self, functionals: Sequence[Floats]) -> list[DecoyWeights]:
        """What each level's counts weigh in the estimate of a sum over the values; no row weighs nothing."""
        (functional,) = functionals
        found: list[DecoyWeights] = self.sum_plan.level_weights([np.append(functional, 0.0)])
        return found

    def ranges(self, estimate: VectorEstimate) -> RowRanges:
        """Every range, the distribution function and quantiles of all rows, from an estimate of this plan."""
        return RowRanges(plan=self, values=estimate)

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        """Quantiles with their intervals, and the distribution function."""
        return present_ranges(self, self.ranges(estimate), truth, view)

    def facts(self) -> list[tuple[str, str]]:
        errors = self.errors
        each = f"exactly {self.at_most:,} rows of every user, filled up with rows of no value"
        return [
            ("what counts", each),
            ("each user sends", self.sends),
            ("levels", ", ".join(f"{nodes:,}" for nodes in self.sum_plan.level_sizes) + " nodes"),
            ("worst prefix", f"standard error {errors.prefix:.4g} rows"),
            ("all prefixes", f"within {errors.prefix_bound:,.4g} rows, 95% confidence"),
            ("one lying client", self.lying_client),
        ]

    def reference(self) -> dict[str, float | None]:
        """A trusted curator's tree with noise for all of a person's rows."""
        curator = best_curator_tree(one_step(self.privacy, self.at_most), self.axes[0].size)
        return {
            "paper_standard_error": None,
            "central_standard_error": curator.value_error,
            "local_standard_error": None,
        }

    @property
    def question(self) -> str:
        return (
            f"count the rows of {self.users:,} users in all ranges of {self.axes[0]}, at most {self.at_most:,} of each"
        )

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.sum_plan.end_ratios(reports, trials, replaced=self.at_most)
        return found


def cells_and_none(axes: Any) -> tuple[Axis, ...]:
    """The codes of one axis, and one more for a row that a person does not have.

    Raises:
        ParameterError: there are two axes.

    >>> cells_and_none((10, 19))
    (Axis(low=0, high=10, steps=None),)
    """
    found = as_axes(axes)
    if len(found) != 1:
        way_out = "ask for each axis alone, or make one row a person first"
        raise ParameterError("domain", f"{len(found)} axes", "must be one where people have several rows", way_out)
    return (Axis(0, found[0].size),)


class RowTrees(Family[RepeatedRanges]):
    """Trees of people's rows: the domain must be one axis."""

    def choice(self, request: Request, *, method: str = "auto", **domain: Any) -> Choice[RepeatedRanges]:
        """The tree with the least error of the worst prefix within the messages allowed, and why."""
        if method != "auto":
            self._tried(method)
        given = self.read_domain(domain)
        plan = RepeatedRanges.for_request(request, method=method, axes=axes_asked(given), **given)
        levels = f"{len(plan.sum_plan.levels)} levels of branching {plan.branching[0]}"
        sent = f"{plan.messages_per_user_mean:.3g} messages a user for its {plan.at_most} rows"
        why = f"{plan.method}: {levels}; all prefixes within {plan.errors.prefix_bound:,.4g} rows with {sent}"
        return Choice(plan, why if method == "auto" else f"{why}; as asked")


RepeatedRangesFamily = RowTrees(
    RepeatedRanges.protocol,
    "How many rows lie in each range of --domain, where a person has several and at most --at-most of them count.",
    MappingProxyType(dict.fromkeys(("tree", "dyadic"), RepeatedRanges)),
    domain=(*AXES, AT_MOST),
)
