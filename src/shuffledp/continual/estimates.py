"""The estimates of a whole running sum: one for each slot that closed, and the users since."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.guarantee import PrivateCount
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate, Estimate, VectorEstimate
from shuffledp.protocols.fields import forwarded

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RunningEstimates:
    """prefixes[i] estimates the first i slots, in steps; between them every user adds the domain's middle.

    `bound` holds for every time at once with probability `confidence`.
    """

    plan: PrivateCount
    users: int
    prefixes: NDArray[Any]
    simulated: bool = False

    bound = forwarded("plan.error_bound")
    confidence = forwarded("plan.confidence")

    @property
    def batches(self) -> int:
        """How many batches closed."""
        closed = len(self.prefixes) - 1
        if self.plan.estimator == "completed":
            return closed
        return closed + int(np.searchsorted(self.plan.second_opinions.places, closed, side="right"))

    @property
    def times(self) -> NDArray[np.int64]:
        """When slots closed, from 0 on: the times at which something new is known."""
        return np.arange(len(self.prefixes), dtype=np.int64) * self.plan.slot_users

    def at(self, time: int) -> AnyEstimate:
        """The estimate after so many users."""
        if not 0 <= time <= self.users:
            raise ParameterError("time", time, f"must lie in 0..{self.users}", "ask for a time that has come")
        slot, since = divmod(time, self.plan.slot_users)
        return estimate_of(self.plan, slot, self.prefixes[slot], since, simulated=self.simulated)

    def every(self) -> Floats:
        """The estimates after 1, 2, ... users."""
        times = np.arange(1, self.users + 1)
        slots, since = np.divmod(times, self.plan.slot_users)
        steps, domain = self.prefixes[slots], self.plan.domain
        known = (times - since) * domain.origin + since * domain.middle
        return np.asarray(domain.step * steps + (known if steps.ndim == 1 else known[:, np.newaxis]))


def estimate_of(plan: PrivateCount, slot: int, steps: Any, since: int, *, simulated: bool) -> AnyEstimate:
    """The estimate made of a prefix's steps and the users since."""
    domain = plan.domain
    known = slot * plan.slot_users * domain.origin + since * domain.middle
    value = domain.step * np.asarray(steps, dtype=np.float64) + known
    answer: dict[str, Any] = {
        "standard_error": plan.standard_error_of(slot),
        "bound": plan.error_bound,
        "confidence": plan.confidence,
        "simulated": simulated,
    }
    return Estimate(value=float(value), **answer) if value.ndim == 0 else VectorEstimate(value=value, **answer)
