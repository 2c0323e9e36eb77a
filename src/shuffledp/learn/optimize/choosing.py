"""Which solver: the one with the least bound among those that can take the problem."""

from dataclasses import dataclass
from typing import cast

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.optimize.agd import Agd
from shuffledp.learn.optimize.full_agd import FullAgd
from shuffledp.learn.optimize.gd import Gd
from shuffledp.learn.optimize.guarantee import Model
from shuffledp.learn.optimize.pan_private import PanPrivateAgd, PanPrivateSmoothedAgd
from shuffledp.learn.optimize.phased import Phased
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.sgd import Sgd
from shuffledp.learn.optimize.smoothing import SmoothedAgd
from shuffledp.learn.optimize.solver import Solver
from shuffledp.learn.optimize.stages import Method

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Sgd(),
        Agd(),
        SmoothedAgd(),
        Phased(Agd()),
        Phased(SmoothedAgd()),
        Gd(),
        Phased(Gd()),
        FullAgd(),
        PanPrivateAgd(),
        PanPrivateSmoothedAgd(),
        Phased(PanPrivateAgd()),
        Phased(PanPrivateSmoothedAgd()),
    )
}


@dataclass(frozen=True, slots=True)
class PredictedBound:
    """What a solver promises for a problem, or why it cannot take it."""

    solver: str
    model: str
    reference: str
    bound: float | None
    refusal: str | None


def predicted_bounds(problem: Problem, model: str = "shuffle") -> tuple[PredictedBound, ...]:
    """What every solver of a trust model promises for a problem.

    Args:
        problem: users, constants of the loss, domain, privacy and limits; no data.
        model: "shuffle", or "pan-private" for one analyzer that reads users one by one.

    Returns:
        The least bound first, and those that cannot take the problem last, with the reason.

    Raises:
        ParameterError: no solver is of this trust model.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import HingeLoss, L2Ball
    >>> ball = L2Ball(dimension=5, radius=1)
    >>> problem = Problem.of(HingeLoss(), ball, users=100_000, privacy=Privacy(1, 1e-6), visits=1)
    >>> [(row.solver, row.bound is not None) for row in predicted_bounds(problem)][:3]
    [('smoothed-agd', True), ('sgd', True), ('agd', False)]
    """
    rows = []
    for method in METHODS.values():
        if method.model == model:
            refusal = method.refusal(problem)
            bound = None if refusal else method.predicted_bound(problem)
            rows.append(PredictedBound(method.name, method.model, method.reference, bound, refusal))
    if not rows:
        known = ", ".join(sorted({method.model for method in METHODS.values()}))
        raise ParameterError("model", model, f"must be one of {known}", "shuffle trusts nobody with data")
    return tuple(sorted(rows, key=lambda row: float("inf") if row.bound is None else row.bound))


def plan(problem: Problem, *, solver: str = "auto") -> Solver:
    """The solver for a problem.

    Args:
        problem: users, constants of the loss, domain, privacy and limits; no data.
        solver: a name of `METHODS`; "auto" takes the one whose predicted bound is least.

    Returns:
        Stages of rounds with fixed cohorts, steps and noise, a proved bound and a guarantee.

    Raises:
        ParameterError: no solver has this name.
        InfeasibleError: the solver cannot take this problem; the message says why, and which can.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> problem = Problem.of(LogisticLoss(), L2Ball(dimension=5, radius=1), users=100_000, privacy=Privacy(1, 1e-6))
    >>> plan(problem).name, plan(problem, solver="sgd").name
    ('agd', 'sgd')
    """
    if solver == "auto":
        solver = predicted_bounds(problem)[0].solver
    method = METHODS.get(solver)
    if method is None:
        raise ParameterError("solver", solver, f"must be auto or one of {', '.join(METHODS)}", "auto chooses one")
    refusal = method.refusal(problem)
    if refusal is not None:
        others = [row.solver for row in predicted_bounds(problem, method.model) if row.bound is not None]
        way_out = f"take {' or '.join(others)}" if others else "take another loss"
        raise InfeasibleError("solver", solver, f"cannot be used: it {refusal}", way_out)
    model = "none" if problem.privacy is None else method.model
    return Solver(name=solver, model=cast(Model, model), problem=problem, stages=method.stages(problem))
