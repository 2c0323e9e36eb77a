"""A running sum whose noise is carried from window to window: the error of a trusted curator's, by few shufflers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.continual.carried.counter import CarriedCounter
from shuffledp.continual.carried.guarantee import PrivateCarried
from shuffledp.continual.carried.smoothing import LEAST_OWN_VARIANCE
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.reference import counter_reference
from shuffledp.continual.request import check_confidence, check_shufflers
from shuffledp.continual.running import FIRST_SAVED
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.states import is_real, is_whole
from shuffledp.randomness import RandomBits
from shuffledp.sampling.discrete_gaussian import sample_discrete_gaussian

# An audit looks at the windows of so many slots after a user.
_AUDITED = 400
# Steps of a log likelihood that it tells apart: with finer ones every outcome is seen once, and ratios say nothing.
_STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedPlan(PrivateCarried):
    """A running sum by sliding windows of slots, whose users draw what they add to all their windows together.

    The adversary sees the permuted shares of every window: of a user no more than a Gaussian mechanism that releases
    all running sums would show.

    Reference: our own; [000] for concurrent shufflers.
    """

    later_numbers: ClassVar[tuple[str, ...]] = ("modulus_bits",)
    saved: ClassVar[tuple[str, ...]] = (
        *("method", *FIRST_SAVED),
        *("noise", "certified_noise_bound", "silent_slots", "domain"),
    )

    def _check_noise(self) -> None:
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        again = "make the plan again"
        if not is_whole(self.shufflers_used) or not self.weights.windows <= self.shufflers_used <= self.shufflers:
            limits = f"must lie in {self.weights.windows}..{self.shufflers}"
            raise ParameterError("shufflers_used", self.shufflers_used, limits, again)
        if not is_whole(self.silent_slots) or not 0 <= self.silent_slots < self._suppliers:
            limits = f"must lie in 0..{self._suppliers - 1}, below the slots that supply each noise"
            raise ParameterError("silent_slots", self.silent_slots, limits, "allow more shufflers")
        if self.weights.restarts != self.silent_slots:
            raise ParameterError("restarts", self.weights.restarts, f"must be {self.silent_slots}", again)
        if self.weights.slots * (self.shufflers_used + 1) > self.users:
            raise ParameterError("slots", self.weights.slots, "must have more users than windows each", again)
        most = max(honest_users(size, self.honest_fraction) for size in self._slot_sizes)
        if float(self.weights.noise_limits[0].min()) / self._suppliers < LEAST_OWN_VARIANCE * most:
            raise ParameterError("variance", self.weights.variance, "must be larger", again)
        certified = self.certified_noise_bound
        if certified is not None and (
            not is_real(certified) or not self.least_noise_bound <= certified <= self.proved_noise_bound
        ):
            limits = f"must lie in {self.least_noise_bound:g}..{self.proved_noise_bound:g}"
            raise ParameterError("certified_noise_bound", certified, limits, "certify it again")
        if self.distance <= 0:
            raise InfeasibleError("delta", self.privacy.delta, "leaves nothing for shares", "choose a larger one")
        proved = sum(term.value for term in self.delta_terms_at(self.privacy.epsilon, self.honest_fraction))
        if proved > self.privacy.delta:
            raise ParameterError("variance", self.weights.variance, f"proves delta {proved:.3g} only", again)

    def learner(self) -> Any:
        return CarriedCounter(self)

    def reference(self) -> dict[str, float | None]:
        return counter_reference(self)

    def facts(self) -> list[tuple[str, str]]:
        domain, weights = self.domain, self.weights
        used = "" if self.shufflers_used == self.shufflers else f" of {self.shufflers}"
        proof = "proved" if self.certified_noise_bound is None else "certified by runs of the noise, as its maker says"
        rows = [
            ("shufflers used", f"{self.shufflers_used}{used}, in turn"),
            (
                "windows",
                f"one closes with each of {weights.slots:,} slots of {self.slot_users} users and holds the last "
                f"{self.shufflers_used}",
            ),
            ("noise", "carried: what a slot's users add to one window they partly take back in the next"),
        ]
        if domain.rounds:
            rows.append(("rounded", f"at random, once, to steps of {domain.step:.4g}"))
        return [
            *rows,
            ("each user sends", self.sends),
            ("once all have come", self.in_the_end),
            (
                "error",
                f"at most {self.error_bound:.4g}{self.unit} at all times, with {self.confidence:.0%} confidence "
                f"({proof})",
            ),
            ("it rests on", self.rests_on),
            ("one lying client", self.lying_client),
        ]

    def window_parts(self) -> dict[str, list[float]]:
        """A step of a user of the middle slot and a deviation of each of its noises, in steps of its first window."""
        weights, middle = self.weights, np.array([self.weights.slots // 2])
        deviations = np.sqrt(self._own_variances(middle, middle)[:, 0])
        rows = [weights.taps * weights.slot_weights_at(middle), *(deviations[:, np.newaxis] * weights.patterns[1:])]
        names = ["one step of its value", *(f"noise {number}, a deviation" for number in range(1, len(rows)))]
        spared = [0.0] * (self.shufflers_used - weights.windows)
        unit = float(rows[0][0])
        return {name: [*(row / unit).tolist(), *spared] for name, row in zip(names, rows, strict=True)}

    # --- the audit ---------------------------------------------------------------------------

    def audited_effort(self, honest: int) -> int:
        return 2 * min(self.weights.slots, _AUDITED) * self.weights.windows

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """How likely the windows after a user of the first slot make one input beside the other, in steps of 1/30."""
        return _views(self, side, trials, self._part(self._fraction(honest)), bits)

    def quieter(self, part: float) -> dict[str, Any]:
        begins = tuple(tuple(part * each for each in row) for row in self.weights.begins)
        return {"weights": replace(self.weights, variance=part * self.weights.variance, begins=begins)}

    # --- the file ----------------------------------------------------------------------------

    def _further_sizes(self) -> dict[str, Any]:
        smallest = min(self.layout.messages)
        sizes = {"estimator": self.estimator, "slot_users": self.slot_users, "smallest_batch": smallest}
        return {**sizes, "modulus_bits": [[smallest, self._modulus_bits]]}

    @classmethod
    def _noise_from(cls, noise: Any, document: Mapping[str, Any]) -> dict[str, Any]:
        return {"weights": _weights_from(dict(noise))}


def _weights_from(noise: dict[str, Any]) -> CarriedWeights:
    noise.pop("family")
    found: dict[str, Any] = {name: tuple(noise.pop(name)) for name in ("poles", "knots", "weights")}
    found |= {name: tuple(tuple(row) for row in noise.pop(name)) for name in ("gains", "begins")}
    return CarriedWeights(**found, **noise)


def _views(plan: CarriedPlan, side: int, trials: int, part: float, bits: RandomBits) -> NDArray[np.int64]:
    """Log likelihoods of runs in which the first user of the first slot has the highest or the lowest value."""
    weights = plan.weights
    slots = min(weights.slots, _AUDITED)
    variances = part * weights.noise_variances_of(0, slots)
    drawn = [
        sample_discrete_gaussian(np.ascontiguousarray(np.broadcast_to(row[:, np.newaxis], (slots, trials))), bits=bits)
        for row in variances
    ]
    running = np.zeros((slots, trials))
    for number, noise in enumerate(drawn):
        for place, times in enumerate(weights.patterns[number, : number + 1].tolist()):
            running[place:] += times * noise[: slots - place]
    lowest, highest = plan.domain.neighbours
    length = float(np.linalg.norm(highest - lowest))
    taps = np.zeros(slots)
    taps[: min(slots, weights.windows)] = weights.taps[: min(slots, weights.windows)]
    moved = np.cumsum(taps) * float(weights.slot_weight(0)) * length
    if side:
        running += moved[:, np.newaxis]
    # Whitened by the filter, the likelihood is a sum along its column.
    whitened, column = running, moved
    for pole in weights.poles:
        whitened = scipy.signal.lfilter([1.0], [1.0, -pole], whitened, axis=0)
        column = scipy.signal.lfilter([1.0], [1.0, -pole], column)
    score = (column / weights.slot_variances_of(0, slots)) @ whitened
    return np.asarray(np.floor(_STEPS * score), dtype=np.int64).reshape(-1, 1)
