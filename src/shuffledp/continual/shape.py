"""The shape of a running sum: its schedule, its noise, and how far off it can be."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.continual.bounds import horizon_bound, sum_tails
from shuffledp.continual.combined_bound import CombinedLaws, combined_laws, is_quick
from shuffledp.continual.gaussian_offset import gaussian_offset
from shuffledp.continual.least_bound import least_combined_bound, least_completed_bound
from shuffledp.continual.planner import batch_sizes, largest_surplus, slot_users_for
from shuffledp.continual.request import (
    Estimator,
    check_confidence,
    check_estimator,
    check_shufflers,
    noise_failure,
)
from shuffledp.continual.running import RunningPlan
from shuffledp.continual.second_opinions import SecondOpinions
from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.summed import Bits
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.request import once
from shuffledp.protocols.states import is_whole
from shuffledp.protocols.sums.noise import BatchNoise, SkellamNoise
from shuffledp.randomness import RandomBits
from shuffledp.schedules.combinatorial import combinatorial_schedule, ending_schedule, slots, whole_slots
from shuffledp.schedules.courses import ScheduledCourse
from shuffledp.schedules.prefixes import PrefixSchedule

# Noises at a time.
_DRAWN_TOGETHER = 1 << 17


@lru_cache(maxsize=4)
def _schedule(budget: int, shufflers: int, users: int, counts_everybody: bool) -> PrefixSchedule:
    if counts_everybody:
        return ending_schedule(budget, shufflers, users)
    return combinatorial_schedule(budget, shufflers, slot_users_for(users, budget, shufflers))


@lru_cache(maxsize=4)
def _opinions(budget: int, shufflers: int, users: int, counts_everybody: bool) -> SecondOpinions:
    return SecondOpinions.of(_schedule(budget, shufflers, users, counts_everybody), budget, shufflers)


@lru_cache(maxsize=4)
def _combined_variances(
    noise: BatchNoise, budget: int, shufflers: int, users: int, counts_everybody: bool
) -> NDArray[np.float64]:
    """The variance of every prefix's noise."""
    opinions = _opinions(budget, shufflers, users, counts_everybody)
    variances = combined_laws(noise.law(), budget, shufflers).variances
    return np.asarray(opinions.schedule.prefix_sums(opinions.by_batch(variances)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountShape(RunningPlan):
    """Slots, batches and noise of a running sum; what they protect is `PrivateCount`'s to say.

    `estimator` says what is made of them: "completed" adds batches up, "combined" weighs two opinions where a batch of
    level 2 or more closes. With `counts_everybody` the last slot ends with the last user. With `mixed_together` what
    shares of a user's batches show is bounded for all of them at once, and has all of delta where the noise takes none.

    Attributes:
        batch_noise: the law of every batch's noise.
        budget: how many batches an estimate is a sum of at most.
        estimator: completed, or combined.
        counts_everybody: whether the last slot ends with the last user.
        mixed_together: whether what shares of a user's batches show is bounded for all of them at once.
    """

    batch_noise: BatchNoise
    budget: int
    certified_noise_bound: int | None = None
    estimator: Estimator = "completed"
    counts_everybody: bool = False
    mixed_together: bool = False

    def _check_shape(self) -> None:
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        if not is_whole(self.shufflers_used) or not 1 <= self.shufflers_used <= self.shufflers:
            raise ParameterError(
                "shufflers_used", self.shufflers_used, f"must lie in 1..{self.shufflers}", "make the plan again"
            )
        if not is_whole(self.budget) or self.budget < 1 or slots(self.budget, self.shufflers_used) > 1 << 31:
            raise ParameterError("budget", self.budget, "must be >= 1 and give few slots", "make the plan again")
        if not isinstance(self.counts_everybody, bool):
            raise ParameterError(
                "counts_everybody", self.counts_everybody, "must be true or false", "make the plan again"
            )
        if not isinstance(self.mixed_together, bool):
            raise ParameterError("mixed_together", self.mixed_together, "must be true or false", "make the plan again")
        check_estimator(self.estimator)
        if self.estimator == "combined" and not (
            self.shufflers_used >= 2
            and self.honest_fraction == 1
            and is_quick(self.batch_noise.law(), self.budget, self.shufflers_used)
        ):
            raise ParameterError(
                "estimator",
                self.estimator,
                "needs two shufflers, all users honest, and noise that is not too wide",
                "choose completed",
            )
        certified = self.certified_noise_bound
        if certified is not None and not isinstance(self.domain, Bits):
            raise ParameterError(
                "certified_noise_bound", certified, "is for counts of bits only", "take the proved bound"
            )
        if certified is not None and not self.least_noise_bound <= certified <= self.proved_noise_bound:
            problem = (
                f"must lie in {self.least_noise_bound}..{self.proved_noise_bound}, between what is refuted and proved"
            )
            raise ParameterError("certified_noise_bound", certified, problem, "certify it again")

    @property
    def noise(self) -> dict[str, Any]:
        return {"family": self.batch_noise.family, **self.batch_noise.parameters}

    reference_noise = forwarded("batch_noise.family")

    # --- the schedule ------------------------------------------------------------------------

    @once
    def slot_users(self) -> int:
        """The users of the smallest batch."""
        if self.counts_everybody:
            return whole_slots(self.budget, self.shufflers_used, self.users).users
        return slot_users_for(self.users, self.budget, self.shufflers_used)

    @property
    def _short_slots(self) -> int:
        """So many slots have a user less."""
        if not self.counts_everybody:
            return 0
        return whole_slots(self.budget, self.shufflers_used, self.users).short

    @property
    def uncounted(self) -> int:  # type: ignore[override]
        """The users who are in no batch that fills, once everybody has come: they count by the rate before them."""
        return 0 if self.counts_everybody else self.users % self.slot_users

    @property
    def _shape(self) -> tuple[int, int, int, bool]:
        return self.budget, self.shufflers_used, self.users, self.counts_everybody

    @property
    def schedule(self) -> PrefixSchedule:
        """Which batch covers which slots."""
        return _schedule(*self._shape)

    @property
    def table_bytes(self) -> int:
        """Parents, levels, ends and depths of all batches, and who has a second opinion: a dozen numbers a slot."""
        return 8 * 12 * self.schedule.slots

    @property
    def course(self) -> ScheduledCourse:
        return ScheduledCourse(self.schedule, self.estimator == "combined")

    @property
    def second_opinions(self) -> SecondOpinions:
        """Which batches have one, and what it weighs, if the estimator is "combined"."""
        return _opinions(*self._shape)

    def batches_by(self, slots: int) -> int:
        if self.estimator == "completed":
            return slots
        return slots + int(np.searchsorted(self.second_opinions.places, slots, side="right"))

    @property
    def batch_sizes(self) -> dict[int, tuple[int, ...]]:
        """The sizes that batches of each level may have, largest first."""
        return batch_sizes(self.slot_users, self.budget, self.shufflers_used, self._short_slots)

    @property
    def smallest_batch(self) -> int:
        """The users of the smallest batch: one of the first slots', which may have a user less."""
        return self.slot_users - (1 if self._short_slots else 0)

    @property
    def largest_batch(self) -> int:
        """The users of the largest batch: the top level's first."""
        span = slots(self.budget, self.shufflers_used - 1)
        return min(span * self.slot_users - min(span, self._short_slots), self.users)

    @property
    def all_sizes(self) -> set[int]:
        """The sizes that batches have."""
        return {size for sizes in self.batch_sizes.values() for size in sizes}

    # --- numbers -----------------------------------------------------------------------------

    @property
    def surplus(self) -> float:
        """How much more noise a batch has, at most, when everybody follows the protocol."""
        return largest_surplus(self.batch_noise, self.all_sizes, self.honest_fraction)

    @property
    def proved_noise_bound(self) -> int:
        """By exact tails and a union over all prefixes."""
        failure = noise_failure(self.domain, self.confidence)
        if self.estimator == "combined":
            return self._combined_laws.bound(self.budget, failure)
        tails = sum_tails(self.batch_noise.law(self.surplus), self.budget)
        return horizon_bound(tails, self.budget, lambda j: slots(j, self.shufflers_used), failure)

    @property
    def draws_a_run(self) -> int:
        return self.schedule.batches + (self.second_opinions.count if self.estimator == "combined" else 0)

    def noise_maxima(self, runs: int, *, bits: RandomBits) -> NDArray[np.int64]:
        noise = batch_noises(self, self.schedule.batches, (runs,), bits=bits)
        return np.asarray(np.abs(self.schedule.prefix_sums(noise)).max(axis=0))

    @property
    def is_near_gaussian(self) -> bool:
        return self.batch_noise.family == SkellamNoise.family and self.estimator == "completed"

    def gaussian_noise(self, slots: int, failure: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Sums of Skellam noises, each as far from Gaussian as `gaussian_offset` says; every slot has one new noise."""
        depths = self.schedule.depths[: slots + 1]
        each = failure / (self.domain.coordinates * max(1, slots))
        deviation = self.batch_noise.law().standard_deviation
        offset = gaussian_offset(self.batch_noise, each)
        return deviation * np.sqrt(depths), np.asarray(depths * offset, dtype=np.float64)

    def sample_slot_noise(self, slots: int, shape: tuple[int, ...], *, bits: RandomBits) -> Iterator[NDArray[np.int64]]:
        """That of the batches that make a sum, each drawn once."""
        parents = self.schedule.parents[: slots + 1].tolist()
        last_child = {parent: slot for slot, parent in enumerate(parents)}
        prefixes = {0: np.zeros(shape, dtype=np.int64)}
        together = max(1, _DRAWN_TOGETHER // math.prod(shape))
        for first in range(1, slots + 1, together):
            count = min(together, slots + 1 - first)
            drawn = self.batch_noise.sample(Fraction(1), count * math.prod(shape), bits=bits)
            for slot, noise in enumerate(drawn.reshape(count, *shape), first):
                prefixes[slot] = prefixes[parents[slot]] + noise
                yield prefixes[slot]
                for done in [kept for kept in prefixes if last_child.get(kept, kept) <= slot]:
                    del prefixes[done]

    @property
    def least_noise_bound(self) -> int:
        """What the noise of a single estimate passes too often: no bound over the whole horizon is below."""
        failure, schedule = noise_failure(self.domain, self.confidence), self.schedule
        reached, _ = schedule.place_of(self.users)
        if self.estimator == "combined":
            return least_combined_bound(self._combined_laws, self.budget, schedule, reached, failure)
        return least_completed_bound(self.batch_noise, schedule, reached, failure)

    @property
    def unchecked_claims(self) -> tuple[str, ...]:
        if self.certified_noise_bound is None:
            return ()
        least = self.domain.step * self.least_noise_bound + (self.slot_users - 1) * self.domain.reach
        return (
            f"That no estimate is off by more than {self.error_bound:g} was measured by whoever made the plan, by runs "
            f"of the noise; a file cannot show it. Checked is that it is not below {least:g}, which one estimate "
            "alone would pass too often; make the plan again with --bound certified to measure it again.",
        )

    @property
    def _combined_laws(self) -> CombinedLaws:
        return combined_laws(self.batch_noise.law(), self.budget, self.shufflers_used)

    @property
    def standard_error_max(self) -> float:
        """The standard error by noise, and by rounding at its worst, of the worst estimate of the horizon."""
        if self.estimator == "combined":
            worst = self._combined_laws.largest_variance(self.budget)
        else:
            worst = self.budget * self.batch_noise.law(self.surplus).variance
        return self.domain.step * math.sqrt(worst + (self.schedule.slots - 1) * self._rounding_variance)

    def standard_error_of(self, slot: int) -> float:
        """The standard error by noise, and by rounding at its worst, of the estimate of the first so many slots."""
        noise = float(self._prefix_variances(slot))
        return self.domain.step * math.sqrt(noise + slot * self._rounding_variance)

    def standard_errors(self) -> NDArray[np.float64]:
        """`standard_error_of` the first 0, 1, 2, ... slots."""
        rounding = np.arange(self.schedule.slots) * self._rounding_variance
        return np.asarray(self.domain.step * np.sqrt(self._prefix_variances(slice(None)) + rounding), dtype=np.float64)

    def _prefix_variances(self, slots: Any) -> Any:
        """The variance of the noise of this prefix, or of each of these, in steps."""
        if self.estimator == "combined":
            return _combined_variances(self.batch_noise, *self._shape)[slots]
        return self.schedule.depths[slots] * self.batch_noise.law(self.surplus).variance


def batch_noises(plan: CountShape, closed: int, shape: tuple[int, ...], *, bits: RandomBits) -> NDArray[np.int64]:
    """The noise of every batch, of which so many closed, second opinions weighed in: what prefixes add up.

    Args:
        plan: whose noise it is.
        closed: batches that closed; the others have none yet.
        shape: of the noise of one batch: its coordinates, or independent runs.
        bits: where the noise comes from.
    """
    each = math.prod(shape)
    noise = np.zeros((plan.schedule.batches, *shape), dtype=np.int64)
    for surplus, members in _exact_surplus(plan, closed):
        noise[members] = plan.batch_noise.sample(surplus, members.size * each, bits=bits).reshape(-1, *shape)
    if plan.estimator == "completed":
        return noise
    opinions = plan.second_opinions
    last_slots = np.zeros((opinions.count, *shape), dtype=np.int64)
    needed = int(np.searchsorted(opinions.places, closed, side="right"))
    last_slots[:needed] = plan.batch_noise.sample(Fraction(1), needed * each, bits=bits).reshape(-1, *shape)
    return opinions.combined(noise, last_slots)


def _exact_surplus(plan: CountShape, batches: int) -> list[tuple[Fraction, NDArray[np.int64]]]:
    """How much more noise than is counted on a batch has, and which of the first so many batches have that."""
    members = np.arange(batches)
    if plan.honest_fraction == 1:
        return [(Fraction(1), members)]
    schedule = plan.schedule
    sizes = schedule.users_by(members + 1) - schedule.users_by(schedule.parents[1 : batches + 1])
    return [
        (plan.batch_noise.surplus(size, honest_users(size, plan.honest_fraction)), np.flatnonzero(sizes == size))
        for size in np.unique(sizes).tolist()
    ]
