"""A solver on users' data, in three fidelities that share one loop: message by message, by law, and without noise."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.losses import Loss, Rows
from shuffledp.learn.optimize.pan_private import PanPrivateSum
from shuffledp.learn.optimize.solver import GradientCohort, OptimizerState, Solver
from shuffledp.learn.optimize.stages import GradientSum
from shuffledp.protocols.vector_sum.base import SampledSums, VectorSumPlan
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate

Floats = NDArray[np.float64]
Fidelity = Literal["fast", "messages", "exact"]
"""Estimates drawn from their law; every message made, shuffled and read; no noise and no rounding at all: the twin."""

# Numbers at a time: they stay in the cache.
_AT_A_TIME = 1 << 18
# Sums whose noise is drawn at a time.
_AHEAD = 64


@dataclass(frozen=True, slots=True, eq=False)
class OptimizerRun:
    """The model, the state to go on from, and how many of all gradients had to be clipped."""

    theta: Floats
    state: OptimizerState
    clipped: int
    gradients: int
    simulated: bool


def optimize(
    solver: Solver,
    loss: Loss,
    *data: ArrayLike,
    bits: RandomBits,
    fidelity: Fidelity = "fast",
    order: NDArray[np.int64] | None = None,
    state: OptimizerState | None = None,
    rounds: int | None = None,
    watch: Callable[[OptimizerState], None] | None = None,
) -> OptimizerRun:
    """Ask and tell until all rounds are done, or so many of them.

    `data` are arrays with an entry a user; user i of the solver is row i, or row `order[i]`. `fidelity="exact"` is the
    solver's twin: the same points, steps and clipping, and no noise. `watch` is shown the state after every round.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> features = np.tile([[0.6, 0.8], [-0.6, -0.8]], (5000, 1))
    >>> targets = np.tile([1.0, -1.0], 5000)
    >>> loss = LogisticLoss()
    >>> problem = Problem.of(loss, L2Ball(dimension=2, radius=2), users=10_000, privacy=Privacy(1, 1e-6))
    >>> run = optimize(plan(problem, solver="agd"), loss, features, targets, bits=RandomBits.seeded(1))
    >>> loss.objective(run.theta, features, targets) < 0.3
    True
    """
    if fidelity not in ("fast", "messages", "exact"):
        raise ParameterError("fidelity", fidelity, "must be fast, messages or exact", "fast has the same law")
    rows = loss.check_rows(solver.problem.dimension, *data)
    people = len(rows[0]) if order is None else len(order)
    if people < solver.users:
        raise ParameterError("data", people, f"must have {solver.users} users", "plan for the users there are")
    now = solver.start() if state is None else state
    sums = CohortSums(loss, rows, order, fidelity, bits)
    last = solver.rounds if rounds is None else min(solver.rounds, now.round + rounds)
    while now.round < last and (cohort := solver.ask(now)) is not None:
        try:
            now = solver.tell(now, sums.of(cohort))
        except BrokenBatchError:
            now = solver.tell(now, None)
        if watch is not None:
            watch(now)
    theta = solver.result(now)
    return OptimizerRun(theta, now, sums.clipped, sums.gradients, not bits.is_secure)


class CohortSums:
    """Cohorts' sums of clipped gradients over checked rows, in the fidelity that was asked for."""

    def __init__(
        self, loss: Loss, rows: Rows, order: NDArray[np.int64] | None, fidelity: Fidelity, bits: RandomBits
    ) -> None:
        self._loss, self._rows, self._order, self._bits = loss, rows, order, bits
        self._fidelity = fidelity
        self._sampled: tuple[GradientSum, SampledSums] | None = None
        self.clipped, self.gradients = 0, 0

    def of(self, cohort: GradientCohort) -> VectorEstimate | Floats:
        """The estimate of a cohort's sum, or the sum itself where there is no noise."""
        plan = cohort.plan
        if plan is None or self._fidelity == "exact":
            total = np.zeros(cohort.point.size)
            for sent in self._blocks(cohort):
                total += sent.sum(axis=0)
            return total
        if isinstance(plan, PanPrivateSum):
            held = plan.begin(bits=self._bits)
            for sent in self._blocks(cohort):
                held = plan.read(held, sent, bits=self._bits)
            return plan.close(held, bits=self._bits)
        if not isinstance(plan, VectorSumPlan):
            raise ParameterError("plan", type(plan).__name__, "must be a vector sum", "plan the solver again")
        if self._fidelity == "messages":
            return simulate(plan, np.concatenate(list(self._blocks(cohort))), bits=self._bits)
        if self._sampled is None or self._sampled[0] is not plan:
            self._sampled = (plan, SampledSums(plan, bits=self._bits, ahead=_AHEAD))
        sampled = self._sampled[1]
        for sent in self._blocks(cohort):
            sampled.add(sent, longest=cohort.clip)
        return sampled.estimate()

    def _blocks(self, cohort: GradientCohort) -> Iterator[Floats]:
        size = max(1, _AT_A_TIME // cohort.point.size)
        end = cohort.first + cohort.users
        for start in range(cohort.first, end, size):
            part = slice(start, min(start + size, end))
            chosen = part if self._order is None else self._order[part]
            block = tuple(array[chosen] for array in self._rows)
            sent, clipped = self._loss.sent(cohort.point, cohort.clip, cohort.smoothing, *block)
            self.clipped += clipped
            self.gradients += len(sent)
            yield sent
