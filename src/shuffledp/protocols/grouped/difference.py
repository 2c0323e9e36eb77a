"""The difference of two groups, as in an A/B test: of the people who reported, and of those they are a sample of."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp import markup
from shuffledp.errors import ParameterError
from shuffledp.estimates import Estimate
from shuffledp.protocols.grouped.estimates import Floats, GroupsEstimate, means_in_range, part_of_range, places_of
from shuffledp.protocols.presentation import Chart

CONFIDENCE = 0.95
# Two-sided 95% points, in standard deviations: of a normal law, and of a Laplace law, the heaviest tail of the noise.
_NORMAL = 1.959964
_LAPLACE = math.log(20) / math.sqrt(2)
# Added to each end of a group, as Agresti and Caffo do: a rate of 0 or 1 in a small sample is not taken for certain.
_ADDED = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean, or rate, of one group less that of another.

    Attributes:
        first: the group that is compared with, A.
        second: the group that is compared, B: the difference is B less A.
        estimate: the difference; its bound is proved, for the people who reported and whatever their data, and is
            wide: all numbers of both groups may be off at once.
        people: an interval for the people who reported: only the noise is open.
        population: an interval for everybody of whom those who reported are independent draws: noise and sampling.
        groups: the numbers of all groups that it was made of.
        sampling_error: what counts as the standard error of sampling people from the population.
        knows_variance: whether that is people's own, as of bits and where squares were asked for; if not, it is the
            largest that they may have.
        deviations: the standard deviations of both groups' numbers, as far as the noise tells; None where squares
            were not asked for, and where a group may be empty.
        rows: how many rows of one person count; all of them may be alike, and sampling counts as if they were.
        confidence: of each of the two intervals.
    """

    first: str
    second: str
    estimate: Estimate
    people: tuple[float, float]
    population: tuple[float, float]
    groups: GroupsEstimate
    sampling_error: float
    knows_variance: bool = True
    deviations: tuple[float, float] | None = None
    rows: int = 1
    confidence: float = CONFIDENCE

    @property
    def plan(self) -> Any:
        """The plan that it was made by, where its maker said so."""
        return self.groups.plan

    def __float__(self) -> float:
        return float(self.estimate.value)

    @property
    def differs(self) -> bool:
        """Whether the interval of the population leaves 0 out."""
        lower, upper = self.population
        return lower > 0 or upper < 0

    @property
    def verdict(self) -> str:
        """Whether the groups differ, in words; where that cannot be told, why, and what would help."""
        if self.differs:
            return "yes: 0 lies outside the population's interval"
        told = "cannot be told: 0 lies in the population's interval"
        if not math.isfinite(self.sampling_error):
            return f"{told}, which is the whole range, as a group may be empty"
        sampling, noise = _NORMAL * self.sampling_error, _LAPLACE * self.estimate.standard_error
        told += f", as sampling leaves it open by {sampling:.3g} to either side and noise by {noise:.3g}"
        if noise > sampling:
            return f"{told}; a larger epsilon or more people would make it narrower"
        more = "; more people would make it narrower"
        if self.rows > 1:
            more += ", and so would fewer rows of each: rows of one person count as if they were alike"
        if not self.knows_variance:
            more += (
                ", and so would a narrower range: numbers count with the largest variance that they may have in it, as "
                "their own is not asked for"
            )
        return told + more

    def chart(self, what: str, title: str, truth: Any = None) -> Chart:
        """A picture of the groups and of the difference with both intervals.

        Args:
            what: what the groups' numbers are.
            title: of the picture.
            truth: the groups' true numbers, where they may be shown.
        """
        names, groups = self.groups.names, self.groups
        true = None if truth is None else np.asarray(truth, dtype=np.float64)
        apart = None if true is None else float(true[names.index(self.second)] - true[names.index(self.first)])
        return Chart(
            "difference",
            {
                "names": list(names),
                "estimates": groups.value,
                "intervals": (groups.lower, groups.upper),
                "what": f"{self.second} less {self.first}",
                "value": float(self),
                "told": (("for these people", self.people), ("for the population", self.population)),
                "confidence": self.confidence,
                "measures": what,
                "title": title,
                "truth": true,
                "apart": apart,
            },
        )

    def _repr_html_(self) -> str:
        """The difference, its intervals and both groups, as notebooks show them."""
        sure = f"with {self.confidence:.0%} confidence"
        rows = [
            (f"{self.second} less {self.first}", f"{self.estimate.value:+.4g}"),
            ("for these people", f"{self.people[0]:+.4g} to {self.people[1]:+.4g} {sure}"),
            ("for the population", f"{self.population[0]:+.4g} to {self.population[1]:+.4g} {sure}"),
            ("do they differ", self.verdict),
        ]
        pictures = [markup.interval(self.estimate.value, *ends) for ends in (self.people, self.population)]
        return markup.section(markup.facts("A difference of two groups", rows), *pictures, self.groups._repr_html_())

    def __str__(self) -> str:
        (low, high), (least, most) = self.people, self.population
        shown = f"{self.second} less {self.first}: {self.estimate.value:+.4g}"
        told = f"{low:+.4g} to {high:+.4g} for these people, {least:+.4g} to {most:+.4g} for the population"
        return f"{shown} ({told}; {self.confidence:.0%} each)"


