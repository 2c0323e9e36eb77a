"""A running sum whose noise is carried from window to window: the error of a trusted curator's, by few shufflers."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, delta_of_distance
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.smoothing import smoothing_error
from shuffledp.continual.carried.batches import WindowBatch
from shuffledp.continual.carried.bound import bounds_at, horizon_noise_bound
from shuffledp.continual.carried.exposure import MOST_SLOTS as MOST_EXPOSED
from shuffledp.continual.carried.exposure import shift_with_silent
from shuffledp.continual.carried.transport import distance_with, shares_for
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.noise import TRANSPORT_PART
from shuffledp.continual.reference import counter_reference
from shuffledp.continual.request import check_confidence, check_shufflers, noise_failure
from shuffledp.continual.running import RunningPlan
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.kinds import domain_from
from shuffledp.protocols.fields import alike
from shuffledp.protocols.plan import SCHEMA, TermsCurve
from shuffledp.protocols.splitting import FALSE_ALARM, SMALLEST_MARGIN_BITS, Splitting
from shuffledp.protocols.states import is_real, is_whole
from shuffledp.protocols.sums.noise import NEVER_MEET
from shuffledp.protocols.vector_sum.base import ROUNDING_PART
from shuffledp.randomness import RandomBits
from shuffledp.sampling.discrete_gaussian import sample_discrete_gaussian
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.layout import BatchLayout
from shuffledp.schedules.windows import window_schedule

# A person's own noise has at least this variance: a sum of such noises is what it should be but for 1e-30.
LEAST_OWN_VARIANCE = 16.0
# A window with a bad share passes for a good one with probability 2^-this.
_MARGIN_BITS = 16


@lru_cache(maxsize=8)
def _schedule(slots: int, shufflers: int, users: int) -> BatchSchedule:
    return window_schedule(slots, shufflers, users)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedPlan(RunningPlan):
    """A running sum by sliding windows of slots, whose users draw what they add to all their windows together.

    The adversary sees the permuted shares of every window: of a user no more than a Gaussian mechanism that releases
    all running sums would show.

    Reference: our own; [000] for concurrent shufflers.
    """

    method: ClassVar[str] = "carried"
    theory_page: ClassVar[str] = "docs/theory/carried-noise.md"
    estimator: ClassVar[str] = "carried"
    is_independent: ClassVar[bool] = False

    weights: CarriedWeights
    certified_noise_bound: float | None = None

    def _check_noise(self) -> None:
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        again = "make the plan again"
        if not is_whole(self.shufflers_used) or not self.weights.windows <= self.shufflers_used <= self.shufflers:
            limits = f"must lie in {self.weights.windows}..{self.shufflers}"
            raise ParameterError("shufflers_used", self.shufflers_used, limits, again)
        if self.weights.slots * (self.shufflers_used + 1) > self.users:
            raise ParameterError("slots", self.weights.slots, "must have more users than windows each", again)
        most = max(honest_users(size, self.honest_fraction) for size in self._slot_sizes)
        if float(self.weights.noise_variances.min()) / self._suppliers < LEAST_OWN_VARIANCE * most:
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
        left = TRANSPORT_PART * self.privacy.delta * (1 - 1e-9) - _smoothing_delta(factor, self._smoothing)
        return left / (1 + factor)

    @property
    def _shares(self) -> dict[int, int]:
        """Shares of a number, by the honest users of a window."""
        windows = tuple(sorted(self._honest_windows(self.honest_fraction).items()))
        return shares_for(windows, self._modulus_bits, self.domain.coordinates, self.distance)

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
        spread = math.ceil(quantile * math.sqrt(self.surplus * variance * 1.001)) + 1
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
        return min(64, needed + _MARGIN_BITS)

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

    def _own_variances(self, slots: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of each noise that one user of a slot draws for a running sum, rounded up."""
        sizes = np.where(slots < self._short, self.slot_users - 1, self.slot_users)
        honest = np.array(
            [honest_users(size, self.honest_fraction) if size else 1 for size in range(self.slot_users + 1)]
        )
        suppliers = np.minimum(self._suppliers, times + 1)
        return np.nextafter(self.weights.noise_variances[:, times] / (suppliers * honest[sizes]), np.inf)

    @property
    def messages_per_user_max(self) -> int:
        # Windows of few people need more shares: all kinds of windows are met near the beginning and where slots grow.
        schedule, slots = self.schedule, self.weights.slots
        near = {
            first + place
            for first in (0, max(0, self._short - self.shufflers_used))
            for place in range(self.shufflers_used + 1)
        }
        found = []
        for slot in (slot for slot in near if slot < slots):
            ends = range(slot + 1, min(slot + self.shufflers_used, slots) + 1)
            sizes = [schedule.batch_users(max(0, end - self.shufflers_used), end) for end in ends]
            found.append(sum(self.mechanism(size).messages_max for size in sizes))
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
        """How much more noise there is, at most, when everybody follows the protocol."""
        return max(size / honest_users(size, self.honest_fraction) for size in self._slot_sizes)

    @property
    def surplus_by_slot(self) -> NDArray[np.float64]:
        """How much more noise than is counted on the users of each slot draw."""
        each = [size / honest_users(size, self.honest_fraction) for size in self._slot_sizes]
        of_slots = np.where(np.arange(self.weights.slots) < self._short, each[0], each[-1])
        # Each running sum's noise comes in equal parts from the slots up to its own.
        ends = np.arange(1, self.weights.slots + 1)
        firsts = np.maximum(0, ends - self._suppliers)
        reached = np.concatenate(([0.0], np.cumsum(of_slots)))
        return np.asarray((reached[ends] - reached[firsts]) / (ends - firsts))

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
        return _noise_bound(self.weights, self.surplus, noise_failure(self.domain, self.confidence))

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

        It follows each estimate's own deviation, so that it is smaller than `error_bound` at first, and larger where the
        noise is largest.
        """
        slot, since = self.schedule.place_of(time)
        noise = 0.0
        if slot:
            failure = noise_failure(self.domain, self.confidence)
            noise = float(_bounds_at(self.weights, self.surplus, failure)[slot - 1])
        room = (self.slot_users - 1) * self.domain.reach if since else 0.0
        return self.domain.step * noise + room + (self.rounding_bound if slot else 0.0)

    @property
    def standard_error(self) -> float:
        return self.standard_error_max

    @property
    def standard_error_max(self) -> float:
        """Of the noise, and of rounding at its worst, in the worst estimate of the horizon."""
        variances = self.surplus * self.weights.prefix_variances
        rounding = np.arange(1, variances.size + 1) * self._rounding_variance
        return self.domain.step * math.sqrt(float((variances + rounding).max()))

    def standard_error_of(self, slot: int) -> float:
        if slot == 0:
            return 0.0
        noise = self.surplus * float(self.weights.prefix_variances[slot - 1])
        return self.domain.step * math.sqrt(noise + slot * self._rounding_variance)

    def standard_errors(self) -> NDArray[np.float64]:
        rounding = np.arange(1, self.weights.slots + 1) * self._rounding_variance
        errors = self.domain.step * np.sqrt(self.surplus * self.weights.prefix_variances + rounding)
        return np.concatenate(([0.0], errors))

    # --- privacy -----------------------------------------------------------------------------

    @property
    def _length(self) -> float:
        """How many steps apart two users' values are, but for `_rounding_failure`."""
        return self.domain.difference(ROUNDING_PART * self.privacy.delta).length

    @property
    def _rounding_failure(self) -> float:
        return self.domain.difference(ROUNDING_PART * self.privacy.delta).failure

    @property
    def _smoothing(self) -> float:
        """By which part the law of all running sums is off from a rounded Gaussian mechanism's, at most."""
        noises = self.weights.windows - 1
        draws = self.users * noises * self._suppliers * self.domain.coordinates
        running = self.weights.slots * noises * self.domain.coordinates
        # Sums of two noises of a person's variance at least; then everything but N_1 is summed out; then rounding.
        own = smoothing_error(math.sqrt(LEAST_OWN_VARIANCE / 2), draws)
        least = [float(row.min()) for row in self.weights.noise_variances]
        steepest = max((1 / each for each in least[1:]), default=0.0) + (4.0**noises / 3) / least[0]
        return own + smoothing_error(1 / math.sqrt(steepest), running) + smoothing_error(2.0, running)

    def _part(self, fraction: float) -> float:
        """The noise that is left when this fraction of every slot is honest, as a part of what the plan counts on."""
        if fraction == self.honest_fraction:
            return 1.0
        return min(honest_users(size, fraction) / honest_users(size, self.honest_fraction) for size in self._slot_sizes)

    def _shift(self, fraction: float) -> float:
        return self.weights.shift * self._length / math.sqrt(self._part(fraction))

    def pair(self, honest: int) -> DominatingPair:
        """What all windows together show of a user's value."""
        shift = self._shift(self._fraction(honest))
        return GaussianPair(shift) if shift < math.inf else NEVER_MEET

    def _fraction(self, honest: int) -> float:
        """The part of every slot that is honest, where so many of all users are."""
        return self.honest_fraction if honest == self.honest_users else honest / self.users

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return self.delta_terms_at(epsilon, self._fraction(honest))

    def delta_terms_at(self, epsilon: float, fraction: float) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon, when this fraction of every slot is honest."""
        factor, shift = math.exp(epsilon), self._shift(fraction)
        # As promised if the plan's fraction is honest.
        shown = self.distance if fraction == self.honest_fraction else self._distance_with(fraction)
        terms = [
            DeltaTerm(
                "noise",
                GaussianPair(shift).delta(epsilon),
                f"the curve of a Gaussian mechanism in which a user moves all running sums by {shift:.6g} deviations",
            ),
            DeltaTerm(
                "transport",
                delta_of_distance(factor, shown),
                f"(1 + e^epsilon) times {shown:.3g}, what the shares of all {self.weights.slots:,} windows show beyond "
                "their sums",
            ),
            DeltaTerm(
                "smoothing",
                _smoothing_delta(factor, self._smoothing),
                f"whole noise is a rounded Gaussian's but for a part of {self._smoothing:.3g}",
            ),
        ]
        if self._rounding_failure:
            why = "two neighbours' rounded values are further apart than that"
            terms.append(DeltaTerm("rounding", self._rounding_failure, why))
        return tuple(terms)

    def _distance_with(self, fraction: float) -> float:
        """What the shares show when this fraction of every slot is honest."""
        shares, planned = {}, self._shares
        for kind in self._windows:
            left = self._honest_of(kind, fraction)
            few = planned[self._honest_of(kind, self.honest_fraction)]
            shares[left] = min(few, shares.get(left, few))
        return distance_with(self._honest_windows(fraction), shares, self._modulus_bits, self.domain.coordinates)

    @property
    def dominates_because(self) -> str:
        return (
            "All that windows ever show is the running sums, and these are a weighed sum of everybody's values plus "
            "whole noise whose law is, but for 1e-20, that of rounded Gaussian noise: so the view is computed from a Gaussian "
            "mechanism, in which one user moves one column of a matrix of known length."
        )

    def epsilon_with(self, honest_fraction: float) -> float:
        """The epsilon that is left, at the plan's delta, when only this fraction of every slot is honest."""
        check_honest_fraction(honest_fraction)
        curve = TermsCurve(lambda epsilon: self.delta_terms_at(epsilon, honest_fraction))
        left = epsilon_at(curve, self.privacy.delta)
        return min(left, self.privacy.epsilon) if honest_fraction >= self.honest_fraction else left

    def epsilon_with_silent(self, silent: int) -> float:
        """The epsilon that is left, at the plan's delta, when so many slots in a row add no noise; inf if none."""
        shift = shift_with_silent(self.weights, silent, self._suppliers) * self._length
        if shift == math.inf:
            return math.inf
        rest = sum(term.value for term in self.delta_terms_at(self.privacy.epsilon, self.honest_fraction)[1:])
        if rest >= self.privacy.delta:
            return math.inf
        return epsilon_at(GaussianPair(shift), self.privacy.delta - rest)

    @property
    def fatal_silence(self) -> int:
        """So many slots in a row without honest noise show a weighed sum of everybody before them as it is."""
        return self.weights.windows - 1 + self._suppliers - 1

    def collusions(self) -> tuple[Collusion, ...]:
        delta = self.privacy.delta
        rows = [Collusion("analyzer alone", self.privacy.epsilon, delta, "sees the permuted messages of every window")]
        for fraction in (0.9, 0.5):
            if fraction < self.honest_fraction:
                left = self.epsilon_with(fraction)
                known = left if math.isfinite(left) else None
                rows.append(
                    Collusion(f"analyzer + {1 - fraction:.3g} of every slot", known, delta, "the others' noise is left")
                )
        if self.weights.slots <= MOST_EXPOSED:
            for silent in range(1, self.fatal_silence):
                left = self.epsilon_with_silent(silent)
                known = left if math.isfinite(left) else None
                words = f"{silent * self.slot_users:,} people who come one after another and add no noise"
                rows.append(Collusion(f"analyzer + {silent} slots in a row", known, delta, words))
        rows.append(Collusion(f"analyzer + {self.fatal_silence} slots in a row", None, None, self.exposed))
        rows.append(Collusion("analyzer + a shuffler", None, None, "see whose messages are whose in its windows"))
        return tuple(rows)

    @property
    def exposed(self) -> str:
        """What a run of false people would show, in words."""
        people = self.fatal_silence * self.slot_users
        return f"{people:,} false people in a row show a weighed sum of everybody before them, without noise"

    @property
    def reference_noise(self) -> str:
        return "skellam" if self.domain.moved is None else "laplace"

    # --- clients that lie --------------------------------------------------------------------

    can_be_voided: ClassVar[bool] = True

    @property
    def influence(self) -> float | None:
        return None

    @property
    def lying_client(self) -> str:
        return (
            "moves all later estimates as far as it likes, or voids a window, after which people count by the rate "
            "before them; a random change is detected"
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*super(CarriedPlan, self).warnings, f"Noise is carried from slot to slot: {self.exposed}.")

    def learner(self) -> Any:
        from shuffledp.continual.carried.counter import CarriedCounter

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
                f"at most {self.error_bound:.4g}{self.unit} at all times, with {self.confidence:.0%} confidence ({proof})",
            ),
            ("it rests on", f"every slot's people adding their noise: {self.exposed}"),
            ("one lying client", self.lying_client),
        ]

    # --- the audit ---------------------------------------------------------------------------

    def audited_effort(self, honest: int) -> int:
        return 2 * min(self.weights.slots, _AUDITED) * self.weights.windows

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """The likelihood of the two inputs by the windows after a user of the first slot, in a thousandth of a deviation."""
        return _views(self, side, trials, self._part(self._fraction(honest)), bits)

    def quieter(self, part: float) -> dict[str, Any]:
        begins = tuple(tuple(part * each for each in row) for row in self.weights.begins)
        return {"weights": replace(self.weights, variance=part * self.weights.variance, begins=begins)}

    # --- the file ----------------------------------------------------------------------------

    def _decides(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "protocol": self.protocol,
            "method": self.method,
            "users": self.users,
            "shufflers": self.shufflers,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "honest_fraction": self.honest_fraction,
            "confidence": self.confidence,
            "shufflers_used": self.shufflers_used,
            "noise": self.noise,
            "certified_noise_bound": self.certified_noise_bound,
            "domain": self.domain.document(),
        }

    def document(self) -> dict[str, Any]:
        """The plan as JSON: every derived number, a version and a fingerprint."""
        return {
            **self._decides(),
            "error_bound": self.error_bound,
            "bound": "proved" if self.certified_noise_bound is None else "certified",
            "standard_error_max": self.standard_error_max,
            "slot_users": self.slot_users,
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
            "bits_per_message": self.bits_per_message,
            "uncounted": self.uncounted,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The plan that a JSON document describes; refused where any number was changed."""
        again = "make it again with `shuffledp plan counter ... -o FILE`"
        if not isinstance(document, Mapping) or document.get("method") != cls.method:
            raise DataError("plan.method", "another", f"must be {cls.method}", again)
        try:
            noise = dict(document["noise"])
            plan = cls(
                users=document["users"],
                shufflers=document["shufflers"],
                privacy=Privacy(document["epsilon"], document["delta"]),
                honest_fraction=document["honest_fraction"],
                confidence=document["confidence"],
                shufflers_used=document["shufflers_used"],
                weights=_weights_from(noise),
                certified_noise_bound=document["certified_noise_bound"],
                domain=domain_from(document["domain"]),
            )
        except (KeyError, TypeError, ValueError) as missing:
            raise DataError("plan", str(missing), "must have all its fields", again) from None
        decides = plan._decides()
        for key, value in plan.document().items():
            found = document.get(key)
            if found != value if key in decides else not alike(found, value):
                raise DataError(f"plan.{key}", found, f"must be {value} in this plan", again)
        return plan


# An audit looks at the windows of so many slots after a user.
_AUDITED = 400


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
def _window_batch(plan: CarriedPlan, kind: tuple[int, int]) -> WindowBatch:
    sizes = plan._slots_of(kind)
    shares = plan._shares[plan._honest_of(kind, plan.honest_fraction)]
    lowest, highest = plan._plausible
    splitting = Splitting(shares, plan._modulus_bits, lowest, highest)
    return WindowBatch(sum(sizes), sizes, splitting, plan.domain.coordinates)


@lru_cache(maxsize=32)
def _noise_bound(weights: CarriedWeights, surplus: float, failure: float) -> float:
    return horizon_noise_bound(weights, surplus, failure)


@lru_cache(maxsize=4)
def _bounds_at(weights: CarriedWeights, surplus: float, failure: float) -> NDArray[np.float64]:
    return bounds_at(weights, surplus, failure)


def _smoothing_delta(factor: float, part: float) -> float:
    """What a law that is off by this part adds to delta: P <= (1 + part) P~, and Q~ <= Q / (1 - part)."""
    return 2 * part * (1 + 2 * factor)


def _as_lists(document: Any) -> Any:
    if isinstance(document, Mapping):
        return {name: _as_lists(value) for name, value in document.items() if name != "is_begun"}
    return [_as_lists(each) for each in document] if isinstance(document, tuple) else document


def _weights_from(noise: dict[str, Any]) -> CarriedWeights:
    noise.pop("family")
    lists = {name: tuple(noise.pop(name)) for name in ("poles", "knots", "weights")}
    rows = {name: tuple(tuple(row) for row in noise.pop(name)) for name in ("gains", "begins")}
    return CarriedWeights(**lists, **rows, **noise)


def _views(plan: CarriedPlan, side: int, trials: int, part: float, bits: RandomBits) -> NDArray[np.int64]:
    """Log likelihoods of runs in which the first user of the first slot has the highest or the lowest value."""
    weights = plan.weights
    slots = min(weights.slots, _AUDITED)
    variances = part * weights.noise_variances[:, :slots]
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
    moved = np.cumsum(taps) * float(weights.slot_weights[0]) * length
    if side:
        running += moved[:, np.newaxis]
    # Whitened by the filter, the likelihood is a sum along its column.
    noise, column = running, moved
    for pole in weights.poles:
        import scipy

        noise = scipy.signal.lfilter([1.0], [1.0, -pole], noise, axis=0)
        column = scipy.signal.lfilter([1.0], [1.0, -pole], column)
    score = (column / weights.slot_variances[:slots]) @ noise
    return np.asarray(np.floor(1000 * score), dtype=np.int64).reshape(-1, 1)
