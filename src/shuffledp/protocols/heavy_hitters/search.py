"""The state machine of a search for frequent strings: every group of users joins one batch, one group a level."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Reports
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter
from shuffledp.protocols.learner import Cohort, OpenBatch, Part, PlanLearner
from shuffledp.protocols.rounds import EstimatedRound
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True)
class SearchState:
    """Where a search is: the bits that are known of the prefixes, who has come, and at the end what was found.

    Attributes:
        depth: how many bits of the prefixes are known.
        users: how many have come.
        found: what was found; None before the end.
    """

    depth: int = 0
    prefixes: tuple[bytes, ...] = (b"",)
    """Bits packed into bytes, in their order."""
    parts: int = 0
    """Parts of all users that have reported."""
    users: int = 0
    found: tuple[HeavyHitter, ...] | None = None


@dataclass(frozen=True, slots=True)
class LevelRound(EstimatedRound):
    """A level's histogram: every device finds its string among the candidates first."""

    search: Any
    state: SearchState

    def randomize(self, prepared: Any, first_seat: int, *, bits: RandomBits) -> Reports:
        return self.plan.randomize(self.search.codes(self.state, prepared), bits=bits)

    def parts(self, prepared: Any, first_seat: int, messages: int) -> Iterator[Part]:
        return self.plan.parts(self.search.codes(self.state, prepared), messages)


@dataclass(frozen=True, slots=True)
class Search(PlanLearner[SearchState]):
    """A search level by level: what a group's histogram says decides what the next group is asked.

    Attributes:
        plan: what is searched, and how.
    """

    plan: Any

    start = forwarded("plan.start")

    def ask(self, state: SearchState) -> Cohort | None:
        if state.found is not None:
            return None
        level = LevelRound(self.plan.ask(state), self.plan, state)
        return Cohort(level.users, (OpenBatch(1, state.parts, level, 0),))

    def tell(self, state: SearchState, users: int, closed: Mapping[int, VectorEstimate]) -> SearchState:
        if 1 not in closed:
            raise ParameterError("users", users, f"must be the {self.plan.ask(state).users} of a level", "tell it full")
        found: SearchState = self.plan.tell(state, closed[1])
        return found

    def estimate(self, state: SearchState, *, simulated: bool = False) -> FoundStrings | None:
        return None if state.found is None else self.plan.estimate_of(state.found, simulated=simulated)
