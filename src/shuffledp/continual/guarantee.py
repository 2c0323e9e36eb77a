"""What a running sum protects: every term of delta, dropouts and collusions, and the messages that carry it."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.dropouts import check_honest_fraction, honest_users
from shuffledp.accounting.guarantee import Collusion, DeltaTerm, delta_of_distance
from shuffledp.accounting.mixing import distance_of_each, distance_together
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.continual.batches import batch_mechanism
from shuffledp.continual.noise import TRANSPORT_PART
from shuffledp.continual.shape import CountShape
from shuffledp.continual.views import UserView
from shuffledp.continual.visits import Visits
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.plan import TermsCurve
from shuffledp.protocols.request import once
from shuffledp.protocols.sums.batches import SumBatch
from shuffledp.schedules.combinatorial import batch_counts, slots

# What any table of noise cuts off and rounds, at most: see TableLaw.from_ratios.
_TABLE_DISTANCE = 2.0**-107


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateCount(CountShape):
    """A shape with its guarantee: a user is in at most `shufflers_used` batches, each with the whole noise."""

    theory_page: ClassVar[str] = "docs/theory/running-sums.md"

    # --- the messages ------------------------------------------------------------------------

    def mechanism(self, users: int) -> SumBatch:
        """What the users of a batch of this size send."""
        distance = self.distance_per_batch
        return batch_mechanism(
            users, self.honest_fraction, self.batch_noise, distance, self.domain, self.mixed_together
        )

    @property
    def messages_per_user_max(self) -> int:
        """Messages that a user sends at most, to all shufflers together."""
        # In a batch with `left` of the budget, a user's batch of the next level has at most as much left.
        # Batches of level 1 are a slot each, whatever is left.
        slot = max(mechanism.messages_max for mechanism in self._mechanisms_of(1, self.budget))
        most = {0: 0, **dict.fromkeys(range(1, self.budget + 1), slot)}
        for level in range(2, self.shufflers_used + 1):
            best, here = 0, {0: 0}
            for left in range(1, self.budget + 1):
                sent = max(mechanism.messages_max for mechanism in self._mechanisms_of(level, left))
                best = max(best, sent + most[left])
                here[left] = best
            most = here
        return most[self.budget]

    @property
    def messages_per_user_mean(self) -> float:
        """Messages that a user sends on average, to all shufflers together, over the whole schedule."""
        batches = batch_counts(self.budget, self.shufflers_used)
        everywhere = slots(self.budget, self.shufflers_used)
        if self.estimator == "combined":
            # Every slot but the last is a batch of level 1.
            batches[0] = {self.budget: everywhere - 1}
        sent = sum(
            count * slots(left, level - 1) * self._mechanisms_of(level, left)[0].messages_mean
            for level, counts in enumerate(batches, 1)
            for left, count in counts.items()
        )
        return sent / everywhere

    def _mechanisms_of(self, level: int, left: int) -> list[SumBatch]:
        """The mechanisms of batches over whole slots, and of those over slots with a user less, where there are any."""
        most = slots(left, level - 1) * self.slot_users
        if not self._short_slots:
            return [self.mechanism(most)]
        least = slots(left, level - 1) * (self.slot_users - 1)
        return [self.mechanism(size) for size in self.batch_sizes[level] if least <= size <= most]

    @property
    def bits_per_message(self) -> int:
        """The size of the largest message before encryption."""
        return max(self.mechanism(sizes[0]).bits_per_message for sizes in self.batch_sizes.values())

    # --- privacy -----------------------------------------------------------------------------

    @once
    def distance_per_batch(self) -> float:
        """How much the shares of one batch may show beyond their sum."""
        if self.batch_noise.is_exact:
            return 0.0
        together, batches = self._distance_of_all, self.shufflers_used
        # Plans of version 0.1.0 add distances up.
        return distance_of_each(together, batches) if self.mixed_together else together / batches

    @property
    def _distance_of_all(self) -> float:
        """How much the shares of all a user's batches may show beyond their sums."""
        is_free = self.mixed_together and self.view.takes_no_delta(self.batch_noise, self.privacy.epsilon)
        sampling = delta_of_distance(math.exp(self.privacy.epsilon), self._sampling_distance)
        left = (1.0 if is_free else TRANSPORT_PART) * self.privacy.delta * (1 - 1e-9) - sampling
        return left / (1 + math.exp(self.privacy.epsilon))

    @property
    def _sampling_distance(self) -> float:
        """The distance by sampling of all numbers of a user's batches, as if each drew twice its part of the noise."""
        draws = self.batch_noise.draws(Fraction(2, honest_users(self.slot_users, self.honest_fraction)))
        return draws * self.domain.coordinates * self.shufflers_used * self.users * _TABLE_DISTANCE

    @property
    def view(self) -> UserView:
        """What a user's batches show of the user."""
        return UserView.of(self.domain, self.shufflers_used, self.privacy)

    def pair(self, honest: int) -> DominatingPair:
        """What one batch shows of a user's value; a user is in at most `shufflers_used` of them."""
        return self.view.pair(self.batch_noise, float(self._honest_part(self._fraction(honest))))

    @property
    def charged_pair(self) -> DominatingPair:
        # A user meets the pair once a moved noise, or once a batch where a pair is a whole batch's.
        times = self.view.noises if self.view.composes_exactly(self.batch_noise) else self.view.batches
        return RepeatedPair.of(self.pair(self.honest_users), times)

    def _fraction(self, honest: int) -> float:
        """The part of every batch that is honest, where so many of all users are."""
        return self.honest_fraction if honest == self.honest_users else honest / self.users

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return self.delta_terms_at(epsilon, self._fraction(honest))

    def delta_terms_at(self, epsilon: float, fraction: float) -> tuple[DeltaTerm, ...]:
        """Every summand of delta at this epsilon, when this fraction of every batch is honest."""
        # As promised if the plan's fraction is honest, else the worst batch of each level.
        promised = 0.0 if self.batch_noise.is_exact else self._distance_of_all
        shown = promised if fraction == self.honest_fraction else _worst_distances(self, fraction)
        factor = math.exp(epsilon)
        return (
            *self.view.delta_terms(self.batch_noise, epsilon, float(self._honest_part(fraction))),
            DeltaTerm(
                "transport",
                delta_of_distance(factor, shown),
                f"(1 + e^epsilon) times {shown:.3g}, what the shares of all a user's batches show beyond their sums",
            ),
            DeltaTerm(
                "sampling",
                delta_of_distance(factor, self._sampling_distance),
                "(1 + e^epsilon) times what tables of noise cut off and round",
            ),
        )

    def visit_terms(self, visits: int, epsilon: float) -> tuple[DeltaTerm, ...]:
        """All a user's batches, and as often what shares and tables show."""
        noise = Visits(visits, self.shufflers_used).together(self.view).delta_terms(self.batch_noise, epsilon)
        once = self.delta_terms_at(epsilon, self.honest_fraction)
        rest = [term for term in once if term.name in ("transport", "sampling")]
        return (*noise, *(replace(term, value=visits * term.value) for term in rest))

    def _honest_part(self, fraction: float) -> Fraction:
        """The noise that is left when this fraction of every batch is honest, as a part of what the plan counts on.

        It is that of the worst batch, with the worst users in it.
        """
        if fraction == self.honest_fraction:
            return Fraction(1)
        return min(
            self.batch_noise.left(size, honest_users(size, self.honest_fraction), honest_users(size, fraction))
            for size in self.all_sizes
        )

    method = forwarded("batch_noise.family")

    @property
    def dominates_because(self) -> str:
        return (
            f"A user is in at most {self.shufflers_used} batches, all of which close after the user came and carry "
            "the whole noise: with everything else known, the view is so many independent noises, each shifted by "
            "the user's value; the noise term is their composition."
        )

    def epsilon_with(self, honest_fraction: float) -> float:
        """The epsilon that is left, at the plan's delta, when only this fraction of every batch is honest.

        More honest users than the plan counts on can be imagined away, so epsilon then is at most the plan's.
        """
        check_honest_fraction(honest_fraction)
        if self._honest_part(honest_fraction) == 0:
            return math.inf
        curve = TermsCurve(lambda epsilon: self.delta_terms_at(epsilon, honest_fraction))
        left = epsilon_at(curve, self.privacy.delta)
        return min(left, self.privacy.epsilon) if honest_fraction >= self.honest_fraction else left

    def collusions(self) -> tuple[Collusion, ...]:
        """Who learns what together with whom, in figures."""
        delta = self.privacy.delta
        rows = [Collusion("analyzer alone", self.privacy.epsilon, delta, "sees the permuted messages of every batch")]
        for fraction in (0.9, 0.5):
            if fraction < self.honest_fraction:
                left = self.epsilon_with(fraction)
                rows.append(
                    Collusion(
                        f"analyzer + {1 - fraction:.3g} of every batch",
                        left if math.isfinite(left) else None,
                        delta,
                        "the other users' noise is left",
                    )
                )
        rows.append(Collusion("analyzer + a shuffler", None, None, "see whose messages are whose in its batches"))
        return tuple(rows)

    @property
    def can_be_voided(self) -> bool:  # type: ignore[override]
        return self.mechanism(self.slot_users).can_be_voided

    @property
    def influence(self) -> float | None:
        most = self.mechanism(self.slot_users).influence
        return None if most is None else self.domain.step * most

    @property
    def lying_client(self) -> str:
        """What one client that does not follow the protocol can do to the estimates."""
        if self.influence is None:
            return "moves each of its batches as far as it likes or voids it; a random change is detected"
        together = ", all coordinates together" if self.domain.coordinates > 1 else ""
        return f"moves each of its {self.shufflers_used} batches by at most {self.influence:g}{together}"


@lru_cache(maxsize=64)
def _worst_distances(plan: PrivateCount, fraction: float) -> float:
    """The worst batch of each level, all of them together."""
    return distance_together(
        max(plan.mechanism(size).distance_with(honest_users(size, fraction)) for size in sizes)
        for sizes in plan.batch_sizes.values()
    )
