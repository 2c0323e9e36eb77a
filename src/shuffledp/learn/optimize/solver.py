"""A planned solver: ask which cohort sends gradients at which point, tell their noisy sum.

It does no input or output and draws no noise. Its state is the round, two vectors and a fingerprint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.guarantee import Model, OptimizationGuarantee
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import RepeatedSum
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.stages import GradientSum, Stage
from shuffledp.protocols.learner import Cohort, DeviceStep, Round, Seating
from shuffledp.protocols.rounds import RoundsLearner
from shuffledp.protocols.states import RESTORE, SCHEMA, State, fingerprint_of, vector, whole


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerState(State):
    """Rounds done, the point, the model so far, and rounds that were lost."""

    round: int = whole("a whole round")
    point: Floats = vector("a finite point")
    average: Floats = vector("a finite average")
    lost: int = whole("whole rounds lost", default=0)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GradientCohort(Cohort):
    """Users first..first+users-1, counted from 0, send gradients of their losses at a point, clipped, by `plan`.

    Without a plan nothing is private: tell the exact sum.
    """

    stage: int
    first: int
    plan: GradientSum | None

    @property
    def point(self) -> Floats:
        """Where gradients are taken."""
        return np.array(self.step.parameters["point"])

    @property
    def clip(self) -> float:
        """Longer gradients are shortened to this length."""
        return float(self.step.parameters["clip"])

    @property
    def smoothing(self) -> float | None:
        """The smoothness of the envelopes whose gradients are sent; None where those of the losses are."""
        found: float | None = self.step.parameters["smoothing"]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverChoice:
    """How a solver was chosen: no part of what it does, and a function of the problem alone.

    Attributes:
        by: "simulation" for the best rehearsal on synthetic people, "bound" for the least bound, else "name".
        because: why solvers were not rehearsed, if they were to be.
        losses: in each synthetic world, the rehearsed model's mean loss over that of the best constant.
        scale: the distance that steps are for, in parts of the domain's reach.
    """

    by: Literal["simulation", "bound", "name"]
    because: str | None = None
    losses: tuple[tuple[str, float], ...] = ()
    scale: float = 1.0

    def __str__(self) -> str:
        if self.by == "simulation":
            return "the best in rehearsals on synthetic people of this shape, which spend nothing"
        words = {"bound": "it has the least proved bound", "name": "asked for"}[self.by]
        return f"{words}: {self.because}" if self.because else words

    def document(self) -> dict[str, Any]:
        """The choice as JSON."""
        return {"by": self.by, "because": self.because, "losses": dict(self.losses), "scale": self.scale}


@dataclass(frozen=True, kw_only=True)
class Solver(RoundsLearner[OptimizerState]):
    """A named method's stages for a problem; refuses noise that does not reach the problem's (epsilon, delta).

    Attributes:
        name: the method's, as in `METHODS`.
        model: from whom people are protected: "shuffle", "pan-private" or "none".
        problem: what is minimized, for whom, and under which limits.
        stages: rounds with their cohorts, steps, plans and bounds.
        chosen: how it was chosen among others.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> loss, ball = LogisticLoss(), L2Ball(dimension=2, radius=2)
    >>> solver = plan(Problem.of(loss, ball, users=10_000, privacy=Privacy(1, 1e-6)), solver="agd")
    >>> state = solver.start()
    >>> cohort = solver.ask(state)
    >>> cohort.step.name, cohort.step.parameters["point"], cohort.plan.radius
    ('gradient', [0.0, 0.0], 1.0)
    >>> state = solver.tell(state, cohort.users, {1: [-100.0, 50.0]})
    >>> state.round, solver.guarantee().holds
    (1, True)
    """

    states: ClassVar[type[State] | None] = OptimizerState

    name: str
    model: Model
    problem: Problem
    stages: tuple[Stage, ...]
    chosen: SolverChoice = field(default=SolverChoice(by="name"), compare=False)

    def __post_init__(self) -> None:
        if not self.stages or self.users > self.problem.users:
            raise ParameterError("stages", self.users, f"must have at most {self.problem.users} users", "plan it again")
        for stage in self.stages:
            private = stage.plan is not None
            if private != (self.problem.privacy is not None):
                raise ParameterError("stages", stage.kind, "must all be private, or none", "plan it again")
            if stage.plan and (stage.plan.users, stage.plan.radius) != (stage.users, self.problem.lipschitz):
                raise ParameterError("stages", stage.kind, "must have plans for their cohorts", "plan it again")
        guarantee = self.guarantee()
        if not guarantee.holds:
            limits = f"must be at most {guarantee.privacy.delta:g}" if guarantee.privacy else ""
            raise ParameterError("delta", f"{guarantee.delta:.3g}", limits, "let the solver plan its noise")

    @property
    def dimension(self) -> int:
        """Numbers of a model."""
        return self.problem.dimension

    @property
    def rounds(self) -> int:
        """Of all stages."""
        return sum(stage.rounds for stage in self.stages)

    @property
    def bound(self) -> float:
        """On the expected excess population loss of the model, proved from the noise's exact variance."""
        return self.stages[-1].bound

    @property
    def users(self) -> int:
        """Users who are asked at all."""
        return sum(stage.people for stage in self.stages)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the solver."""
        return fingerprint_of(self._decides())

    def _decides(self) -> dict[str, Any]:
        stages = [stage.document() for stage in self.stages]
        return {"schema": SCHEMA, "solver": self.name, "problem": self.problem.document(), "stages": stages}

    def document(self) -> dict[str, Any]:
        """The solver as JSON."""
        return {
            **self._decides(),
            "bound": self.bound,
            "chosen": self.chosen.document(),
            "fingerprint": self.fingerprint,
            "guarantee": self.guarantee().document(),
        }

    def guarantee(self, honest_fraction: float | None = None) -> OptimizationGuarantee:
        """What holds for every user.

        Args:
            honest_fraction: the users of every cohort who follow the protocol; as planned if left out.

        Returns:
            The pair, every term of delta and what is asked of a user; of the stage that proves least.
        """
        privacy = self.problem.privacy
        fraction = self.problem.honest_fraction if honest_fraction is None else honest_fraction
        epsilon = privacy.epsilon if privacy else 0.0
        found = [_stage_terms(stage, epsilon, fraction) for stage in self.stages]
        terms, pair = max(found, key=lambda each: sum(term.value for term in each[0]))
        # Compositions with other questions go by the pair: that of the stage whose noise hides least.
        pair = max((each for _, each in found if each is not None), key=lambda each: each.delta(epsilon), default=pair)
        visits = max(stage.visits for stage in self.stages)
        return OptimizationGuarantee(
            model=self.model,
            privacy=privacy,
            honest_fraction=fraction,
            rounds=self.rounds,
            rounds_per_user=visits,
            users_per_round=min(stage.users for stage in self.stages),
            messages_per_user=max(
                stage.visits * stage.plan.messages_per_user_max if stage.plan else 0 for stage in self.stages
            ),
            pair=pair,
            terms=terms,
            trusted=_TRUSTED[self.model],
            because=_COMPOSED.format(visits) if privacy and visits > 1 else _BECAUSE[self.model],
        )

    @property
    def seatings(self) -> tuple[Seating, ...]:
        return tuple(
            Seating(stage.plan, stage.visits, group, stage.visits)
            for group, stage in enumerate(self.stages)
            if self.model == "shuffle"
        )

    @property
    def most_rounds(self) -> int:
        return self.rounds

    def round_of(self, state: OptimizerState, cohort: Cohort) -> Round | None:
        return Round(state.round, self._place(state.round)[0], 0)

    def start(self) -> OptimizerState:
        """At the centre of the domain, nobody asked."""
        centre = self.problem.domain.centre
        return OptimizerState(self.fingerprint, 0, centre, centre)

    def ask(self, state: OptimizerState) -> GradientCohort | None:
        """The next cohort and what it computes; None when all rounds are done.

        The guarantee counts one answer of a cohort to one question. Asked again, after a crash for instance or with an
        older state, users would have to send the very bytes that they sent before, or not at all.
        """
        self._check_state(state)
        if state.round == self.rounds:
            return None
        number, time, first = self._place(state.round)
        stage = self.stages[number]
        asked = {
            "loss": self.problem.loss,
            "point": stage.query(time, *self._vectors(state, time)).tolist(),
            "clip": self.problem.lipschitz,
            "smoothing": stage.smoothing,
        }
        return GradientCohort(
            users=stage.users,
            batches=() if stage.plan is None else stage.plan.batches,
            step=DeviceStep("gradient", asked),
            stage=number,
            first=first,
            plan=stage.plan,
        )

    def tell(self, state: OptimizerState, users: int, closed: Mapping[int, Any]) -> OptimizerState:
        """The state after a cohort, whose gradients add up to this.

        Args:
            state: where the solver stood when it asked.
            users: how many users came: the whole cohort.
            closed: at level 1 the estimate of the cohort's SUM of gradients; None where its batch was void, which loses
                the round: asking the same users again would cost their privacy again.

        Raises:
            ParameterError: no round is left, or fewer users came.
            DataError: the sum is not one finite number for each of the model's.
        """
        self._check_state(state)
        if state.round == self.rounds:
            raise ParameterError("state", state.round, "must have rounds left", "the model is done")
        number, time, _ = self._place(state.round)
        stage = self.stages[number]
        if users != stage.users or set(closed) != {1}:
            raise ParameterError("users", users, f"must be the {stage.users} of one batch", "tell it once, full")
        point, average = self._vectors(state, time)
        estimate = closed[1]
        if estimate is not None:
            total = self._checked(estimate)
            penalized = self.problem.domain.penalized(stage.query(time, point, average))
            gradient = total / stage.users + self.problem.ridge * penalized
            point, average = stage.step(time, point, average, gradient, self.problem.domain)
        return OptimizerState(state.fingerprint, state.round + 1, point, average, state.lost + (estimate is None))

    def estimate(self, state: OptimizerState, *, simulated: bool = False) -> Floats:
        """The model so far."""
        self._check_state(state)
        return state.average.copy()

    def _place(self, round_number: int) -> tuple[int, int, int]:
        """Which stage, which of its rounds from 1 on, and its first user."""
        done, people = 0, 0
        for number, stage in enumerate(self.stages):
            if round_number < done + stage.rounds:
                time = round_number - done
                return number, time + 1, people + (0 if stage.repeats else time * stage.users)
            done, people = done + stage.rounds, people + stage.people
        raise ParameterError("round", round_number, f"must be below {self.rounds}", "the model is done")

    def _vectors(self, state: OptimizerState, time: int) -> tuple[Floats, Floats]:
        """A stage starts at the model of the last."""
        return (state.average if time == 1 else state.point), state.average

    def _checked(self, estimate: VectorEstimate | ArrayLike) -> Floats:
        try:
            total = np.asarray(estimate.value if isinstance(estimate, VectorEstimate) else estimate, dtype=np.float64)
        except (TypeError, ValueError):
            total = np.full(1, np.nan)
        if total.shape != (self.problem.dimension,) or not np.isfinite(total).all():
            wanted = f"must be {self.problem.dimension} finite numbers"
            raise DataError("estimate", f"shape {total.shape}", wanted, "tell the cohort's sum of gradients")
        return total

    def _check_state(self, state: OptimizerState) -> None:
        state.belongs_to(self.fingerprint, "solver")
        size = self.problem.dimension
        if not 0 <= state.round <= self.rounds or not state.point.size == state.average.size == size:
            raise ParameterError("state", state.round, f"must be of rounds 0..{self.rounds}", RESTORE)


_TRUSTED = {
    "shuffle": "shufflers permute and do not collude with the analyzer; users of a cohort add their noise",
    "pan-private": "the analyzer follows the protocol, and its memory is seized at most once",
    "none": "everybody",
}
_BECAUSE = {
    "shuffle": "Every user is in one cohort, and cohorts are disjoint: one sum's pair is all that is seen of it.",
    "pan-private": "One intrusion sees a running sum behind the first noise, or leaves the second to protect who comes "
    "later.",
    "none": "Nobody is protected.",
}
_COMPOSED = (
    "Every user is in at most {0:,} rounds of one stage, and stages' users are disjoint: its rounds' Gaussian pairs "
    "compose to one with sqrt({0:,}) times the shift, whatever points were chosen on the way."
)


def _stage_terms(stage: Stage, epsilon: float, fraction: float) -> tuple[tuple[DeltaTerm, ...], DominatingPair | None]:
    if stage.plan is None:
        return (), None
    honest, repeated = honest_users(stage.plan.users, fraction), RepeatedSum(stage.plan, stage.visits)
    return repeated.delta_terms(epsilon, honest), repeated.pair(honest)
