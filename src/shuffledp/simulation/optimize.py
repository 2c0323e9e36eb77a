"""A solver on users' data, in three fidelities that share one loop: message by message, by law, and without noise."""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize.losses import Floats, Loss, Rows
from shuffledp.learn.optimize.running import AsksForGradients, CohortSums, OptimizerRun, S, run_solver
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate

Fidelity = Literal["fast", "messages", "exact"]
"""Estimates drawn from their law; every message made, shuffled and read; no noise and no rounding at all: the twin."""


def optimize(
    solver: AsksForGradients[S],
    loss: Loss,
    *data: ArrayLike,
    bits: RandomBits,
    fidelity: Fidelity = "fast",
    order: NDArray[np.intp] | None = None,
    state: S | None = None,
    rounds: int | None = None,
    watch: Callable[[S], None] | None = None,
) -> OptimizerRun:
    """Run a solver on data in memory: ask and tell until all rounds are done, or so many of them.

    Args:
        solver: what `shuffledp.learn.optimize.plan` made for the loss's problem, or `GradientRounds.plan` for any.
        loss: the loss whose gradients users send.
        *data: arrays with an entry or a row a user, as the loss takes them.
        bits: where all randomness comes from; seeded bits label the run a simulation.
        fidelity: "fast" draws estimates from their law, "messages" makes, permutes and reads every message, "exact" is
            the solver's twin: the same points, steps and clipping, and no noise.
        order: user i of the solver is row `order[i]`; row i if left out.
        state: where to go on; the beginning if left out.
        rounds: how many rounds to run at most.
        watch: shown the state after every round.

    Returns:
        The model, the state to go on from, and how many gradients were clipped.

    Raises:
        ParameterError: an unknown fidelity, an order that names a row twice, or too few users.
        DataError: data that the loss cannot take; the message names the first bad row.

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
    rows = loss.check_rows(solver.dimension, *data)
    sums = cohort_sums(loss, rows, order, fidelity, bits)
    return run_solver(solver, sums, state=state, rounds=rounds, watch=watch)


def cohort_sums(
    loss: Loss, rows: Rows, order: NDArray[np.intp] | None, fidelity: Fidelity, bits: RandomBits
) -> CohortSums:
    """Cohorts' sums of clipped gradients over checked rows, in the fidelity that was asked for."""
    analyzed = _by_messages if fidelity == "messages" else None
    return CohortSums(loss, rows, bits=bits, order=order, exact=fidelity == "exact", analyzed=analyzed)


def _by_messages(plan: Plan, vectors: Floats, bits: RandomBits) -> VectorEstimate:
    estimate: VectorEstimate = simulate(plan, vectors, bits=bits)
    return estimate
