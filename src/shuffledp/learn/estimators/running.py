"""A planned solver on prepared rows in memory, watched on its way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.estimators.clipping import ClipCounts, ClippedShare
from shuffledp.learn.estimators.declared import Changed, Floats
from shuffledp.learn.estimators.preparation import RowsOnDemand
from shuffledp.learn.optimize import Loss, OptimizerState, Solver
from shuffledp.learn.optimize.running import CohortSums, GivesSums, run_solver
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation

# Models on the way that are kept.
_KEPT = 60
# Numbers at a time: they stay in the cache.
_AT_A_TIME = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """What is learned from: people's checked data, and what is made of them.

    Attributes:
        people: a row a person, as it came.
        targets: as the loss takes them.
        clipped: whose targets, weights and rows had to be clipped, by these names.
        weights: parts of the largest weight; None where all are 1.
        rows: prepared, as a solver takes them.
        start: the model to go on from, as a solver takes it; None at the centre of all.
    """

    people: Any
    targets: Floats
    clipped: Mapping[str, Changed]
    weights: Floats | None = None
    rows: Any = None
    start: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FittingRun:
    """The model, models on the way with their rounds, and what had to be clipped."""

    theta: Floats
    path: Floats
    path_rounds: NDArray[np.int64]
    shares: tuple[ClippedShare, ...]
    clipped: int
    simulated: bool


def watched_run(
    solver: Solver,
    loss: Loss,
    data: Fitting,
    bits: RandomBits,
    *,
    counts: ClipCounts | None = None,
    start: Floats | None = None,
    exact: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> FittingRun:
    """Run the solver on people in random order; the first of them are asked what was clipped, and nothing else.

    Args:
        solver: what asks for gradients.
        loss: whose gradients they are.
        data: prepared rows, targets and weights.
        bits: where order and noise are drawn from.
        counts: who is asked what was clipped; None for nobody.
        start: where the solver begins; None for the centre of its domain.
        exact: whether neither noise nor rounding is added.
        progress: told how many rounds are done and of how many.
    """
    order = uniform_permutation(len(data.targets), bits=bits)
    others = 0 if counts is None else counts.users
    shares = () if counts is None else counts.counted(data.clipped, order[:others], bits=bits)
    rows: tuple[Any, ...] = (data.rows, data.targets, *(() if data.weights is None else (data.weights,)))
    # Rows that are made on demand are finite, and targets were made by the estimator.
    checked = rows if isinstance(data.rows, RowsOnDemand) else loss.check_rows(solver.problem.dimension, *rows)
    sums = CohortSums(loss, checked, bits=bits, order=order[others:], exact=exact)
    return watched_sums(solver, sums, shares, start=start, progress=progress)


def watched_sums(
    solver: Solver,
    sums: GivesSums,
    shares: tuple[ClippedShare, ...],
    *,
    start: Floats | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> FittingRun:
    """Run the solver with whoever answers its questions.

    Args:
        solver: what asks for gradients.
        sums: who answers.
        shares: what is known of what was clipped.
        start: where the solver begins; None for the centre of its domain.
        progress: told how many rounds are done and of how many.
    """
    wanted = set(np.geomspace(1, solver.rounds, _KEPT).astype(np.int64).tolist()) | {solver.rounds}
    kept: list[tuple[int, Floats]] = []

    def watch(state: OptimizerState) -> None:
        if state.round in wanted:
            kept.append((state.round, solver.estimate(state)))
        if progress is not None:
            progress(state.round, solver.rounds)

    state = None if start is None else OptimizerState(solver.fingerprint, 0, start, start)
    run = run_solver(solver, sums, state=state, watch=watch)
    path, rounds = np.array([theta for _, theta in kept]), np.array([number for number, _ in kept])
    return FittingRun(run.theta, path, rounds, shares, run.clipped, run.simulated)


def mean_losses(loss: Loss, path: Floats, data: Fitting) -> Floats:
    """The mean loss of every model on the way, on some rows at a time."""
    size = max(1, _AT_A_TIME // data.rows.shape[1])
    totals = np.zeros(len(path))
    for start in range(0, len(data.rows), size):
        rows, targets = data.rows[start : start + size], data.targets[start : start + size]
        totals += [float(loss.values(theta, rows, targets).sum()) for theta in path]
    return totals / len(data.rows)


def bits_of(random_state: Any) -> RandomBits:
    """Secure bits for None, else repeatable ones."""
    if random_state is None:
        return RandomBits.secure()
    if hasattr(random_state, "randint"):
        return RandomBits.seeded(int(random_state.randint(1 << 31)))
    return RandomBits.seeded(random_state)
