"""The estimates of a whole running sum: one for each slot that closed, and the users since."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp import markup
from shuffledp.continual.running import RunningPlan
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate, Estimate, VectorEstimate
from shuffledp.protocols.fields import forwarded

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunningEstimates:
    """prefixes[i] estimates the first i slots, in steps; between them users count by the rate so far, see `since_then`.

    Where people are run through in stretches, these are the estimates of one: from the first `first_slot` slots on, and
    nothing is known of earlier ones. `bound` holds for every time at once with probability `confidence`.
    """

    plan: RunningPlan
    users: int
    prefixes: NDArray[Any]
    simulated: bool = False
    first_slot: int = 0

    bound = forwarded("plan.error_bound")
    confidence = forwarded("plan.confidence")

    @property
    def batches(self) -> int:
        """How many batches closed."""
        return self.plan.batches_by(self.first_slot + len(self.prefixes) - 1)

    @property
    def times(self) -> NDArray[np.int64]:
        """When slots closed, from 0 on: the times at which something new is known."""
        slots = self.first_slot + np.arange(len(self.prefixes), dtype=np.int64)
        return np.asarray(self.plan.course.users_by(slots))

    @property
    def uncounted(self) -> int:
        """The users who came since the last release: they count by the rate before them."""
        return int(self.plan.course.place_of(self.users)[1])

    def at(self, time: int) -> AnyEstimate:
        """The estimate after so many users."""
        if not 0 <= time <= self.users:
            raise ParameterError("time", time, f"must lie in 0..{self.users}", "ask for a time that has come")
        slot, since = self.plan.course.place_of(time)
        if slot < self.first_slot:
            known = f"must be at least {self.times[0]} in this stretch"
            raise ParameterError("time", time, known, "ask the stretch that has it")
        return estimate_of(self.plan, slot, self.prefixes[slot - self.first_slot], since, simulated=self.simulated)

    def at_times(self, times: NDArray[np.int64]) -> Floats:
        """The estimates after so many users, in the values' own unit, a row a time."""
        slots, since = self.plan.course.place_of(times)
        return _values(self.plan, times - since, self.prefixes[slots - self.first_slot], since)

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
        return self.at_times(np.arange(1, self.users + 1))


def since_then(plan: RunningPlan, before: NDArray[Any], sums: Floats, since: NDArray[Any]) -> Floats:
    """What the users since the last release count as: the rate before them, as far as the bound allows.

    With u users since and at most m - 1, the middle for each is off by u reach at most, and the bound has room for
    (m - 1) reach: so the rate may move it by (m - 1 - u) reach either way, whoever the users are. Proof:
    docs/theory/running-sums.md. Where more have come since, as no batch after them could be read, the rate counts in
    full and `estimate_of` widens the bound.

    Args:
        plan: whose slots and values they are.
        before: users who are counted.
        sums: what is known of them.
        since: users who are not.
    """
    domain = plan.domain
    rates = np.where(before > 0, sums / np.maximum(before, 1), domain.middle) - domain.middle
    room = domain.reach * np.where(since < plan.slot_users, plan.slot_users - 1 - since, since)
    moved = np.clip(since * np.clip(rates, -domain.reach, domain.reach), -room, room)
    return np.asarray(since * domain.middle + moved)


def _values(plan: RunningPlan, before: Any, steps: Any, since: Any) -> Floats:
    """Estimates made of prefixes' steps and the users since; of several coordinates a row each."""
    domain = plan.domain
    before, since, found = np.asarray(before), np.asarray(since), np.asarray(steps, dtype=np.float64)
    if found.ndim > before.ndim:
        before, since = before[..., np.newaxis], since[..., np.newaxis]
    sums = domain.step * found + before * domain.origin
    return np.asarray(sums + since_then(plan, before, sums, since))


def estimate_of(plan: RunningPlan, slot: int, steps: Any, since: int, *, simulated: bool) -> AnyEstimate:
    """The estimate made of a prefix's steps and the users since."""
    before = int(plan.course.users_by(slot))
    value = _values(plan, before, steps, since)
    bound = plan.error_bound
    if since >= plan.slot_users:
        # They are off from the domain's middle by `reach` each at most, and so is what counts for them.
        counted = value - _values(plan, before, steps, 0)
        moved = float(np.abs(counted - since * plan.domain.middle).max())
        bound += (since - plan.slot_users + 1) * plan.domain.reach + moved
    answer: dict[str, Any] = {
        # The rate before the users since carries the prefix's noise, too.
        "standard_error": plan.standard_error_of(slot) * (1 + since / before if before else 1.0),
        "bound": bound,
        "confidence": plan.confidence,
        "simulated": simulated,
    }
    if value.ndim:
        return VectorEstimate(value=value, **answer).made_by(plan)
    return Estimate(value=float(value), **answer).made_by(plan)
