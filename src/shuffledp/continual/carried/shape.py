"""Slots, windows and messages of a running sum with carried noise, and how far off it can be."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.smoothing import smoothing_error
from shuffledp.continual.carried.batches import WindowBatch
from shuffledp.continual.carried.bound import bounds_at, coupled_noise, horizon_noise_bound
from shuffledp.continual.carried.transport import shares_for
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.noise import TRANSPORT_PART
from shuffledp.continual.request import noise_failure
from shuffledp.continual.running import RunningPlan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.splitting import FALSE_ALARM, SMALLEST_MARGIN_BITS, Splitting
from shuffledp.randomness import RandomBits
from shuffledp.sampling.discrete_gaussian import sample_discrete_gaussian
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.layout import BatchLayout
from shuffledp.schedules.windows import window_schedule

# A person's own noise has at least this variance: a sum of such noises is what it should be but for 1e-30.
LEAST_OWN_VARIANCE = 16.0
# A window with a bad share passes for a good one with probability 2^-this, between these as no share is spared.
_LEAST_MARGIN, _MOST_MARGIN = 12, 16


@lru_cache(maxsize=8)
def _schedule(slots: int, shufflers: int, users: int) -> BatchSchedule:
    return window_schedule(slots, shufflers, users)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedShape(RunningPlan):
    """Windows, weights and noise of a running sum; what they protect is `PrivateCarried`'s to say."""

    method: ClassVar[str] = "carried"
    estimator: ClassVar[str] = "carried"
    is_independent: ClassVar[bool] = False

    weights: CarriedWeights
    certified_noise_bound: float | None = None
    silent_slots: int = 0
    """So many slots of as many in a row as supply a noise may be false."""

    # --- slots and windows -------------------------------------------------------------------

    @property
    def slot_users(self) -> int:
        return -(-self.users // self.weights.slots)

    @property
    def _short(self) -> int:
        """The first so many slots have a user less."""
        return self.weights.slots * self.slot_users - self.users

    @property
    def _slot_sizes(self) -> tuple[int, ...]:
        """The sizes that slots have."""
        return (self.slot_users - 1, self.slot_users) if self._short else (self.slot_users,)

    @property
    def schedule(self) -> BatchSchedule:
        return _schedule(self.weights.slots, self.shufflers_used, self.users)

    def batches_by(self, slots: int) -> int:
        return slots

    @property
    def _suppliers(self) -> int:
        """By how many slots' users each noise is supplied: more than one where there are more windows than needed."""
        return self.shufflers_used - self.weights.windows + 1

    @property
    def _windows(self) -> dict[tuple[int, int], int]:
        """How many windows have so many slots, so many of them with a user less."""
        return _window_kinds(self.weights.slots, self.shufflers_used, self._short)

    def _kind_of(self, end: int) -> tuple[int, int]:
        """The slots of the window that closes after so many, and how many of them have a user less."""
        slots = min(self.shufflers_used, end)
        return slots, min(max(0, self._short - (end - slots)), slots)

    def _slots_of(self, kind: tuple[int, int]) -> tuple[int, ...]:
        """The users of a window's slots, the earliest first."""
        slots, short = kind
        return (self.slot_users - 1,) * short + (self.slot_users,) * (slots - short)

    def _honest_of(self, kind: tuple[int, int], fraction: float) -> int:
        """Honest users of a window, when this fraction of every slot is."""
        return sum(honest_users(size, fraction) for size in self._slots_of(kind))

    def _honest_windows(self, fraction: float) -> dict[int, int]:
        """By honest users, how many windows."""
        found: dict[int, int] = {}
        for kind, many in self._windows.items():
            honest = self._honest_of(kind, fraction)
            found[honest] = found.get(honest, 0) + many
        return found

    # --- the messages ------------------------------------------------------------------------

    @property
    def distance(self) -> float:
        """How much the shares of all windows may show beyond their sums."""
        factor = math.exp(self.privacy.epsilon)
        left = TRANSPORT_PART * self.privacy.delta * (1 - 1e-9) - smoothing_delta(factor, self._smoothing)
        return left / (1 + factor)

    @property
    def _shares(self) -> dict[int, int]:
        """Shares of a number, by the honest users of a window."""
        return self._shares_with(self._modulus_bits)

    @property
    def _plausible(self) -> tuple[int, int]:
        """The sums that a window of honest users has, but for a probability of FALSE_ALARM."""
        weights, domain = self.weights, self.domain
        heaviest = int(weights.slot_weights.max()) * self.slot_users
        ends = [sorted((int(tap) * domain.lowest, int(tap) * domain.highest)) for tap in weights.taps]
        lowest, highest = (heaviest * sum(end[side] for end in ends) for side in (0, 1))
        # A noise of pattern (1 - q)^i is in i + 1 windows, with squares that add up to C(2i, i).
        variance = sum(
            math.comb(2 * number, number) * float(row.max()) for number, row in enumerate(weights.noise_variances, 1)
        )
        quantile = -float(special.ndtri(FALSE_ALARM / 4 / domain.coordinates))
        spread = math.ceil(quantile * math.sqrt(float(self.surplus_by_slot.max()) * variance * 1.001)) + 1
        return lowest - spread, highest + spread

    @property
    def _modulus_bits(self) -> int:
        lowest, highest = self._plausible
        needed = (highest - lowest).bit_length()
        if needed + SMALLEST_MARGIN_BITS > 64:
            raise InfeasibleError(
                "modulus_bits",
                needed + SMALLEST_MARGIN_BITS,
                "must be at most 64 to hold a window's sum",
                "choose fewer shufflers, a coarser grid, or the noise laplace",
            )
        least = min(64, needed + _LEAST_MARGIN)
        fewest = self._shares_with(least)
        more = range(least, min(64, needed + _MOST_MARGIN) + 1)
        return max(bits for bits in more if self._shares_with(bits) == fewest)

    def _shares_with(self, modulus_bits: int) -> dict[int, int]:
        """Shares of a number of so many bits, by the honest users of a window."""
        windows = tuple(sorted(self._honest_windows(self.honest_fraction).items()))
        return shares_for(windows, modulus_bits, self.domain.coordinates, self.distance)

    def mechanism(self, users: int) -> WindowBatch:
        """What the users of a window of this size send."""
        slots = -(-users // self.slot_users)
        kind = (slots, slots * self.slot_users - users)
        if kind not in self._windows:
            raise ParameterError("users", users, "must be those of a window", "ask the schedule for its sizes")
        return _window_batch(self, kind)

    @property
    def layout(self) -> BatchLayout:
        sizes = [slots * self.slot_users - short for slots, short in self._windows]
        messages = {size: self.mechanism(size).messages_max for size in sizes}
        return BatchLayout.sliding(self.users, self.weights.slots, self.shufflers_used, messages)

    def prepare(
        self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """What each user adds to each of its windows, drawn together: a row for each window, the first one first."""
        if positions is None:
            raise ParameterError("positions", None, "must be given: what a user sends depends on its slot", "pass them")
        steps = np.asarray(self.domain.to_steps(self.check_values(values), bits=bits), dtype=np.int64)
        slots = np.asarray(self.schedule.place_of(np.asarray(positions))[0])
        return self._contributions(steps, slots, bits)

    def _contributions(self, steps: NDArray[np.int64], slots: NDArray[np.int64], bits: RandomBits) -> NDArray[np.int64]:
        weights, size = self.weights, self.shufflers_used
        one = (slice(None), *(np.newaxis,) * (steps.ndim - 1))
        weighed = steps * weights.slot_weights[slots][one]
        found = np.zeros((len(steps), size, *steps.shape[1:]), dtype=np.int64)
        for place, tap in enumerate(weights.taps.tolist()):
            found[:, place] = tap * weighed
        for later in range(self._suppliers):
            times = slots + later
            reached = times < weights.slots
            own = self._own_variances(slots, np.minimum(times, weights.slots - 1))
            for number, row in enumerate(own, 1):
                variances = np.broadcast_to(row[one], steps.shape)
                noise = sample_discrete_gaussian(np.ascontiguousarray(variances), bits=bits)
                noise[~reached] = 0
                for place, times_noise in enumerate(weights.patterns[number, : number + 1].tolist()):
                    found[:, later + place] += times_noise * noise
        return found

    def _counted_on(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many slots, of those that supply the noise of these running sums, are counted on."""
        return np.asarray(np.maximum(1, np.minimum(self._suppliers, times + 1) - self.silent_slots))

    def _own_variances(self, slots: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of each noise that one user of a slot draws for a running sum, rounded up."""
        sizes = np.where(slots < self._short, self.slot_users - 1, self.slot_users)
        honest = np.array(
            [honest_users(size, self.honest_fraction) if size else 1 for size in range(self.slot_users + 1)]
        )
        suppliers = self._counted_on(times)
        return np.asarray(np.nextafter(self.weights.noise_variances[:, times] / (suppliers * honest[sizes]), np.inf))

    @property
    def messages_per_user_max(self) -> int:
        # Windows of few people need more shares: all kinds of windows are met near the beginning and where slots grow.
        slots, used = self.weights.slots, self.shufflers_used
        near = {first + place for first in (0, max(0, self._short - used)) for place in range(used + 1)}
        found = []
        for slot in (slot for slot in near if slot < slots):
            ends = range(slot + 1, min(slot + used, slots) + 1)
            found.append(sum(_window_batch(self, self._kind_of(end)).messages_max for end in ends))
        return max(found)

    @property
    def messages_per_user_mean(self) -> float:
        sent = sum(
            many * sum(self._slots_of(kind)) * _window_batch(self, kind).messages_max
            for kind, many in self._windows.items()
        )
        return sent / self.users

    @property
    def bits_per_message(self) -> int:
        return _window_batch(self, next(iter(self._windows))).bits_per_message

    # --- numbers -----------------------------------------------------------------------------

    @property
    def surplus(self) -> float:
        """How much more noise there is when everybody follows the protocol, at most, but for the first few slots."""
        supplied = self._suppliers / (self._suppliers - self.silent_slots)
        return supplied * max(size / honest_users(size, self.honest_fraction) for size in self._slot_sizes)

    @property
    def error_variances(self) -> NDArray[np.float64]:
        """Of the estimates' noise after 1, 2, ... slots, in steps squared, when everybody follows the protocol."""
        return _error_variances(self.weights, self.surplus, tuple(self.surplus_by_slot[: self._suppliers].tolist()))

    @property
    def surplus_by_slot(self) -> NDArray[np.float64]:
        """How much more noise than is counted on the users of each slot draw."""
        each = [size / honest_users(size, self.honest_fraction) for size in self._slot_sizes]
        of_slots = np.where(np.arange(self.weights.slots) < self._short, each[0], each[-1])
        # Each running sum's noise comes in equal parts from the slots up to its own.
        ends = np.arange(1, self.weights.slots + 1)
        firsts = np.maximum(0, ends - self._suppliers)
        reached = np.concatenate(([0.0], np.cumsum(of_slots)))
        return np.asarray((reached[ends] - reached[firsts]) / self._counted_on(ends - 1))

    @property
    def noise(self) -> dict[str, Any]:
        return {"family": self.method, **_as_lists(asdict(self.weights))}

    @property
    def noise_bound(self) -> float:
        """No estimate's noise is larger, in steps, with probability `confidence`, over the whole horizon."""
        return self.proved_noise_bound if self.certified_noise_bound is None else self.certified_noise_bound

    @property
    def proved_noise_bound(self) -> float:
        """By exact variances, Gaussian tails of whole noise, and a union over all slots."""
        return _noise_bound(self, noise_failure(self.domain, self.confidence))

    @property
    def least_noise_bound(self) -> float:
        """What the noise of a single estimate passes too often: no bound over the whole horizon is below."""
        failure = noise_failure(self.domain, self.confidence)
        deviation = math.sqrt(float(self.weights.prefix_variances.max()))
        return -float(special.ndtri(min(0.5, failure / 2 * (1 + 1e-6)))) * deviation * (1 - 1e-3)

    @property
    def error_bound(self) -> float:
        """Every estimate of the horizon is off by at most this with probability `confidence`, whatever the data."""
        return self.domain.step * self.noise_bound + (self.slot_users - 1) * self.domain.reach + self.rounding_bound

    def bound_at(self, time: int) -> float:
        """What the estimate after so many users is off by at most: all of these hold together, with `confidence`.

        It follows each estimate's own deviation, so that it is smaller than `error_bound` at first, and larger where
        the noise is largest.
        """
        slot, since = self.schedule.place_of(time)
        noise = 0.0
        if slot:
            failure = noise_failure(self.domain, self.confidence)
            noise = float(_bounds_at(self, failure)[slot - 1])
        room = (self.slot_users - 1) * self.domain.reach if since else 0.0
        return self.domain.step * noise + room + (self.rounding_bound if slot else 0.0)

    @property
    def draws_a_run(self) -> int:
        return self.weights.slots * (self.weights.windows - 1)

    def noise_maxima(self, runs: int, *, bits: RandomBits) -> NDArray[np.float64]:
        return np.asarray(np.abs(self.sample_errors((runs,), bits=bits)).max(axis=0))

    @property
    def is_near_gaussian(self) -> bool:
        return True

    def gaussian_noise(self, slots: int, failure: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = coupled_noise(self.weights, self.error_variances, failure, self.domain.coordinates)
        deviations, offsets = (np.concatenate(([0.0], each[:slots])) for each in found)
        return deviations, offsets

    def sample_slot_noise(
        self, slots: int, shape: tuple[int, ...], *, bits: RandomBits
    ) -> Iterator[NDArray[np.float64]]:
        yield from self.sample_errors(shape, bits=bits, slots=slots)

    def sample_errors(
        self, shape: tuple[int, ...], *, bits: RandomBits, slots: int | None = None
    ) -> NDArray[np.float64]:
        """The errors of all estimates, in steps, by the law of everybody's noise.

        The noise of a slot is drawn as one: a sum of discrete Gaussians is one but for 1e-30, and the analyzer's
        filters are linear.

        Args:
            shape: of the noise of one slot: its coordinates, or independent runs.
            bits: where the noise comes from.
            slots: how many slots; all if left out.
        """
        weights = self.weights
        count = weights.slots if slots is None else slots
        windows = np.zeros((count, *shape))
        variances = self.surplus_by_slot[:count] * weights.noise_variances[:, :count]
        one = (slice(None), *(np.newaxis,) * len(shape))
        for number, row in enumerate(variances, 1):
            each = np.ascontiguousarray(np.broadcast_to(row[one], (count, *shape)))
            noise = sample_discrete_gaussian(each, bits=bits)
            for place, times in enumerate(weights.patterns[number, : number + 1].tolist()):
                windows[place:] += times * noise[: count - place]
        return weights.decoded(windows)

    standard_error = forwarded("standard_error_max")

    @property
    def standard_error_max(self) -> float:
        """Of the noise, and of rounding at its worst, in the worst estimate of the horizon."""
        variances = self.error_variances
        rounding = np.arange(1, variances.size + 1) * self._rounding_variance
        return self.domain.step * math.sqrt(float((variances + rounding).max()))

    def standard_error_of(self, slot: int) -> float:
        if slot == 0:
            return 0.0
        noise = float(self.error_variances[slot - 1])
        return self.domain.step * math.sqrt(noise + slot * self._rounding_variance)

    def standard_errors(self) -> NDArray[np.float64]:
        rounding = np.arange(1, self.weights.slots + 1) * self._rounding_variance
        errors = self.domain.step * np.sqrt(self.error_variances + rounding)
        return np.concatenate(([0.0], errors))

    @property
    def _smoothing(self) -> float:
        """By which part the law of all running sums is off from a rounded Gaussian mechanism's, at most."""
        return self._smoothing_with(1.0)

    def _smoothing_with(self, part: float) -> float:
        """The same where only this part of the noise is drawn that the plan counts on."""
        noises = self.weights.windows - 1
        draws = self.users * noises * self._suppliers * self.domain.coordinates
        running = self.weights.slots * noises * self.domain.coordinates
        # Sums of two noises of a person's variance at least; then everything but N_1 is summed out; then rounding.
        # Each draw is normalised, and added to the others.
        own = smoothing_error(math.sqrt(LEAST_OWN_VARIANCE / 2), 2 * draws)
        least = [part * float(row.min()) for row in self.weights.noise_variances]
        steepest = max((1 / each for each in least[1:]), default=0.0) + (4.0**noises / 3) / least[0]
        return own + smoothing_error(1 / math.sqrt(steepest), running) + smoothing_error(2.0, running)


@lru_cache(maxsize=32)
def _window_kinds(slots: int, windows: int, short: int) -> dict[tuple[int, int], int]:
    """Of so many slots, the first `short` of them with a user less: windows by their slots and those among them."""
    found: dict[tuple[int, int], int] = {}

    def count(first: int, end: int, many: int = 1) -> None:
        if many > 0:
            kind = (end - first, min(max(0, short - first), end - first))
            found[kind] = found.get(kind, 0) + many

    for end in range(1, min(windows, slots + 1)):
        count(0, end)
    # Full windows: over short slots only, over some, over none.
    last = slots - windows
    mixed = range(max(0, short - windows + 1), min(last, short - 1) + 1)
    count(0, windows, min(last, short - windows) + 1)
    for first in mixed:
        count(first, first + windows)
    count(max(0, short), max(0, short) + windows, last - short + 1)
    return found


@lru_cache(maxsize=512)
def _window_batch(plan: CarriedShape, kind: tuple[int, int]) -> WindowBatch:
    sizes = plan._slots_of(kind)
    shares = plan._shares[plan._honest_of(kind, plan.honest_fraction)]
    lowest, highest = plan._plausible
    splitting = Splitting(shares, plan._modulus_bits, lowest, highest)
    return WindowBatch(sum(sizes), sizes, splitting, plan.domain.coordinates)


@lru_cache(maxsize=8)
def _error_variances(weights: CarriedWeights, surplus: float, first: tuple[float, ...]) -> NDArray[np.float64]:
    """With this surplus of all noise, and of the first few slots' noise with their own, where that is more."""
    found = surplus * weights.prefix_variances
    for slot, own in enumerate(first[: weights.slots]):
        if own > surplus * (1 + 1e-12):
            for number, row in enumerate(weights.noise_variances, 1):
                found = found + (own - surplus) * row[slot] * weights.response(number, slot) ** 2
    return np.asarray(found)


@lru_cache(maxsize=32)
def _noise_bound(plan: CarriedShape, failure: float) -> float:
    return horizon_noise_bound(plan.weights, plan.error_variances, failure)


@lru_cache(maxsize=4)
def _bounds_at(plan: CarriedShape, failure: float) -> NDArray[np.float64]:
    return bounds_at(plan.weights, plan.error_variances, failure)


def smoothing_delta(factor: float, part: float) -> float:
    """What a law that is off by this part adds to delta: P <= (1 + part) P~, and Q~ <= Q / (1 - part)."""
    return 2 * part * (1 + 2 * factor)


def _as_lists(document: Any) -> Any:
    if isinstance(document, Mapping):
        return {name: _as_lists(value) for name, value in document.items() if name != "is_begun"}
    return [_as_lists(each) for each in document] if isinstance(document, tuple) else document
