"""A planned solver: ask which cohort sends gradients at which point, tell their noisy sum.

It does no input or output and draws no noise. Its state is the round, two vectors, moments where they were asked for,
and a fingerprint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize.guarantee import Model, OptimizationGuarantee
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import RepeatedSum
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.stages import GradientSum, Stage, stepped
from shuffledp.learn.optimize.told_sums import check_holds, check_told, checked_total
from shuffledp.protocols.learner import Cohort, DeviceStep, Round, Seating
from shuffledp.protocols.rounds import RoundsLearner
from shuffledp.protocols.states import RESTORE, SCHEMA, State, fingerprint_of, vector, whole
from shuffledp.protocols.vector_sum.matrices import packed_dimension


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerState(State):
    """Rounds done, the point, the model so far, rounds that were lost, and rows' mean moments as released.

    Attributes:
        round: how many rounds are done.
        point: where the next gradients are taken.
        average: the model so far.
        lost: how many rounds were lost.
        moments: rows' mean products as released; None where none were asked for.
    """

    round: int = whole("a whole round")
    point: Floats = vector("a finite point")
    average: Floats = vector("a finite average")
    lost: int = whole("whole rounds lost", default=0)
    moments: Floats | None = vector("finite moments", optional=True, default=None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GradientCohort(Cohort):
    """Users first..first+users-1, counted from 0, send gradients of their losses at a point, clipped, by `plan`.

    Or, where the step is "moments", products of their features. Without a plan nothing is private: tell the exact sum.

    Attributes:
        stage: which stage of the solver asks.
        first: the place of the first of them among all users, from 0.
        plan: the sum of their gradients; None where nothing is private.
    """

    stage: int
    first: int
    plan: GradientSum | None

    @property
    def asks_moments(self) -> bool:
        """Whether it is asked for moments, and not for gradients."""
        return self.step.name == "moments"

    @property
    def point(self) -> Floats:
        """Where gradients are taken."""
        return np.array(self.step.parameters["point"])

    @property
    def width(self) -> int:
        """Numbers of what a user sends."""
        return int(self.step.parameters["numbers"] if self.asks_moments else len(self.step.parameters["point"]))

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
            plans = [stage.plan_at(time) for time in range(1, stage.rounds + 1)]
            if any((plan is not None) != (self.problem.privacy is not None) for plan in plans):
                raise ParameterError("stages", stage.kind, "must all be private, or none", "plan it again")
            wanted = [self._sent(stage, time) for time in range(1, stage.rounds + 1)]
            for plan, (numbers, longest) in zip(plans, wanted, strict=True):
                if plan and (plan.users, plan.dimension, plan.radius) != (stage.users, numbers, longest):
                    raise ParameterError("stages", stage.kind, "must have plans for their cohorts", "plan it again")
        check_holds(self.guarantee(), "let the solver plan its noise")

    @property
    def dimension(self) -> int:
        """Numbers of a model."""
        return self.problem.dimension

    @property
    def rounds(self) -> int:
        """How many rounds all stages have together."""
        return sum(stage.rounds for stage in self.stages)

    @property
    def bound(self) -> float | None:
        """On the expected excess population loss of the model, from the noise's exact variance; None: none proved."""
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
                sum(times * plan.messages_per_user_max for plan, times in stage.sums) for stage in self.stages
            ),
            pair=pair,
            terms=terms,
            trusted=_TRUSTED[self.model],
            because=self._because(visits),
        )

    def _because(self, visits: int) -> str:
        if self.problem.privacy is None or visits == 1:
            return _BECAUSE[self.model]
        words = _MOMENTS if any(stage.asks_moments(1) for stage in self.stages) else _COMPOSED
        return words.format(visits)

    @property
    def seatings(self) -> tuple[Seating, ...]:
        return tuple(
            Seating(plan, times, group, stage.visits)
            for group, stage in enumerate(self.stages)
            for plan, times in stage.sums
            if self.model == "shuffle"
        )

    @property
    def most_rounds(self) -> int:
        return self.rounds

    def round_of(self, state: OptimizerState, cohort: Cohort) -> Round | None:
        number, time, _ = self._place(state.round)
        before = sum(len(stage.sums) for stage in self.stages[:number])
        plan = self.stages[number].plan_at(time)
        own = [each is plan for each, _ in self.stages[number].sums]
        return Round(state.round, before + own.index(True), 0)

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
        plan = stage.plan_at(time)
        point = None if stage.asks_moments(time) else stage.query(time, *self._vectors(state, time)).tolist()
        return GradientCohort(
            users=stage.users,
            batches=() if plan is None else plan.batches,
            step=self._step(stage, time, point),
            stage=number,
            first=first,
            plan=plan,
        )

    def _step(self, stage: Stage, time: int, point: Any) -> DeviceStep:
        """What users compute in this round of a stage; where they send gradients, at this point."""
        numbers, longest = self._sent(stage, time)
        asked: dict[str, Any] = {"loss": self.problem.loss, "clip": longest}
        if stage.asks_moments(time):
            return DeviceStep("moments", {**asked, "dimension": self.dimension, "numbers": numbers})
        return DeviceStep("gradient", {**asked, "point": point, "smoothing": stage.smoothing})

    def may_ask(self, step: DeviceStep, seating: int) -> bool:
        places = [(stage, at + 1 == len(stage.sums)) for stage in self.stages for at in range(len(stage.sums))]
        stage, is_first = places[seating]  # the last of a stage's sums is the first round's, perhaps of moments
        time, point = 1 if is_first else stage.rounds, step.parameters.get("point")
        inside = stage.asks_moments(time) or self.problem.domain.is_within_reach(point)
        return inside and step == self._step(stage, time, point)

    def _sent(self, stage: Stage, time: int) -> tuple[int, float]:
        """How many numbers a user sends in this round of a stage, and how long they are at most."""
        if not stage.asks_moments(time):
            return self.problem.dimension, self.problem.lipschitz
        assert self.problem.row_bound is not None
        return packed_dimension(self.problem.dimension // self.problem.outputs), self.problem.row_bound**2

    def tell(self, state: OptimizerState, users: int, closed: Mapping[int, Any]) -> OptimizerState:
        """The state after a cohort, whose gradients add up to this.

        Args:
            state: where the solver stood when it asked.
            users: how many users came: the whole cohort.
            closed: at level 1 the estimate of the cohort's SUM of gradients, or of moments; None where its batch was
                void, which loses the round: asking the same users again would cost their privacy again.

        Raises:
            ParameterError: no round is left, or fewer users came.
            DataError: the sum is not one finite number for each that a user sends.
        """
        self._check_state(state)
        # After the last round there is no next cohort: whatever is told is refused.
        number, time, _ = self._place(min(state.round, self.rounds - 1))
        stage = self.stages[number]
        check_told(state.round, self.rounds, users, stage.users, closed)
        point, average = self._vectors(state, time)
        estimate, moments = closed[1], state.moments
        if estimate is not None:
            mean = checked_total(estimate, self._sent(stage, time)[0]) / stage.users
            if stage.asks_moments(time):
                moments = mean
            else:
                conditioner = stage.conditioner(moments, self.problem.domain)
                point, average = stepped(stage, time, point, average, mean, self.problem, conditioner)
        lost = state.lost + (estimate is None)
        return OptimizerState(state.fingerprint, state.round + 1, point, average, lost, moments)

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

    def _check_state(self, state: OptimizerState) -> None:
        state.belongs_to(self.fingerprint, "solver")
        size = self.problem.dimension
        if not 0 <= state.round <= self.rounds or not state.point.size == state.average.size == size:
            raise ParameterError("state", state.round, f"must be of rounds 0..{self.rounds}", RESTORE)
        wanted = packed_dimension(size // self.problem.outputs)
        if state.moments is not None and state.moments.size != wanted:
            raise ParameterError("state", state.moments.size, f"must have {wanted} moments", RESTORE)


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
_MOMENTS = (
    "Every user is in {0:,} rounds, one of them for moments: the squared shifts of all rounds' Gaussian pairs add up, "
    "whatever metric and points were chosen on the way."
)


def _stage_terms(stage: Stage, epsilon: float, fraction: float) -> tuple[tuple[DeltaTerm, ...], DominatingPair | None]:
    if stage.plan is None:
        return (), None
    first, *others = (RepeatedSum(plan, times) for plan, times in stage.sums)
    honest, repeated = honest_users(stage.plan.users, fraction), replace(first, others=tuple(others))
    return repeated.delta_terms(epsilon, honest), repeated.pair(honest)
