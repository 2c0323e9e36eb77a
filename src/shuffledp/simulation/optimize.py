"""A solver on users' data, in three fidelities that share one loop: message by message, by law, and without noise."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize import running
from shuffledp.learn.optimize.losses import Floats, Loss, Rows
from shuffledp.learn.optimize.running import OptimizerRun as OptimizerRun
from shuffledp.learn.optimize.solver import OptimizerState, Solver
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate

Fidelity = Literal["fast", "messages", "exact"]
"""Estimates drawn from their law; every message made, shuffled and read; no noise and no rounding at all: the twin."""


def optimize(
    solver: Solver,
    loss: Loss,
    *data: ArrayLike,
    bits: RandomBits,
    fidelity: Fidelity = "fast",
    order: NDArray[np.intp] | None = None,
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
    sums = CohortSums(loss, rows, order, fidelity, bits)
    return running.run_solver(solver, sums, state=state, rounds=rounds, watch=watch)


class CohortSums(running.CohortSums):
    """Cohorts' sums of clipped gradients over checked rows, in the fidelity that was asked for."""

    def __init__(
        self, loss: Loss, rows: Rows, order: NDArray[np.intp] | None, fidelity: Fidelity, bits: RandomBits
    ) -> None:
        analyzed = _by_messages if fidelity == "messages" else None
        super().__init__(loss, rows, bits=bits, order=order, exact=fidelity == "exact", analyzed=analyzed)


def _by_messages(plan: VectorSumPlan, vectors: Floats, bits: RandomBits) -> VectorEstimate:
    estimate: VectorEstimate = simulate(plan, vectors, bits=bits)
    return estimate
