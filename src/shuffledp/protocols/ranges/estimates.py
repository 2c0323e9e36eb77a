"""What an estimate of all values says about ranges, the distribution function and quantiles."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.notebook import presentation_html
from shuffledp.protocols.presentation import View, shown_value
from shuffledp.protocols.ranges.bounds import one_sum_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A value of the domain, a number or a day in ISO form, and an interval that holds the true quantile.

    With CONFIDENCE, for all quantiles at once, some user's value with the rank asked for lies in lower..upper.
    """

    q: float
    value: Any
    lower: Any
    upper: Any
    confidence: float

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{shown_value(self.value)} (the {self.q:g} quantile lies in {self.interval})"

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"{shown_value(self.lower)}..{shown_value(self.upper)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridEstimate:
    """All rectangles of two axes, or all ranges of one, from one estimate."""

    plan: Any
    values: VectorEstimate

    def count(self, *ranges: Any) -> Estimate:
        """How many users lie in a rectangle: a range (low, high) of each axis.

        Both ends are included; they must be values, or ends of cells.
        """
        functionals, inside = [], []
        for axis, ends in zip(self.plan.axes, ranges, strict=True):
            low, high = axis.codes_between(*ends)
            inside.append(slice(low, high + 1))
            functionals.append(np.zeros(axis.size))
            functionals[-1][inside[-1]] = 1.0
        levels, values = self.plan.level_weights(functionals), self.values
        return Estimate(
            value=float(values.value.reshape([axis.size for axis in self.plan.axes])[tuple(inside)].sum()),
            standard_error=math.sqrt(sum(level.variance for level in levels)),
            bound=one_sum_bound(levels) + values.dropped * self.plan.message_influence,
            confidence=CONFIDENCE,
            dropped=values.dropped,
            simulated=values.simulated,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RangeEstimate(GridEstimate):
    """All ranges of one axis, from one estimate.

    Attributes:
        ranks: the quantiles that are shown; any other can be asked for as well.
    """

    ranks: tuple[float, ...] = (0.25, 0.5, 0.75)

    def __getitem__(self, rank: float) -> Quantile:
        """The quantile of this rank, any between 0 and 1."""
        return self.quantile(rank)

    def __iter__(self) -> Iterator[float]:
        return iter(self.ranks)

    def as_dict(self) -> dict[float, Any]:
        """The quantiles that are shown, by their ranks."""
        return {rank: self.quantile(rank).value for rank in self.ranks}

    def __str__(self) -> str:
        found = map(self.quantile, self.ranks)
        each = [f"{one.q:g}: {shown_value(one.value)} ({one.interval})" for one in found]
        seeded = "; a simulation: seeded bits protect nobody" if self.values.simulated else ""
        return f"quantiles {', '.join(each)}; all with {CONFIDENCE:.0%} confidence{seeded}"

    def _repr_html_(self) -> str:
        """Quantiles and the distribution function, as notebooks show them."""
        shown = self.plan.present(self.values, None, View(quantiles=self.ranks))
        return presentation_html(shown, self.plan.title)

    def count(self, low: Any, high: Any) -> Estimate:
        """How many users have a value of low..high, both included; ends must be values, or ends of cells."""
        return GridEstimate.count(self, (low, high))

    @property
    def prefix_bound(self) -> float:
        """All prefixes are within this at once, with CONFIDENCE."""
        return float(self.plan.errors.prefix_bound + self.values.dropped * self.plan.errors.reach)

    def prefixes(self) -> Floats:
        """How many users have each value or a smaller one: as estimated, so not always rising."""
        return np.cumsum(self.values.value)

    @property
    def total(self) -> float:
        """How many there are in all, users here, of whom ranks are parts."""
        return float(self.plan.users)

    @property
    def rank_bound(self) -> float:
        """No value's rank is further off, of all at once, with CONFIDENCE."""
        return self.prefix_bound / self.total

    def reach(self, q: float) -> float:
        """How far off the number of users at or below a value is at most, beside a part q of the total."""
        return self.prefix_bound

    def cdf(self) -> Floats:
        """The distribution function at each value: the best rising fit between 0 and 1.

        The largest error does not grow: the fit is midway between the largest so far and the least to come.
        """
        raw = self.prefixes() / (self.total or 1.0)
        rising = (np.maximum.accumulate(raw) + np.minimum.accumulate(raw[::-1])[::-1]) / 2
        return np.clip(rising, 0.0, 1.0)

    def quantile(self, q: float) -> Quantile:
        """The value of rank q, and every value whose true rank can be q."""
        if not 0 <= q <= 1:
            raise ParameterError("q", q, "must lie in [0, 1]", "0.5 is the median")
        axis, share = self.plan.axes[0], self.cdf()
        bound = self.reach(q) / (self.total or 1.0)
        # The true quantile is the first value with F >= q; |F - cdf| <= bound at all values.
        lower = _first(share >= q - bound)
        upper = _first(share >= q + bound)
        return Quantile(
            q=q,
            value=axis.middle(_first(share >= q)),
            lower=axis.start(lower),
            upper=axis.end(upper),
            confidence=CONFIDENCE,
        )

    def median(self) -> Quantile:
        """The quantile one half."""
        return self.quantile(0.5)


def _first(reached: NDArray[np.bool_]) -> int:
    """The first place that is true; the last one where none is."""
    return int(reached.argmax()) if reached.any() else reached.size - 1
