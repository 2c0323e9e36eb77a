"""What a distribution test is asked: which law is claimed, and how far from it users must be to be seen."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from shuffledp.errors import ParameterError
from shuffledp.protocols.distribution_test.cells import Cells, check_claim
from shuffledp.protocols.distribution_test.moments import smallest_distance_squared
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Categories, Codes, Floats
from shuffledp.randomness import RandomBits
from shuffledp.references.null_laws import hard_departure, hard_law

Certificate = Literal["simulated", "proved"]
_cells = lru_cache(maxsize=16)(Cells.of)


def _is_between(value: Any, low: float, high: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low < value <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What is tested, checked before anything is searched for.

    Attributes:
        categories: which there are.
        distance: the total variation distance from the claim that must be seen.
        against: the claimed probability of each category; uniform if left out.
        false_alarm: the probability to reject a true claim, at most.
        certificate: whether the threshold is simulated from the null law, or proved by inequalities alone.
    """

    categories: Categories
    distance: float
    against: tuple[float, ...] | None = None
    false_alarm: float = 0.05
    certificate: Certificate = "simulated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "categories", as_categories(self.categories))
        size = self.categories.size
        if not _is_between(self.distance, 0, 1 - 1 / size):
            problem = f"must lie in (0, {1 - 1 / size:.6g}]"
            raise ParameterError("distance", self.distance, problem, "0.25 is a total variation distance")
        if not _is_between(self.false_alarm, 0, math.nextafter(1.0, 0.0)):
            raise ParameterError("false_alarm", self.false_alarm, "must lie strictly between 0 and 1", "0.05 is usual")
        if self.against is not None:
            object.__setattr__(self, "against", check_claim(self.against, size))
        if self.certificate not in ("simulated", "proved"):
            raise ParameterError("certificate", self.certificate, "must be simulated or proved", "simulated is sharper")

    @property
    def cells(self) -> Cells | None:
        """Equal cells that users of the claimed law are uniform over; None where the claim is uniform itself."""
        return None if self.against is None else _cells(self.against)

    @property
    def size(self) -> int:
        """How many cells there are, or categories where these are claimed to be uniform."""
        return self.categories.size if self.cells is None else self.cells.size

    @property
    def distance_kept(self) -> float:
        """The part of a distance from the claim that is left over the cells."""
        return 1.0 if self.cells is None else self.cells.distance_kept

    @property
    def rounding(self) -> float:
        """How far the claim is from the one that the cells are exact for."""
        return 0.0 if self.cells is None else self.cells.rounding

    def law(self, probabilities: Floats) -> Floats:
        """The law over the cells of users with this law over the categories."""
        return probabilities if self.cells is None else self.cells.law(probabilities.tolist())

    def hard_law(self) -> Floats:
        """A law over the cells that is hard to see: pairs of bins, one up and one down, as far away as must be seen."""
        if self.cells is None:
            return hard_law(self.distance, self.size)
        return self.law(hard_departure(self.cells.claim, self.distance))

    def assign(self, codes: Codes, *, bits: RandomBits) -> Codes:
        """The cell of each user's category, by exact private coins."""
        return codes if self.cells is None else self.cells.assign(codes, bits=bits)

    def distance_squared(self, rounding: float = 0.0) -> float:
        """The least D over the cells that a distant law has, where the claim may be this much nearer."""
        return smallest_distance_squared(max(0.0, self.distance * self.distance_kept - rounding), self.size)

    @property
    def proved_threshold(self) -> float:
        """Cantelli's inequality: a true claim's score is above this with probability `false_alarm` at most."""
        return math.sqrt((1 - self.false_alarm) / self.false_alarm)
