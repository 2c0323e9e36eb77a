"""The estimates of a whole running sum: one for each slot that closed, and the users since."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp import markup
from shuffledp.continual.guarantee import PrivateCount
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate, Estimate, VectorEstimate
from shuffledp.protocols.fields import forwarded

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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

    @property
    def last(self) -> AnyEstimate:
        """The estimate after all users."""
        return self.at(self.users)

    def __getitem__(self, time: int) -> AnyEstimate:
        """The estimate after so many users."""
        return self.at(time)

    def __iter__(self) -> Iterator[int]:
        """The times at which something new is known."""
        return iter(self.times.tolist())

    def __str__(self) -> str:
        return f"after {self.users:,} users: {self.last}"

    def __repr__(self) -> str:
        return f"RunningEstimates(users={self.users}, batches={self.batches}, bound={self.bound:g})"

    def _repr_html_(self) -> str:
        """The last estimate and the whole course of a count, as notebooks show it."""
        total = self.plan.domain.total
        rows = [
            (f"{total} at the end", str(self.last)),
            ("at every time", f"off by at most {self.bound:,.4g}, all times at once, {self.confidence:.0%} confidence"),
            ("by", f"{self.plan.shufflers_used} shufflers, {self.batches:,} batches"),
        ]
        if self.prefixes.ndim > 1:
            return markup.section(markup.facts(self.plan.title, rows))
        domain, times = self.plan.domain, self.times
        height = domain.step * self.prefixes + times * domain.origin
        picture = markup.curve(times, height, self.bound, against="users so far", measures=total)
        return markup.section(markup.facts(self.plan.title, rows), picture)

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
    if value.ndim:
        return VectorEstimate(value=value, **answer).made_by(plan)
    return Estimate(value=float(value), **answer).made_by(plan)
