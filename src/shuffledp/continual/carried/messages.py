"""Messages of a running sum with carried noise: what a user adds to its windows, and the shares it is split into."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.accounting.dropouts import honest_users
from shuffledp.continual.carried.batches import WindowBatch
from shuffledp.continual.carried.smoothing import smoothing_delta, smoothing_part
from shuffledp.continual.carried.transport import shares_for
from shuffledp.continual.carried.windows import CarriedWindows
from shuffledp.continual.noise import TRANSPORT_PART
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.splitting import FALSE_ALARM, SMALLEST_MARGIN_BITS, Splitting
from shuffledp.randomness import RandomBits
from shuffledp.sampling.discrete_gaussian import sample_discrete_gaussian
from shuffledp.schedules.layout import BatchLayout

# A window with a bad share passes for a good one with probability 2^-this, between these as no share is spared.
_LEAST_MARGIN, _MOST_MARGIN = 12, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedMessages(CarriedWindows):
    """What users of every window send: their values and noises, drawn together and split into shares."""

    # --- shares ------------------------------------------------------------------------------

    @property
    def distance(self) -> float:
        """How much the shares of all windows may show beyond their sums."""
        factor = math.exp(self.privacy.epsilon)
        left = TRANSPORT_PART * self.privacy.delta * (1 - 1e-9) - smoothing_delta(factor, self._smoothing)
        return left / (1 + factor)

    @property
    def _smoothing(self) -> float:
        """By which part the law of all running sums is off from a rounded Gaussian mechanism's, at most."""
        return self._smoothing_with(1.0)

    def _smoothing_with(self, part: float) -> float:
        """The smoothing's part of delta where only this part of the noise is drawn that the plan counts on."""
        return smoothing_part(
            self.weights,
            users=self.users,
            suppliers=self._suppliers,
            coordinates=self.domain.coordinates,
            part=part,
        )

    @property
    def _shares(self) -> dict[int, int]:
        """Shares of a number, by the honest users of a window."""
        return self._shares_with(self._modulus_bits)

    @property
    def _plausible(self) -> tuple[int, int]:
        """The sums that a window of honest users has, but for a probability of FALSE_ALARM."""
        weights, domain = self.weights, self.domain
        heaviest = weights.heaviest * self.slot_users
        ends = [sorted((int(tap) * domain.lowest, int(tap) * domain.highest)) for tap in weights.taps]
        lowest, highest = (heaviest * sum(end[side] for end in ends) for side in (0, 1))
        # A noise of pattern (1 - q)^i is in i + 1 windows, with squares that add up to C(2i, i).
        variance = sum(
            math.comb(2 * number, number) * float(most) for number, most in enumerate(weights.noise_limits[1], 1)
        )
        quantile = -float(special.ndtri(FALSE_ALARM / 4 / domain.coordinates))
        spread = math.ceil(quantile * math.sqrt(self._largest_surplus * variance * 1.001)) + 1
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

    # --- what a user adds to its windows -----------------------------------------------------

    def prepare(
        self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """What each user adds to each of its windows, drawn together: a row for each window, the first one first."""
        if positions is None:
            raise ParameterError("positions", None, "must be given: what a user sends depends on its slot", "pass them")
        steps = np.asarray(self.domain.to_steps(self.check_values(values), bits=bits), dtype=np.int64)
        slots = np.asarray(self.course.place_of(np.asarray(positions))[0])
        return self._contributions(steps, slots, bits)

    def _contributions(self, steps: NDArray[np.int64], slots: NDArray[np.int64], bits: RandomBits) -> NDArray[np.int64]:
        weights, size = self.weights, self.shufflers_used
        one = (slice(None), *(np.newaxis,) * (steps.ndim - 1))
        weighed = steps * weights.slot_weights_at(slots)[one]
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

    def _own_variances(self, slots: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.float64]:
        """The variance of each noise that one user of a slot draws for a running sum, rounded up."""
        sizes = np.where(slots < self._short, self.slot_users - 1, self.slot_users)
        honest = np.array(
            [honest_users(size, self.honest_fraction) if size else 1 for size in range(self.slot_users + 1)]
        )
        suppliers = self._counted_on(times)
        return np.asarray(np.nextafter(self.weights.noise_variances_at(times) / (suppliers * honest[sizes]), np.inf))

    # --- how much is sent --------------------------------------------------------------------

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


@lru_cache(maxsize=512)
def _window_batch(plan: CarriedMessages, kind: tuple[int, int]) -> WindowBatch:
    sizes = plan._slots_of(kind)
    shares = plan._shares[plan._honest_of(kind, plan.honest_fraction)]
    lowest, highest = plan._plausible
    splitting = Splitting(shares, plan._modulus_bits, lowest, highest)
    return WindowBatch(sum(sizes), sizes, splitting, plan.domain.coordinates)
