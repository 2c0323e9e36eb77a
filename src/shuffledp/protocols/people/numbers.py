"""What sums, means and variances of people's rows have in common: rows in a range, and at most so many of each user."""

from dataclasses import dataclass
from typing import ClassVar

from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.family import DomainParameter
from shuffledp.protocols.fields import domain

ROW_RANGE = (
    DomainParameter(
        "low", way_out="add --low, the lowest value of a row", meaning="the lowest value that a row may have."
    ),
    DomainParameter(
        "high", way_out="add --high, the highest value of a row", meaning="the highest value that a row may have."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowNumbersPlan(DerivedPlan):
    """A statistic of all rows, each in [low, high], where a person has many and at most `at_most` of them count."""

    asks: ClassVar[str]
    """What is done with the rows, in words."""

    low: float = domain(read=float)
    high: float = domain(read=float)
    at_most: int = domain("[1, 1000]")

    @property
    def question(self) -> str:
        each = f"each in [{self.low:g}, {self.high:g}], at most {self.at_most:,} of each user"
        return f"{self.asks} the rows of {self.users:,} users, {each}"
