"""The estimates of a whole running count: one for each slot that closed, and the users since."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.estimates import Estimate

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RunningEstimates:
    """prefixes[i] estimates the first i slots; between them every user adds one half.

    `bound` holds for every time at once with probability `confidence`.
    """

    plan: CounterPlan
    users: int
    prefixes: NDArray[np.int64]
    simulated: bool = False

    @property
    def bound(self) -> float:
        """No estimate of the horizon is off by more."""
        return self.plan.error_bound

    @property
    def confidence(self) -> float:
        """Of the bound."""
        return self.plan.confidence

    @property
    def times(self) -> NDArray[np.int64]:
        """When slots closed, from 0 on: the times at which something new is known."""
        return np.arange(self.prefixes.size, dtype=np.int64) * self.plan.slot_users

    def at(self, time: int) -> Estimate:
        """The estimate after so many users."""
        if not 0 <= time <= self.users:
            raise ParameterError("time", time, f"must lie in 0..{self.users}", "ask for a time that has come")
        slot, since = divmod(time, self.plan.slot_users)
        return Estimate(
            value=float(self.prefixes[slot]) + since / 2,
            standard_error=self.plan.standard_error_of(slot),
            bound=self.bound,
            confidence=self.confidence,
            simulated=self.simulated,
        )

    def every(self) -> Floats:
        """The estimates after 1, 2, ... users."""
        times = np.arange(1, self.users + 1)
        slots, since = np.divmod(times, self.plan.slot_users)
        return np.asarray(self.prefixes[slots] + since / 2)
