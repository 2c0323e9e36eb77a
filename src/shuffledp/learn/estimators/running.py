"""A planned solver on prepared rows in memory, watched on its way."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.estimators.declared import Floats
from shuffledp.learn.optimize import LinearLoss, OptimizerState, Solver
from shuffledp.learn.optimize.running import CohortSums, OptimizerRun, run_solver
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation

# Models on the way that are kept.
_KEPT = 60


def watched_run(
    solver: Solver,
    loss: LinearLoss,
    rows: Floats,
    targets: Floats,
    bits: RandomBits,
    *,
    exact: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[OptimizerRun, NDArray[np.int64], Floats]:
    """The run, and models on the way with their rounds."""
    wanted = set(np.geomspace(1, solver.rounds, _KEPT).astype(np.int64).tolist()) | {solver.rounds}
    kept: list[tuple[int, Floats]] = []

    def watch(state: OptimizerState) -> None:
        if state.round in wanted:
            kept.append((state.round, solver.estimate(state)))
        if progress is not None:
            progress(state.round, solver.rounds)

    order = uniform_permutation(len(rows), bits=bits)
    checked = loss.check_rows(rows.shape[1], rows, targets)
    run = run_solver(solver, CohortSums(loss, checked, bits=bits, order=order, exact=exact), watch=watch)
    return run, np.array([number for number, _ in kept]), np.array([theta for _, theta in kept])


def bits_of(random_state: Any) -> RandomBits:
    """Secure bits for None, else repeatable ones."""
    if random_state is None:
        return RandomBits.secure()
    if hasattr(random_state, "randint"):
        return RandomBits.seeded(int(random_state.randint(1 << 31)))
    return RandomBits.seeded(random_state)
