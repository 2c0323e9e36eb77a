"""The plan of a private running sum: the best shape for a target, and its file."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.continual.batches import moduli_of
from shuffledp.continual.counter import Counter
from shuffledp.continual.guarantee import PrivateCount
from shuffledp.continual.planner import Layout, best_layout, with_grid
from shuffledp.continual.reference import counter_reference
from shuffledp.continual.request import CountRequest, Estimator
from shuffledp.continual.running import FIRST_SAVED, RunningPlan
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, Reals, SummedDomain, Vectors
from shuffledp.protocols.fields import Constants
from shuffledp.protocols.sums.noise import FAMILIES
from shuffledp.randomness import RandomBits
from shuffledp.schedules.layout import BatchLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterPlan(PrivateCount):
    """A running sum, estimated after every user: of bits (a count), of numbers in [0, 1], of vectors or categories.

    `shufflers` work concurrently, and `shufflers_used` of them are worth their part of epsilon. Time is cut
    into slots of `slot_users`; every estimate is a sum of at most `budget` batches, and the users since count by the
    rate before them as far as the bound allows. With the estimator "combined", two batches that close together are
    weighed against each other. With `counts_everybody` the last batch ends with the last user.

    Reference: [000] section 3, with a better schedule, exact composition and exact tails.
    """

    later_numbers: ClassVar[tuple[str, ...]] = ("uncounted", "modulus_bits")
    saved: ClassVar[tuple[str, ...]] = (
        *FIRST_SAVED,
        *("budget", "noise", "certified_noise_bound", "domain", "estimator"),
    )

    def _check_noise(self) -> None:
        self._check_shape()
        if not self.batch_noise.is_exact and self.distance_per_batch <= 0:
            raise InfeasibleError(
                "delta",
                self.privacy.delta,
                f"is smaller than what sampling tables round off at epsilon {self.privacy.epsilon:g}",
                "choose a larger delta, a smaller epsilon, or the noise coins, which is drawn exactly",
            )

    @classmethod
    def plan(  # type: ignore[override]
        cls,
        *,
        users: int,
        shufflers: int,
        privacy: Privacy,
        domain: SummedDomain | None = None,
        noise: str = "auto",
        estimator: Estimator | Literal["auto"] = "auto",
        confidence: float = 0.95,
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> Self:
        """The schedule and the noise with the smallest proved bound over the whole horizon.

        Args:
            users: how many people report, one after another.
            shufflers: how many shufflers may hold open batches at once.
            privacy: what holds for all that a person's messages show, in all batches together.
            domain: what is added up; bits if left out.
            noise: laplace, skellam or coins; auto takes the best.
            estimator: completed, combined, or auto.
            confidence: with which the error bound holds, over the whole horizon.
            honest_fraction: the part of every batch that is counted on to follow the protocol.
            max_messages: how many messages a user may send at most, to all shufflers together.
            constants: exact; a paper's own are not given for running sums.
        """
        request = CountRequest(
            users=users,
            shufflers=shufflers,
            privacy=privacy,
            domain=BITS if domain is None else domain,
            noise=noise,
            estimator=estimator,
            confidence=confidence,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            constants=constants,
        )
        return cls.for_request(request)

    @classmethod
    def plan_reals(cls, *, grid: int | None = None, **asked: Any) -> Self:
        """A running sum of numbers in [0, 1], on a grid that hardly costs anything.

        >>> plan = CounterPlan.plan_reals(users=100_000, shufflers=4, privacy=Privacy(1, 1e-6))
        >>> plan.domain.kind, plan.batch_noise.family, plan.error_bound < 120
        ('reals', 'laplace', True)
        """
        request = CountRequest(domain=Reals(1 if grid is None else grid), **asked)
        return cls.for_request(with_grid(request) if grid is None else request)

    @classmethod
    def plan_vectors(
        cls, *, dimension: int, radius: float, grid: int | None = None, apart: float | None = None, **asked: Any
    ) -> Self:
        """A running sum of vectors of length at most `radius`; the bound holds for every coordinate at once.

        Reference: [000] Corollary 3.5.
        """
        request = CountRequest(domain=Vectors(dimension, radius, 1 if grid is None else grid, apart), **asked)
        return cls.for_request(with_grid(request) if grid is None else request)

    @classmethod
    def for_request(cls, request: CountRequest) -> Self:  # type: ignore[override]
        """The plan with the smallest proved bound over the whole horizon that keeps to the request."""
        plan, domain = cls.of(request, best_layout(request))._closed_if_free(request.max_messages), request.domain
        middling = request.users * domain.reach
        if plan.error_bound >= middling:
            raise InfeasibleError(
                "honest_fraction",
                request.honest_fraction,
                f"leaves no private estimate nearer than {domain.middle:g} for everybody, {middling:g}",
                "count on more honest users, or count more people",
            )
        most = request.max_messages
        # Which batch has the most messages takes as long as all the rest: it is asked only where there is a limit.
        if most is not None and (sent := plan.messages_per_user_max) > most:
            problem = f"must be at least {sent}, what {plan.method} sends to all shufflers"
            raise ParameterError("max_messages", most, problem, "allow more messages, or use fewer shufflers")
        return plan

    @classmethod
    def of(cls, request: CountRequest, layout: Layout) -> Self:
        """The plan of this layout."""
        return cls(
            **request.common,
            shufflers=request.shufflers,
            batch_noise=layout.noise,
            shufflers_used=layout.shufflers,
            budget=layout.budget,
            confidence=request.confidence,
            domain=request.domain,
            estimator=layout.estimator,
            # Coins are exact: there is nothing to mix.
            mixed_together=not layout.noise.is_exact,
        )

    def _closed_if_free(self, max_messages: int | None) -> Self:
        """The plan whose last batch ends with the last user, where its bound is no larger; else this one.

        Batches of slots with a user less may need a message more: not where that is more than may be sent.
        """
        try:
            closed = replace(self, counts_everybody=True)
            is_free = closed.slot_users <= self.slot_users and closed.error_bound <= self.error_bound
            # Slots of one user or two: one less is too few to mix shares.
            closed.mechanism(max(1, closed.slot_users - 1))
        except ParameterError:
            return self
        is_short = max_messages is None or closed.messages_per_user_max <= max_messages
        return closed if is_free and is_short else self

    # --- values and batches ------------------------------------------------------------------

    def prepare(
        self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None
    ) -> NDArray[Any]:
        return self.domain.to_steps(self.check_values(values), bits=bits)

    @property
    def layout(self) -> BatchLayout:
        return BatchLayout(
            users=self.users,
            budget=self.budget,
            shufflers=self.shufflers_used,
            slot_users=self.slot_users,
            every_slot=self.estimator == "combined",
            messages={size: self.mechanism(size).messages_max for size in self._sizes_of_batches},
            counts_everybody=self.counts_everybody,
        )

    @property
    def _sizes_of_batches(self) -> set[int]:
        """The sizes that batches have when everybody comes."""
        by_level = self.schedule.sizes_with(every_slot=self.estimator == "combined")
        return {size for sizes in by_level for size in sizes}

    def learner(self) -> Any:
        return Counter(self)

    def reference(self) -> dict[str, float | None]:
        return counter_reference(self)

    def facts(self) -> list[tuple[str, str]]:
        domain = self.domain
        used = "" if self.shufflers_used == self.shufflers else f" of {self.shufflers}: more would only split epsilon"
        proof = "proved" if self.certified_noise_bound is None else "certified by runs of the noise, as its maker says"
        rows = [
            ("shufflers used", f"{self.shufflers_used}{used}"),
            (
                "batches",
                f"of {self.smallest_batch:,} to {self.largest_batch:,} users; an estimate is the sum of at most "
                f"{self.budget}",
            ),
        ]
        if self.estimator == "combined":
            rows.append(("second opinions", "where two batches close together, the noisier one has the smaller weight"))
        if domain.rounds:
            rows.append(("rounded", f"at random, once, to steps of {domain.step:.4g}"))
        return [
            *rows,
            ("noise of a batch", f"{self.batch_noise.law(self.surplus)}{' steps' if domain.rounds else ''}{self.unit}"),
            ("each user sends", self.sends),
            ("once all have come", self.in_the_end),
            (
                "error",
                f"at most {self.error_bound:g}{self.unit} at all times, with {self.confidence:.0%} confidence "
                f"({proof})",
            ),
            ("one lying client", self.lying_client),
        ]

    def spans(self) -> dict[int, list[tuple[int, int]]]:
        found = RunningPlan.spans(self)
        if self.estimator == "combined" and found:
            ends = self.schedule.users_by(np.arange(self.schedule.slots)).tolist()
            found[1] = list(itertools.pairwise(ends))
        return found

    # --- the audit ---------------------------------------------------------------------------

    def audited_effort(self, honest: int) -> int:
        """The noises of a user's batches: all carry the whole noise, whatever their size, so none shows more."""
        return 2 * self.shufflers_used * self.domain.coordinates

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        """The noisy sums of all of a user's batches, added up along the line from one neighbour to the other."""
        left = self._honest_part(self._fraction(honest))
        count = trials * self.shufflers_used * self.domain.coordinates
        drawn = self.batch_noise.sample(left, count, bits=bits).reshape(trials, self.shufflers_used, -1)
        lowest, highest = self.domain.neighbours
        line = np.sign(highest - lowest)
        moved = drawn + (highest if side else lowest)
        deviation = self.batch_noise.deviation * math.sqrt(self.shufflers_used * int(np.abs(line).sum()))
        return np.asarray((moved.sum(axis=1) @ line) // max(1, int(deviation / 50)), dtype=np.int64).reshape(-1, 1)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"batch_noise": self.batch_noise.quieter(part)}

    # --- the file ----------------------------------------------------------------------------

    def _decides(self) -> dict[str, Any]:
        return {
            **RunningPlan._decides(self),
            # Plans of version 0.1.0 left the last slot open, and do not say so.
            **({"counts_everybody": True} if self.counts_everybody else {}),
            # And added up what the shares of a user's batches show.
            **({"mixed_together": True} if self.mixed_together else {}),
        }

    def _further_sizes(self) -> dict[str, Any]:
        sizes: dict[str, Any] = {"smallest_batch": self.smallest_batch, "largest_batch": self.largest_batch}
        if not self.batch_noise.is_exact:
            # A device that cannot compute quantiles of the noise reads here what its shares are taken modulo.
            sizes["modulus_bits"] = moduli_of(
                self._sizes_of_batches, self.honest_fraction, self.batch_noise, self.domain
            )
        return sizes

    @classmethod
    def _noise_from(cls, noise: Any, document: Mapping[str, Any]) -> dict[str, Any]:
        kind = FAMILIES.get(str(noise.get("family"))) if isinstance(noise, Mapping) else None
        if kind is None:
            known = f"must have a family, one of {', '.join(FAMILIES)}"
            raise DataError("plan.batch_noise", noise, known, "make the plan again")
        return {
            "batch_noise": kind(**{name: value for name, value in noise.items() if name != "family"}),
            "counts_everybody": document.get("counts_everybody", False),
            "mixed_together": document.get("mixed_together", False),
        }
