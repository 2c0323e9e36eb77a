"""Pan-private AC-SA: one trusted analyzer reads users one by one, and its memory may be seized once, at any time.

A cohort's running sum begins with noise and gets as much again at its end. Whoever seizes the memory after a user was
read has that user's gradient behind the first noise, and all later output is made from what was seized; whoever
seizes it before has the first noise, and the second protects the user. So one noise's pair is all that is seen of a
user.

Reference: [001] Algorithm 6, Theorem C.3, with integer noise and exact accounting.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError, TooFewReportsError
from shuffledp.learn.optimize.agd import Agd
from shuffledp.learn.optimize.losses import Loss, gradient_of
from shuffledp.learn.optimize.pan_private_sum import PanPrivateSum
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.smoothing import SmoothedAgd
from shuffledp.learn.optimize.solver import GradientCohort, OptimizerState, Solver
from shuffledp.learn.optimize.stages import GradientSum
from shuffledp.randomness import RandomBits


class _PanPrivate(Agd):
    """What is different with pan-private sums: the plan, and two noises in place of one."""

    model: ClassVar[str] = "pan-private"
    reference: ClassVar[str] = "[001] Theorem C.3"

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        if problem.privacy is None:
            return None
        size, length = problem.dimension, problem.lipschitz
        return PanPrivateSum.plan(users=users, privacy=problem.privacy, dimension=size, radius=length)

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return (math.sqrt(2) * problem.unit_noise) ** 2


class PanPrivateAgd(_PanPrivate):
    """P_AGD with pan-private sums."""

    name: ClassVar[str] = "pan-private-agd"


class PanPrivateSmoothedAgd(_PanPrivate, SmoothedAgd):
    """P_AGD on envelopes with pan-private sums."""

    name: ClassVar[str] = "pan-private-smoothed-agd"


@dataclass(frozen=True, slots=True)
class PanPrivateMemory:
    """All that an intruder finds: the solver's state, the running sum in steps, and how many users it has read."""

    state: OptimizerState
    held: tuple[int, ...]
    read: int


class PanPrivateLearner:
    """Reads users one by one, or a few at a time, and forgets them; `seize` is what an intruder sees.

    Random bits are no part of the memory: they are passed in, and whoever passes them must not keep them, since an
    intruder who also had them would know the second noise before it is drawn.

    Args:
        solver: a plan of a pan-private method.
        loss: what is minimized.
        bits: where the first noise comes from.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> loss, ball = LogisticLoss(), L2Ball(dimension=2, radius=2)
    >>> problem = Problem.of(loss, ball, users=2000, privacy=Privacy(1, 1e-6), rounds=4)
    >>> learner = PanPrivateLearner(plan(problem, solver="pan-private-agd"), loss, bits=RandomBits.secure())
    >>> for _ in range(5):
    ...     learner.read([[0.6, 0.8]], [1.0], bits=RandomBits.secure())
    >>> learner.seize().read
    5
    """

    def __init__(self, solver: Solver, loss: Loss, *, bits: RandomBits) -> None:
        if solver.model != "pan-private":
            raise ParameterError("solver", solver.name, "must be pan-private", "plan pan-private-agd")
        self._solver, self._loss = solver, loss
        self._memory = PanPrivateMemory(solver.start(), (), 0)
        self._open(solver.start(), bits)

    def _open(self, state: OptimizerState, bits: RandomBits) -> None:
        cohort = self._solver.ask(state)
        held = () if cohort is None else tuple(_total_of(cohort).begin(bits=bits).tolist())
        self._memory = PanPrivateMemory(state, held, 0)

    @property
    def missing(self) -> int:
        """Users that the open cohort still waits for; 0 when the model is done."""
        cohort = self._solver.ask(self._memory.state)
        return 0 if cohort is None else cohort.users - self._memory.read

    def read(self, *rows: ArrayLike, bits: RandomBits) -> None:
        """Some users' data, at most as many as the open cohort waits for."""
        cohort, memory = self._solver.ask(self._memory.state), self._memory
        checked = self._loss.check_rows(self._solver.problem.dimension, *rows)
        if cohort is None or len(checked[0]) > self.missing:
            raise ParameterError("rows", len(checked[0]), f"must be at most {self.missing}", "read fewer at a time")
        total = _total_of(cohort)
        sent, _ = gradient_of(self._loss, cohort.step.parameters, *checked)
        held = total.read(np.array(memory.held, dtype=np.int64), sent, bits=bits)
        if len(checked[0]) < self.missing:
            self._memory = PanPrivateMemory(memory.state, tuple(held.tolist()), memory.read + len(checked[0]))
        else:
            closed = {1: total.close(held, bits=bits)}
            self._open(self._solver.tell(memory.state, cohort.users, closed), bits)

    def seize(self) -> PanPrivateMemory:
        """All of the memory."""
        return self._memory

    def result(self) -> NDArray[np.float64]:
        """The model, once all cohorts were read."""
        if self.missing:
            cohort = self._solver.ask(self._memory.state)
            raise TooFewReportsError(self._solver.users, (0 if cohort is None else cohort.first) + self._memory.read)
        return self._solver.estimate(self._memory.state)


def _total_of(cohort: GradientCohort) -> PanPrivateSum:
    """The sum of a pan-private solver's cohort."""
    return cast(PanPrivateSum, cohort.plan)
