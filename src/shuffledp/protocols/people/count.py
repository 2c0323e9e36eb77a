"""What all counts of people's rows share: whole numbers 0..at_most a person, and the same references."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.protocols.domains.repeated import RowCounts
from shuffledp.protocols.fields import domain
from shuffledp.protocols.sums.plan import SumPlan
from shuffledp.references.curator_sums import curator_errors
from shuffledp.references.local_bounded import local_bounded_standard_error


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCountPlan(SumPlan):
    """How many rows are a yes, where a person has many and at most `at_most` of them count.

    Each device adds up its own rows first. Whoever has fewer rows has fewer ones: what is sent is always as much. The
    neighbour replaces all of a person's rows, so that the count moves by at most `at_most`.
    """

    protocol: ClassVar[str] = "repeated-count"
    theory_page: ClassVar[str] = "docs/theory/people-and-groups.md"
    title: ClassVar[str] = "A private count of rows"
    unit: ClassVar[str] = " rows"

    at_most: int = domain("[1, 1000]")

    @property
    def domain(self) -> RowCounts:
        return RowCounts(self.at_most)

    def reference(self) -> dict[str, float | None]:
        alone = local_bounded_standard_error(self.users, self.privacy, 0, self.at_most)
        return curator_errors(self.privacy, apart=self.at_most, moved=self.at_most, local=alone)

    def true_value(self, values: ArrayLike) -> float:
        return float(np.sum(self.check_values(values), dtype=np.int64))

    @property
    def question(self) -> str:
        return f"count the ones among the rows of {self.users:,} users, at most {self.at_most:,} rows of each"

    @property
    def neighbours(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """A person without a one, one with as many as may be, and everybody else."""
        none, most = np.array([0]), np.array([self.at_most])
        return none, most, none
