"""A stage: rounds of one method with one kind of cohort, one plan and fixed steps; a solver is one or more of them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.optimize.moments import Conditioner
from shuffledp.learn.optimize.pan_private_sum import PanPrivateSum
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.sets import ConvexSet, Floats
from shuffledp.protocols.vector_sum.base import VectorSumPlan

Whole = NDArray[np.int64]

# Rounds of the same users cost them messages: the fewest that come this near to the least bound.
FEWER_ROUNDS = 1.02


Nearest = Callable[[Floats], Floats]

GradientSum = VectorSumPlan | PanPrivateSum
"""What adds up a cohort's gradients: both know users, radius, step, error, batches, pair and every term of delta, and
hand out estimates by their law (`sampled`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(ABC):
    """So many rounds with cohorts of so many users, and what is proved about the excess loss after them, if anything.

    With `smoothing`, users send the gradients of their losses' Moreau envelopes with that smoothness.
    """

    kind: ClassVar[str]
    repeats: ClassVar[bool] = False
    """Whether the same users are asked in every round."""
    plans: ClassVar[tuple[str, ...]] = ("plan",)
    """The fields that are plans, in the order of `sums`."""
    moments_noise = 0.0
    """The standard deviation of every number of the moments' sum, where they are asked for."""

    rounds: int
    users: int
    plan: GradientSum | None
    smoothing: float | None = None
    bound: float | None

    @property
    def people(self) -> int:
        """Users of all rounds."""
        return self.users if self.repeats else self.users * self.rounds

    @property
    def visits(self) -> int:
        """Rounds that one user is in."""
        return self.rounds if self.repeats else 1

    @property
    def sums(self) -> tuple[tuple[GradientSum, int], ...]:
        """The sums that one user joins, with how often; none where nothing is private."""
        return () if self.plan is None else ((self.plan, self.visits),)

    def asks_moments(self, time: int) -> bool:
        """Whether users are asked for their rows' moments in this round, and not for gradients."""
        return False

    def plan_at(self, time: int) -> GradientSum | None:
        """What adds up a cohort's vectors in this round."""
        return self.plan

    def conditioner(self, moments: Floats | None, domain: ConvexSet) -> Conditioner | None:
        """The metric that steps are taken in, from moments as they were released; None for the plain one."""
        return None

    @abstractmethod
    def query(self, time: int, point: Floats, average: Floats) -> Floats:
        """Where gradients are asked for in round `time`, from 1 on."""

    @abstractmethod
    def step(
        self, time: int, point: Floats, average: Floats, gradient: Floats, nearest: Nearest
    ) -> tuple[Floats, Floats]:
        """The next point and the model so far; `nearest` finds the nearest point of the domain."""

    def document(self) -> dict[str, Any]:
        """The stage as JSON."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**numbers, "kind": self.kind, "plan": None if self.plan is None else self.plan.fingerprint}


@dataclass(frozen=True, slots=True)
class StageSketch:
    """A stage before its noise is known exactly."""

    rounds: int
    users: int
    bound: float
    smoothing: float | None = None


NOTHING = StageSketch(0, 0, math.inf)
"""Too few users for a stage."""


class Method(ABC):
    """How stages are planned: from the problem alone, by the least bound."""

    name: ClassVar[str]
    model: ClassVar[str] = "shuffle"
    reference: ClassVar[str]
    asks_once: ClassVar[bool] = True
    fewest_rounds: ClassVar[int] = 1

    @abstractmethod
    def refusal(self, problem: Problem) -> str | None:
        """Why the method cannot take this problem, in words; None if it can."""

    @abstractmethod
    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        """The least predicted bound for so many users, where the optimum is about so far from the start."""

    @abstractmethod
    def stage(self, problem: Problem, sketch: StageSketch, distance: float, *, planned: bool = True) -> Stage:
        """The stage with its plan, steps and bound from the plan's exact noise; a draft of it where it is not planned.

        A draft has no plan, and steps for the noise that is to be expected: for rehearsals, which must be quick.
        """

    @abstractmethod
    def expected_noise(self, problem: Problem, rounds: int) -> float:
        """About the expected squared length of the noise of one of a stage's rounds, before it is planned."""

    def predicted_bound(self, problem: Problem) -> float | None:
        """What is to be expected, quickly; None where nothing is proved."""
        return self.sketch(problem, problem.users, problem.domain.reach, problem.rounds).bound

    def stages(self, problem: Problem, *, planned: bool = True) -> tuple[Stage, ...]:
        """All stages for this problem; drafts of them where they are not planned."""
        distance = problem.domain.reach
        sketch = self.sketch(problem, problem.users, distance, problem.rounds)
        return (self.stage(problem, sketch, distance, planned=planned),)


class SteppedMethod(Method):
    """A method of one stage, whose steps may be for any distance: those for less than the domain's reach are shorter.

    Privacy knows no steps: noise depends on cohorts and rounds only.
    """

    tuned: ClassVar[bool] = False
    """Whether rehearsals choose rounds and steps; else they are those of the least bound."""
    longest_scale: ClassVar[float] = 16.0
    """Rehearsals try steps for an optimum at most so many times as far away as the domain reaches."""

    @abstractmethod
    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        """What adds up a cohort's gradients in each of so many rounds; None where nothing is private."""

    @abstractmethod
    def steps(
        self, problem: Problem, sketch: StageSketch, distance: float, noise: float, plan: GradientSum | None
    ) -> Stage:
        """The stage with steps for noise of this expected squared length and an optimum about so far from the start."""

    @abstractmethod
    def proved_bound(self, problem: Problem, stage: Any, noise: float) -> float | None:
        """What is proved of these very steps, wherever in the domain the optimum lies; None where nothing is."""

    def stage(self, problem: Problem, sketch: StageSketch, distance: float, *, planned: bool = True) -> Stage:
        plan = self.plan_noise(problem, sketch.users, sketch.rounds) if planned else None
        noise = noise_of(problem, plan) if planned else self.expected_noise(problem, sketch.rounds)
        return self.steps(problem, sketch, distance, noise, plan)


def asks_often(problem: Problem) -> str | None:
    """Why a method that asks every user in every round cannot take this problem; None if it can."""
    if problem.visits_allowed < 2:
        return "asks every user in every round, and users may be asked only once"
    if problem.smoothness is None and not problem.has_prox:
        return "needs a smooth loss, or the loss's proximal map"
    return None


def batches(problem: Problem, users: int, rounds: int) -> tuple[Whole, Whole]:
    """Numbers of rounds and cohort sizes that use up about all users: few rounds of many, many rounds of few."""
    most = min(rounds, users // problem.smallest_batch)
    if most < 1:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    times = np.unique(np.geomspace(1, most, 120).astype(np.int64))
    sizes = np.unique(np.concatenate((users // times, np.geomspace(users // most, users, 120).astype(np.int64))))
    return np.minimum(users // sizes, rounds), sizes


def least(rounds: Whole, users: Whole, bounds: Floats) -> StageSketch:
    """The candidate with the least bound."""
    if bounds.size == 0:
        return NOTHING
    best = int(np.argmin(bounds))
    return StageSketch(int(rounds[best]), int(users[best]), float(bounds[best]))


def noise_of(problem: Problem, plan: GradientSum | None) -> float:
    """The expected squared length of a sum's noise, rounding included."""
    return 0.0 if plan is None else problem.dimension * plan.standard_error**2


def stepped(
    stage: Stage,
    time: int,
    point: Floats,
    average: Floats,
    mean: Floats,
    problem: Problem,
    conditioner: Conditioner | None,
) -> tuple[Floats, Floats]:
    """The next point and the model so far, after a cohort's mean gradient; the ridge is added here, without noise.

    In a metric, both the gradient and the nearest point of the domain are the metric's.
    """
    gradient = mean + problem.ridge * problem.domain.penalized(stage.query(time, point, average))
    if conditioner is None:
        return stage.step(time, point, average, gradient, problem.domain.project)
    return stage.step(
        time, point, average, conditioner.descent(gradient), lambda to: conditioner.nearest(to, problem.domain)
    )
