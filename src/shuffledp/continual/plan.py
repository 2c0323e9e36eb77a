"""The plan of a private running count: schedule, noise and what is proved of them."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, Guarantee, delta_of_distance
from shuffledp.accounting.mixing import mixing_distance
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.continual.batches import BatchMechanism, CoinBatch, ShareBatch, batch_mechanism, total_coins
from shuffledp.continual.bounds import horizon_bound, sum_tails
from shuffledp.continual.noise import FAMILIES, TRANSPORT_PART, BatchNoise, CoinNoise
from shuffledp.continual.planner import best_layout, slot_users_for
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.base import SCHEMA, check_users
from shuffledp.schedules.combinatorial import batch_counts, combinatorial_schedule, slots
from shuffledp.schedules.prefixes import PrefixSchedule

# What any table of noise cuts off and rounds, at most: see TableLaw.from_ratios.
_TABLE_DISTANCE = 2.0**-107


@lru_cache(maxsize=4)
def _schedule(budget: int, shufflers: int, slot_users: int) -> PrefixSchedule:
    return combinatorial_schedule(budget, shufflers, slot_users)


@lru_cache(maxsize=4096)
def _mechanism(users: int, honest_fraction: float, noise: BatchNoise, distance: float) -> BatchMechanism:
    return batch_mechanism(users, honest_fraction, noise, distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterPlan:
    """A running count of users whose value is 1, estimated after every user.

    `shufflers` work concurrently, and `shufflers_used` of them are worth their part of epsilon. Time is cut
    into slots of `slot_users`; every estimate is a sum of at most `budget` batches, and half of the users since.

    Reference: [000] section 3, with a better schedule, exact composition and exact tails.
    """

    protocol: ClassVar[str] = "counter"
    theory_page: ClassVar[str] = "docs/theory/running-sums.md"

    users: int
    shufflers: int
    privacy: Privacy
    noise: BatchNoise
    shufflers_used: int
    budget: int
    honest_fraction: float = 1.0
    confidence: float = 0.95
    certified_noise_bound: int | None = None

    def __post_init__(self) -> None:
        check_users(self.users)
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        check_honest_fraction(self.honest_fraction)
        if not 1 <= self.shufflers_used <= self.shufflers:
            raise ParameterError(
                "shufflers_used", self.shufflers_used, f"must lie in 1..{self.shufflers}", "make the plan again"
            )
        if self.budget < 1 or slots(self.budget, self.shufflers_used) > 1 << 31:
            raise ParameterError("budget", self.budget, "must be >= 1 and give few slots", "make the plan again")
        certified = self.certified_noise_bound
        if certified is not None and not 0 <= certified <= self.proved_noise_bound:
            raise ParameterError(
                "certified_noise_bound", certified, f"must lie in 0..{self.proved_noise_bound}", "certify it again"
            )
        if not isinstance(self.noise, CoinNoise) and self.distance_per_batch <= 0:
            raise InfeasibleError(
                "delta",
                self.privacy.delta,
                f"is smaller than what sampling tables round off at epsilon {self.privacy.epsilon:g}",
                "choose a larger delta, a smaller epsilon, or the noise coins, which is drawn exactly",
            )
        proved = sum(term.value for term in self.delta_terms(self.privacy.epsilon))
        if proved > self.privacy.delta:
            raise InfeasibleError(
                "noise",
                json.dumps(self.noise.parameters),
                f"must reach delta {self.privacy.delta:g} at epsilon {self.privacy.epsilon:g} but gives {proved:.3g}",
                "add noise, or choose a larger epsilon or delta",
            )

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        shufflers: int,
        privacy: Privacy,
        noise: str = "auto",
        honest_fraction: float = 1.0,
        confidence: float = 0.95,
    ) -> Self:
        """The schedule and the noise with the smallest proved bound over the whole horizon."""
        check_users(users)
        check_shufflers(shufflers)
        check_confidence(confidence)
        check_honest_fraction(honest_fraction)
        if noise != "auto" and noise not in FAMILIES:
            raise ParameterError("noise", noise, f"must be auto, {' or '.join(FAMILIES)}", "auto picks the best")
        layout = best_layout(
            users, shufflers, privacy, family=noise, confidence=confidence, surplus=1 / honest_fraction
        )
        plan = cls(
            users=users,
            shufflers=shufflers,
            privacy=privacy,
            noise=layout.noise,
            shufflers_used=layout.shufflers,
            budget=layout.budget,
            honest_fraction=honest_fraction,
            confidence=confidence,
        )
        if plan.error_bound >= users / 2:
            raise InfeasibleError(
                "honest_fraction",
                honest_fraction,
                f"leaves no private count nearer than half of the users, {users / 2:g}",
                "count on more honest users, or count more people",
            )
        return plan

    # --- the schedule ------------------------------------------------------------------------

    @property
    def slot_users(self) -> int:
        """The users of the smallest batch."""
        return slot_users_for(self.users, self.budget, self.shufflers_used)

    @property
    def schedule(self) -> PrefixSchedule:
        """Which batch covers which slots."""
        return _schedule(self.budget, self.shufflers_used, self.slot_users)

    @property
    def batch_sizes(self) -> dict[int, tuple[int, ...]]:
        """The sizes that batches of each level have, largest first."""
        return {
            level: tuple(slots(left, level - 1) * self.slot_users for left in range(self.budget, 0, -1))
            if level > 1
            else (self.slot_users,)
            for level in range(1, self.shufflers_used + 1)
        }

    def mechanism(self, users: int) -> BatchMechanism:
        """What the users of a batch of this size send."""
        return _mechanism(users, self.honest_fraction, self.noise, self.distance_per_batch)

    # --- numbers -----------------------------------------------------------------------------

    @property
    def surplus(self) -> float:
        """How much more noise a batch has, at most, when everybody follows the protocol."""
        if isinstance(self.noise, CoinNoise):
            return total_coins(self.noise.coins, self.honest_fraction) / self.noise.coins
        if self.honest_fraction == 1:
            return 1.0
        sizes = {size for level in self.batch_sizes.values() for size in level}
        return max(size / honest_users(size, self.honest_fraction) for size in sizes)

    @property
    def noise_bound(self) -> int:
        """No prefix's noise is larger, with probability `confidence`, over the whole horizon."""
        return self.proved_noise_bound if self.certified_noise_bound is None else self.certified_noise_bound

    @property
    def proved_noise_bound(self) -> int:
        """By exact tails and a union over all prefixes."""
        tails = sum_tails(self.noise.law(self.surplus), self.budget)
        return horizon_bound(tails, self.budget, lambda j: slots(j, self.shufflers_used), 1 - self.confidence)

    @property
    def error_bound(self) -> float:
        """Every estimate of the horizon is off by at most this with probability `confidence`, whatever the data."""
        return self.noise_bound + (self.slot_users - 1) / 2

    @property
    def standard_error_max(self) -> float:
        """Of the noise in the worst estimate of the horizon."""
        return math.sqrt(self.budget * self.noise.law(self.surplus).variance)

    def standard_errors(self) -> NDArray[np.float64]:
        """Of the noise in the estimate of the first 0, 1, 2, ... slots."""
        return np.asarray(np.sqrt(self.schedule.depths * self.noise.law(self.surplus).variance), dtype=np.float64)

    @property
    def messages_per_user_max(self) -> int:
        """Messages that a user sends at most, to all shufflers together."""
        # In a batch with `left` of the budget, a user's batch of the next level has at most as much left.
        most = dict.fromkeys(range(self.budget + 1), 0)
        for level in range(1, self.shufflers_used + 1):
            best, here = 0, {0: 0}
            for left in range(1, self.budget + 1):
                best = max(best, self._mechanism_of(level, left).messages_max + most[left])
                here[left] = best
            most = here
        return most[self.budget]

    @property
    def messages_per_user_mean(self) -> float:
        """Messages that a user sends on average, to all shufflers together."""
        sent = sum(
            count * slots(left, level - 1) * self._mechanism_of(level, left).messages_mean
            for level, counts in enumerate(batch_counts(self.budget, self.shufflers_used), 1)
            for left, count in counts.items()
        )
        return sent / slots(self.budget, self.shufflers_used)

    def _mechanism_of(self, level: int, left: int) -> BatchMechanism:
        return self.mechanism(slots(left, level - 1) * self.slot_users)

    @property
    def bits_per_message(self) -> int:
        """The size of the largest message before encryption."""
        return max(self.mechanism(sizes[0]).bits_per_message for sizes in self.batch_sizes.values())

    # --- privacy -----------------------------------------------------------------------------

    @property
    def distance_per_batch(self) -> float:
        """How much the shares of one batch may show beyond their sum."""
        if isinstance(self.noise, CoinNoise):
            return 0.0
        sampling = delta_of_distance(math.exp(self.privacy.epsilon), self._sampling_distance)
        left = TRANSPORT_PART * self.privacy.delta * (1 - 1e-9) - sampling
        return left / (1 + math.exp(self.privacy.epsilon)) / self.shufflers_used

    @property
    def _sampling_distance(self) -> float:
        """Two draws for every user of a user's batches."""
        return 2 * self.shufflers_used * self.users * _TABLE_DISTANCE

    def pair(self) -> ShiftPair:
        """What one batch shows of a user's bit; a user is in at most `shufflers_used` of them."""
        return self.noise.pair()

    def delta_terms(self, epsilon: float, honest_fraction: float | None = None) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon, when this fraction of every batch is honest."""
        fraction = self.honest_fraction if honest_fraction is None else honest_fraction
        shown = self._distances(fraction)
        factor = math.exp(epsilon)
        return (
            DeltaTerm(
                "noise",
                self.noise.delta(epsilon, self.shufflers_used, self._honest_part(fraction)),
                f"the composition of {self.shufflers_used} batches' noises, exact",
            ),
            DeltaTerm(
                "transport",
                delta_of_distance(factor, shown),
                f"(1 + e^epsilon) times {shown:.3g}, what the shares of all a user's batches show beyond their sums",
            ),
            DeltaTerm(
                "sampling",
                0.0 if isinstance(self.noise, CoinNoise) else delta_of_distance(factor, self._sampling_distance),
                "(1 + e^epsilon) times what tables of noise cut off and round",
            ),
        )

    def _honest_part(self, fraction: float) -> float:
        """The noise that is left, as a part of what the plan counts on, in the worst batch."""
        if fraction == self.honest_fraction:
            return 1.0
        if isinstance(self.noise, CoinNoise):
            left = math.floor(total_coins(self.noise.coins, self.honest_fraction) * fraction + 1e-9)
            return left / self.noise.coins
        sizes = {size for level in self.batch_sizes.values() for size in level}
        return min(honest_users(size, fraction) / honest_users(size, self.honest_fraction) for size in sizes)

    def _distances(self, fraction: float) -> float:
        """Of all a user's batches: as promised if the plan's fraction is honest, else the worst of each level."""
        if isinstance(self.noise, CoinNoise):
            return 0.0
        if fraction == self.honest_fraction:
            return self.shufflers_used * self.distance_per_batch
        return _worst_distances(self, fraction)

    @property
    def method(self) -> str:
        """The family of the noise."""
        return self.noise.family

    def guarantee(self) -> Guarantee:
        """The proof of the plan's claim, as data; the pair is one batch's."""
        return Guarantee(
            claim=self.privacy,
            pair=self.pair(),
            theory_page=self.theory_page,
            dominates_because=(
                f"A user is in at most {self.shufflers_used} batches, all of which close after the user came and carry "
                "the whole noise: with everything else known, the view is so many independent noises, each shifted by "
                "the user's bit; the noise term is their composition."
            ),
            terms=self.delta_terms(self.privacy.epsilon),
        )

    def epsilon_with(self, honest_fraction: float) -> float:
        """The epsilon that is left, at the plan's delta, when only this fraction of every batch is honest.

        For coins it is the fraction of a batch's coins. More honest users than the plan counts on can be imagined
        away, so epsilon then is at most the plan's.
        """
        check_honest_fraction(honest_fraction)
        if self._honest_part(honest_fraction) == 0:
            return math.inf
        left = epsilon_at(_CurveWith(self, honest_fraction), self.privacy.delta)
        return min(left, self.privacy.epsilon) if honest_fraction >= self.honest_fraction else left

    def collusions(self) -> tuple[Collusion, ...]:
        """Who learns what together with whom, in figures."""
        delta = self.privacy.delta
        dealt = isinstance(self.noise, CoinNoise)
        rows = [Collusion("analyzer alone", self.privacy.epsilon, delta, "sees the permuted messages of every batch")]
        for fraction in (0.9, 0.5):
            if fraction < self.honest_fraction:
                left = self.epsilon_with(fraction)
                rows.append(
                    Collusion(
                        f"analyzer + {1 - fraction:.3g} of every batch" + (" (of its coins)" if dealt else ""),
                        left if math.isfinite(left) else None,
                        delta,
                        "the other users' noise is left",
                    )
                )
        rows.append(Collusion("analyzer + a shuffler", None, None, "see whose messages are whose in its batches"))
        return tuple(rows)

    @property
    def lying_client(self) -> str:
        """What one client that does not follow the protocol can do to the estimates."""
        mechanism = self.mechanism(self.slot_users)
        if isinstance(mechanism, CoinBatch):
            return f"moves each of its {self.shufflers_used} batches by at most {mechanism.messages_max}"
        return "moves each of its batches as far as it likes or voids it; a random change is detected"

    # --- the file ----------------------------------------------------------------------------

    def _decides(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "protocol": self.protocol,
            "users": self.users,
            "shufflers": self.shufflers,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "honest_fraction": self.honest_fraction,
            "confidence": self.confidence,
            "shufflers_used": self.shufflers_used,
            "budget": self.budget,
            "noise": {"family": self.noise.family, **self.noise.parameters},
            "certified_noise_bound": self.certified_noise_bound,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the plan: two plans with one fingerprint are the same."""
        return hashlib.sha256(json.dumps(self._decides(), sort_keys=True).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """The plan as JSON: every derived number, a version and a fingerprint."""
        return {
            **self._decides(),
            "error_bound": self.error_bound,
            "bound": "proved" if self.certified_noise_bound is None else "certified",
            "standard_error_max": self.standard_error_max,
            "smallest_batch": self.slot_users,
            "largest_batch": max(sizes[0] for sizes in self.batch_sizes.values()),
            "messages_per_user_mean": self.messages_per_user_mean,
            "messages_per_user_max": self.messages_per_user_max,
            "bits_per_message": self.bits_per_message,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The plan that a JSON document describes; refused where any number was changed."""
        again = "make it again with `shuffledp plan counter ... -o FILE`"
        if not isinstance(document, Mapping) or document.get("protocol") != cls.protocol:
            raise DataError("plan.protocol", "another", f"must be {cls.protocol}", again)
        noise = document.get("noise")
        kind = FAMILIES.get(str(noise.get("family"))) if isinstance(noise, Mapping) else None
        if kind is None or not isinstance(noise, Mapping):
            raise DataError("plan.noise", noise, f"must have a family, one of {', '.join(FAMILIES)}", again)
        parameters = {name: value for name, value in noise.items() if name != "family"}
        try:
            plan = cls(
                users=document["users"],
                shufflers=document["shufflers"],
                privacy=Privacy(document["epsilon"], document["delta"]),
                noise=kind(**parameters),
                shufflers_used=document["shufflers_used"],
                budget=document["budget"],
                honest_fraction=document["honest_fraction"],
                confidence=document["confidence"],
                certified_noise_bound=document["certified_noise_bound"],
            )
        except (KeyError, TypeError) as missing:
            raise DataError("plan", str(missing), "must have all its fields", again) from None
        for key, value in plan.document().items():
            if document.get(key) != value:
                raise DataError(f"plan.{key}", document.get(key), f"must be {value} in this plan", again)
        return plan


def exact_surplus(plan: CounterPlan, batches: int) -> list[tuple[Fraction, NDArray[np.int64]]]:
    """How much more noise than is counted on a batch has, and which of the first so many batches have that."""
    members = np.arange(batches)
    if isinstance(plan.noise, CoinNoise):
        return [(Fraction(total_coins(plan.noise.coins, plan.honest_fraction), plan.noise.coins), members)]
    if plan.honest_fraction == 1:
        return [(Fraction(1), members)]
    sizes = (members + 1 - plan.schedule.parents[1 : batches + 1]) * plan.slot_users
    return [
        (Fraction(int(size), honest_users(int(size), plan.honest_fraction)), np.flatnonzero(sizes == size))
        for size in np.unique(sizes)
    ]


@lru_cache(maxsize=64)
def _worst_distances(plan: CounterPlan, fraction: float) -> float:
    """The worst batch of each level, added up."""
    total = 0.0
    for sizes in plan.batch_sizes.values():
        shown = 0.0
        for size in sizes:
            mechanism = plan.mechanism(size)
            if isinstance(mechanism, ShareBatch):
                splitting = mechanism.splitting
                honest = honest_users(size, fraction)
                shown = max(shown, mixing_distance(honest, splitting.shares, 1 << splitting.modulus_bits))
        total += shown
    return total


@dataclass(frozen=True, slots=True)
class _CurveWith:
    plan: CounterPlan
    fraction: float

    def delta(self, epsilon: float) -> float:
        return sum(term.value for term in self.plan.delta_terms(epsilon, self.fraction))


def check_shufflers(shufflers: Any) -> None:
    """Refuse what is no number of shufflers."""
    if isinstance(shufflers, bool) or not isinstance(shufflers, int) or shufflers < 1:
        raise ParameterError("shufflers", shufflers, "must be a whole number >= 1", "four are a good choice")


def check_confidence(confidence: Any) -> None:
    """Refuse what is no confidence."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0.5 <= confidence < 1:
        raise ParameterError("confidence", confidence, "must lie in [0.5, 1)", "0.95 is a common choice")
