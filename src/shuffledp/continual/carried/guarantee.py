"""What a running sum with carried noise protects: every term of delta, collusions, and clients that lie."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, delta_of_distance
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.continual.carried.exposure import MOST_SLOTS, shift_with_silent
from shuffledp.continual.carried.shape import CarriedShape
from shuffledp.continual.carried.smoothing import smoothing_delta
from shuffledp.continual.carried.transport import distance_with
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.visits import check_visited
from shuffledp.protocols.plan import TermsCurve
from shuffledp.protocols.sums.noise import NEVER_MEET
from shuffledp.protocols.vector_sum.base import ROUNDING_PART


@lru_cache(maxsize=64)
def _visits_shift(weights: CarriedWeights, visits: int) -> float:
    return weights.visits_shift(visits)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCarried(CarriedShape):
    """Windows with their guarantee: all that they show of a user is what a Gaussian mechanism would."""

    theory_page: ClassVar[str] = "docs/theory/carried-noise.md"

    # --- privacy -----------------------------------------------------------------------------

    @property
    def _length(self) -> float:
        """How many steps apart two users' values are, but for `_rounding_failure`."""
        return self.domain.difference(ROUNDING_PART * self.privacy.delta).length

    @property
    def _rounding_failure(self) -> float:
        return self.domain.difference(ROUNDING_PART * self.privacy.delta).failure

    def _part(self, fraction: float) -> float:
        """The noise that is left when this fraction of every slot is honest, as a part of what the plan counts on."""
        if fraction == self.honest_fraction:
            return 1.0
        return min(honest_users(size, fraction) / honest_users(size, self.honest_fraction) for size in self._slot_sizes)

    def _shift(self, fraction: float, visits: int = 1) -> float:
        part = self._part(fraction)
        # Rounding takes a variance of 4 as before, however little is left: the filter's noise makes up for it.
        left = part if part >= 1 else part - self.weights.rounding_part * (1 - part)
        return _visits_shift(self.weights, visits) * self._length / math.sqrt(left) if left > 0 else math.inf

    def pair(self, honest: int) -> DominatingPair:
        """What all windows together show of a user's value."""
        shift = self._shift(self._fraction(honest))
        return GaussianPair(shift) if shift < math.inf else NEVER_MEET

    def _fraction(self, honest: int) -> float:
        """The part of every slot that is honest, where so many of all users are."""
        return self.honest_fraction if honest == self.honest_users else honest / self.users

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return self.delta_terms_at(epsilon, self._fraction(honest))

    def visit_terms(self, visits: int, epsilon: float) -> tuple[DeltaTerm, ...]:
        return self.delta_terms_at(epsilon, self.honest_fraction, visits)

    def delta_terms_at(self, epsilon: float, fraction: float, visits: int = 1) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon, when this fraction of every slot is honest.

        A user who comes several times, never twice in one slot, moves everything by a sum of columns, and rounds as
        often; all windows' shares and noise are counted anyway.
        """
        check_visited(visits)
        factor, shift = math.exp(epsilon), self._shift(fraction, visits)
        smoothing = self._smoothing_with(min(1.0, self._part(fraction)))
        noise = GaussianPair(shift) if shift < math.inf else NEVER_MEET
        # As promised if the plan's fraction is honest.
        shown = self.distance if fraction == self.honest_fraction else self._distance_with(fraction)
        terms = [
            DeltaTerm(
                "noise",
                noise.delta(epsilon),
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
                smoothing_delta(factor, smoothing),
                f"whole noise is a rounded Gaussian's but for a part of {smoothing:.3g}",
            ),
        ]
        if self._rounding_failure:
            why = "two neighbours' rounded values are further apart than that"
            terms.append(DeltaTerm("rounding", visits * self._rounding_failure, why))
        return tuple(terms)

    def _distance_with(self, fraction: float) -> float:
        """What the shares show when this fraction of every slot is honest."""
        shares: dict[int, int] = {}
        planned = self._shares
        for kind in self._windows:
            left = self._honest_of(kind, fraction)
            few = planned[self._honest_of(kind, self.honest_fraction)]
            shares[left] = min(few, shares.get(left, few))
        return distance_with(self._honest_windows(fraction), shares, self._modulus_bits, self.domain.coordinates)

    @property
    def dominates_because(self) -> str:
        return (
            "All that windows ever show is the running sums, and these are a weighed sum of everybody's values plus "
            "whole noise whose law is, but for 1e-20, that of rounded Gaussian noise: so the view is computed from a "
            "Gaussian mechanism, in which one user moves one column of a matrix of known length."
        )

    def epsilon_with(self, honest_fraction: float) -> float:
        """The epsilon that is left, at the plan's delta, when only this fraction of every slot is honest."""
        check_honest_fraction(honest_fraction)
        curve = TermsCurve(lambda epsilon: self.delta_terms_at(epsilon, honest_fraction))
        left = epsilon_at(curve, self.privacy.delta)
        return min(left, self.privacy.epsilon) if honest_fraction >= self.honest_fraction else left

    def epsilon_with_silent(self, silent: int) -> float:
        """The epsilon that is left, at the plan's delta, when so many slots in a row add no noise; inf if none."""
        shift = shift_with_silent(self.weights, silent, self._suppliers, self.silent_slots) * self._length
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
        if self.weights.slots <= MOST_SLOTS:
            for silent in range(1, self.fatal_silence):
                left = self.epsilon_with_silent(silent)
                known = left if math.isfinite(left) else None
                words = f"{silent * self.slot_users:,} people who come one after another and add no noise"
                rows.append(Collusion(f"analyzer + {_in_a_row(silent)}", known, delta, words))
        rows.append(Collusion(f"analyzer + {_in_a_row(self.fatal_silence)}", None, None, self.exposed))
        rows.append(Collusion("analyzer + a shuffler", None, None, "see whose messages are whose in its windows"))
        return tuple(rows)

    @property
    def exposed(self) -> str:
        """What a run of false people would show, in words."""
        people = self.fatal_silence * self.slot_users
        return f"{people:,} false people in a row show a weighed sum of everybody before them, without noise"

    @property
    def users_must(self) -> str:
        return f"users of every slot add their noise, as {self.exposed}"

    @property
    def rests_on(self) -> str:
        return f"every slot's people adding their noise: {self.exposed}"

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
        return (*super(PrivateCarried, self).warnings, f"Noise is carried from slot to slot: {self.exposed}.")


def _in_a_row(slots: int) -> str:
    return "a whole slot" if slots == 1 else f"{slots} slots in a row"