def difference(
    estimate: GroupsEstimate,
    first: str,
    second: str,
    *,
    low: float = 0.0,
    high: float = 1.0,
    knows_variance: bool = True,
    rows: int = 1,
) -> Difference:
    """The mean of the second group less that of the first, with two intervals.

    Let p be where the mean of a group of n people lies in the range, from 0 to 1, and e the error of one of its parts
    (`ends_error`), which lie at places t of the range.

    For these people: noise of a part, at least one person, counts (t - p)/n, so that the difference has a standard
    error of at most the root of the sum, over both groups and their parts, of e^2 (t - p)^2 / n^2, n as few as they may
    well be; the interval takes the 95% point of a Laplace law, the heaviest tail that the noise has.

    For the population: squared places add up to the last part where there are three, so that it less p^2 is people's
    variance; where there are two, it is p (1 - p), the largest there may be and that of bits. Deviations of both kinds
    are counted with their own 95% points, and one more person is counted at either end of each group. Where people
    have several rows, all of one person's may be alike: sampling counts as if they were.

    Both are approximations, measured by simulation; the estimate's bound is proved: all ends are within theirs at
    once, so that each mean lies in its interval.

    Args:
        estimate: means or rates of groups.
        first: the group that is compared with.
        second: the group that is compared.
        low: the smallest value of a person.
        high: the largest value of a person.
        knows_variance: whether their own variance is known: by three parts of a group, or by the mean of bits.
        rows: how many rows of one person count.

    Raises:
        ParameterError: a group is not one of the estimate's, or both are the same.
    """
    for name, group in (("first", first), ("second", second)):
        if group not in estimate.names:
            raise ParameterError(name, group, f"must be one of {', '.join(estimate.names)}", "name two groups")
    if first == second:
        raise ParameterError("second", second, "must be another group than the first", "name two groups")
    ends = np.array([estimate.ends[estimate.names.index(group)] for group in (first, second)])
    width, bound = high - low, estimate.ends_bound
    part, least, most = means_in_range(ends, bound)
    proved = width * float(least[1] - most[0]), width * float(most[1] - least[0])
    value = width * float(part[1] - part[0])
    counted = np.maximum(ends, 0.0)
    counted[:, [0, -1]] += _ADDED * rows
    sizes, places = counted.sum(axis=1), places_of(ends.shape[1])
    rates = part_of_range(counted, 0.5)
    # Noise is that of the people there are, as few as they may well be: those who are added would make it look smaller.
    # At a large epsilon it is nobody, or sometimes one: the interval reaches as far as one.
    error = max(estimate.ends_error, 1 / _LAPLACE)
    fewer = np.maximum(ends, 0.0).sum(axis=1) - math.sqrt(ends.shape[1]) * error
    off = ((places - part[:, np.newaxis]) ** 2).sum(axis=1)
    noise = float(np.sum(error**2 * off / np.maximum(fewer, 1.0) ** 2))
    sampling = float(np.sum(rows * _variances(counted) / sizes))
    people = population = -width, width
    sampled, deviations = math.inf, None
    # A group that may be empty says nothing.
    if float(ends.sum(axis=1).min()) > ends.shape[1] * bound:
        people = _around(value, width * _LAPLACE * math.sqrt(noise), width)
        sampled = width * math.sqrt(sampling)
        if ends.shape[1] > 2:
            first_own, second_own = np.sqrt(_variances(np.maximum(ends, 0.0))).tolist()
            deviations = width * first_own, width * second_own
        reach = width * math.sqrt(_NORMAL**2 * sampling + _LAPLACE**2 * noise)
        population = _around(width * float(rates[1] - rates[0]), reach, width)
    return Difference(
        first=first,
        second=second,
        estimate=Estimate(
            value=value,
            standard_error=width * math.sqrt(noise),
            bound=max(value - proved[0], proved[1] - value),
            **{note: getattr(estimate, note) for note in ("confidence", "dropped", "clipped", "simulated")},
        ),
        people=people,
        population=population,
        groups=estimate,
        sampling_error=sampled,
        knows_variance=knows_variance,
        deviations=deviations,
        rows=rows,
    )


def _variances(parts: Floats) -> Floats:
    """The variance of each group, in squares of the range, from its parts that are not below 0.

    With two of them it is the largest that numbers with this mean may have. Noise may leave less than nothing of the
    variance of people who are all alike.
    """
    means = part_of_range(parts, 0.5)
    return np.asarray(np.maximum(parts[:, -1] / parts.sum(axis=1) - means**2, 0.0))


def _around(middle: float, reach: float, width: float) -> tuple[float, float]:
    """The interval of this reach around a difference, which is never larger than the range's width."""
    return max(-width, middle - reach), min(width, middle + reach)
