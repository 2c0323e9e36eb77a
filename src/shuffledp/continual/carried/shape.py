"""How far off a running sum with carried noise can be: deviations, bounds, and the law of all its errors."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.accounting.running_filters import blocks_of
from shuffledp.continual.carried.bound import bounds_at, coupled_noise, horizon_noise_bound
from shuffledp.continual.carried.messages import CarriedMessages
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.request import noise_failure
from shuffledp.randomness import RandomBits
from shuffledp.sampling.discrete_gaussian import sample_discrete_gaussian


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedShape(CarriedMessages):
    """Windows, messages and errors of a running sum; what they protect is `PrivateCarried`'s to say."""

    @property
    def error_variances(self) -> NDArray[np.float64]:
        """The variances of the estimates' noise after 1, 2, ... slots, in squared steps, where everybody is honest."""
        first = np.concatenate(list(self._surpluses(min(self._suppliers, self.weights.slots))))
        return _error_variances(self.weights, self.surplus, tuple(first.tolist()))

    @property
    def table_bytes(self) -> int:
        """A table of the estimates' variances, and another where there is more noise than is counted on."""
        return 8 * self.weights.slots * (1 if self.surplus == 1 else 2)

    @property
    def noise(self) -> dict[str, Any]:
        return {"family": self.method, **_as_lists(asdict(self.weights))}

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
        variances = self.surplus_by_slot[:count] * weights.noise_variances_of(0, count)
        one = (slice(None), *(np.newaxis,) * len(shape))
        # D N_1 + D^2 N_2 + ... in whole numbers, from the last one on.
        windows = np.zeros((count, *shape), dtype=np.int64)
        for row in variances[::-1]:
            each = np.ascontiguousarray(np.broadcast_to(row[one], (count, *shape)))
            windows += sample_discrete_gaussian(each, bits=bits)
            windows[1:] -= windows[:-1].copy()
        return weights.decoded(windows.astype(np.float64))

    @property
    def standard_error_max(self) -> float:
        """The largest standard error of an estimate in the horizon: of noise, and of rounding at its worst."""
        variances = self.error_variances
        if not self._rounding_variance:
            return self.domain.step * math.sqrt(float(variances.max()))
        most = 0.0
        for here in blocks_of(variances.size):
            rounding = np.arange(here.start + 1, here.stop + 1) * self._rounding_variance
            most = max(most, float((variances[here] + rounding).max()))
        return self.domain.step * math.sqrt(most)

    def standard_error_of(self, slot: int) -> float:
        if slot == 0:
            return 0.0
        noise = float(self.error_variances[slot - 1])
        return self.domain.step * math.sqrt(noise + slot * self._rounding_variance)

    def standard_errors(self) -> NDArray[np.float64]:
        rounding = np.arange(1, self.weights.slots + 1) * self._rounding_variance
        errors = self.domain.step * np.sqrt(self.error_variances + rounding)
        return np.concatenate(([0.0], errors))


@lru_cache(maxsize=8)
def _error_variances(weights: CarriedWeights, surplus: float, first: tuple[float, ...]) -> NDArray[np.float64]:
    """With this surplus of all noise, and of the first few slots' noise with their own, where that is more."""
    found = weights.prefix_variances if surplus == 1 else surplus * weights.prefix_variances
    for slot, own in enumerate(first[: weights.slots]):
        if own > surplus * (1 + 1e-12):
            for number, (variance,) in enumerate(weights.noise_variances_of(slot, slot + 1), 1):
                found = found + (own - surplus) * variance * weights.response(number, slot) ** 2
    found.setflags(write=False)
    return found


@lru_cache(maxsize=32)
def _noise_bound(plan: CarriedShape, failure: float) -> float:
    return horizon_noise_bound(plan.weights, plan.error_variances, failure)


@lru_cache(maxsize=4)
def _bounds_at(plan: CarriedShape, failure: float) -> NDArray[np.float64]:
    return bounds_at(plan.weights, plan.error_variances, failure)


def _as_lists(document: Any) -> Any:
    if isinstance(document, Mapping):
        return {name: _as_lists(value) for name, value in document.items() if name != "is_begun"}
    return [_as_lists(each) for each in document] if isinstance(document, tuple) else document
