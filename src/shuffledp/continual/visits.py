"""Noise for users who come back to a running sum: every visit is another value of the same person.

A user visits at most M times, never twice in one slot, as in [002] Assumption 4.1. A batch of the lowest level is one
slot and holds one visit; a larger one may hold them all. So of k levels the first shows M shifts of one value's
length, each of the others at worst one shift of M lengths, and the squares add up to (M + (k - 1) M^2) lengths squared:
the Gaussian pair of all is that many times one batch's, adaptive choices included. Visits round anew: their failures
add up, as do transports.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from shuffledp.continual.views import UserView
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import SummedDomain
from shuffledp.protocols.states import is_whole
from shuffledp.protocols.sums.noise import BatchNoise


@dataclass(frozen=True, slots=True)
class Visits:
    """So many visits of a user to batches of so many levels, all of which have noise of their own."""

    count: int
    levels: int

    def __post_init__(self) -> None:
        check_visited(self.count)

    @property
    def squares(self) -> int:
        """How many single shifts tell as much together.

        >>> Visits(1, 4).squares, Visits(5, 1).squares, Visits(5, 2).squares
        (4, 5, 30)
        """
        return self.count + (self.levels - 1) * self.count**2

    def each(self, privacy: Privacy) -> Privacy:
        """The target of a plan that one visit joins: its part of what does not come from noise."""
        return each_visit(privacy, self.count)

    def view(self, domain: SummedDomain, privacy: Privacy) -> UserView:
        """All a user's batches."""
        return self.together(UserView.of(domain, self.levels, self.each(privacy)))

    def together(self, once: UserView) -> UserView:
        """All a user's batches, from what one visit shows."""
        widest = self.count if self.levels > 1 else 1
        return replace(
            once,
            batches=self.squares,
            largest_shift=once.largest_shift * widest,
            rounding_failure=once.rounding_failure * self.count,
            outside=once.outside * self.levels / self.squares,
        )

    def noise(self, domain: SummedDomain, privacy: Privacy) -> BatchNoise:
        """The least noise with which all visits together, and each one by itself, are private."""
        return _noise(self, domain, privacy)


def each_visit(privacy: Privacy, visits: int) -> Privacy:
    """The target of a plan that one of so many visits joins: delta is shared, as what fails adds up."""
    return Privacy(privacy.epsilon, privacy.delta / visits)


def check_visited(visits: int) -> None:
    """Refuse what is no number of visits."""
    if not is_whole(visits) or visits < 1:
        raise ParameterError("visits", visits, "must be a whole number >= 1", "1 if nobody returns")


@lru_cache(maxsize=64)
def _noise(visits: Visits, domain: SummedDomain, privacy: Privacy) -> BatchNoise:
    found = [
        visits.view(domain, privacy).calibrate("skellam", privacy),
        UserView.of(domain, visits.levels, visits.each(privacy)).calibrate("skellam", visits.each(privacy)),
    ]
    return max(found, key=lambda noise: noise.law().variance)
