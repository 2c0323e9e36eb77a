"""Which solver: the best of those that rehearsed the problem, the one with the least bound, or the one named."""

import math
from dataclasses import dataclass, replace
from typing import cast

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.optimize.agd import Agd
from shuffledp.learn.optimize.conditioned import Conditioned
from shuffledp.learn.optimize.full_agd import FullAgd
from shuffledp.learn.optimize.gd import Gd
from shuffledp.learn.optimize.guarantee import Model
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.named_losses import LOSSES, loss_from
from shuffledp.learn.optimize.pan_private import PanPrivateAgd, PanPrivateSmoothedAgd
from shuffledp.learn.optimize.phased import Phased
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.ranking import MOST_NUMBERS, Rehearsed, chosen_stages, ranked
from shuffledp.learn.optimize.sgd import Sgd
from shuffledp.learn.optimize.smoothing import SmoothedAgd
from shuffledp.learn.optimize.solver import Solver, SolverChoice
from shuffledp.learn.optimize.stages import Method, Stage
from shuffledp.learn.optimize.worlds import SPECS, world_of

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
        Conditioned(),
        PanPrivateAgd(),
        PanPrivateSmoothedAgd(),
        Phased(PanPrivateAgd()),
        Phased(PanPrivateSmoothedAgd()),
    )
}
"""Every method of convex optimization that `plan` compares, by its name."""


@dataclass(frozen=True, slots=True)
class PredictedBound:
    """What a solver promises for a problem, or why it cannot take it; neither where it can and nothing is proved.

    Attributes:
        solver: its name.
        model: who is trusted: shuffle, pan-private or nobody.
        reference: where the theorem is.
        bound: on the expected excess loss; None where it cannot be said.
        refusal: why the solver does not take the problem; None where it does.
    """

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
        The least bound first, then those of which nothing is proved, and those that cannot take the problem last, with
        the reason.

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
    return tuple(sorted(rows, key=lambda row: (row.refusal is not None, math.inf if row.bound is None else row.bound)))


AUTO, LEAST_BOUND = "auto", "least-bound"
"""Names of the two rankings: by rehearsals, and by proved bounds."""


def rehearsable(problem: Problem) -> Loss | str:
    """The loss that rehearsals minimize, or why there are none."""
    if problem.privacy is None:
        return "nothing is private, so that there is no noise to rehearse"
    if problem.dimension > MOST_NUMBERS:
        return f"models of more than {MOST_NUMBERS} numbers are not rehearsed"
    if problem.loss is None or str(problem.loss.get("loss")) not in LOSSES:
        return f"the loss was not named, or is none of {', '.join(LOSSES)}"
    loss = loss_from(problem.loss)
    if world_of(SPECS[0], loss, problem.domain, seed=0) is None:
        return f"the {loss.name} loss is not rehearsed"
    return loss


def rehearsals(problem: Problem) -> tuple[Rehearsed, ...]:
    """How every solver fared on synthetic people, the best first; empty where there are no rehearsals.

    Args:
        problem: made with a loss that can be rehearsed, such as by `Problem.of`.

    Returns:
        Every solver with its score: the mean of the model's loss over a constant's.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> problem = Problem.of(LogisticLoss(), L2Ball(dimension=5, radius=3), users=10_000, privacy=Privacy(1, 1e-6))
    >>> rehearsals(problem)[0].candidate.method in ("conditioned", "full-agd"), rehearsals(problem)[0].score < 0.9
    (True, True)
    """
    loss = rehearsable(problem)
    return () if isinstance(loss, str) else ranked(problem, loss, _shuffled())


def _shuffled() -> tuple[Method, ...]:
    return tuple(method for method in METHODS.values() if method.model == "shuffle")


def plan(problem: Problem, *, solver: str = AUTO) -> Solver:
    """The solver for a problem.

    Args:
        problem: users, constants of the loss, domain, privacy and limits; no data.
        solver: a name of `METHODS`; "auto" takes the one that is best in rehearsals on synthetic people, with the
            rounds and steps that were best, and "least-bound" the one whose proved bound is least.

    Returns:
        Stages of rounds with fixed cohorts, steps and noise, a proved bound and a guarantee; `chosen` says how it was
        chosen. Where nothing can be rehearsed, "auto" takes the least bound.

    Raises:
        ParameterError: no solver has this name.
        InfeasibleError: the solver cannot take this problem; the message says why, and which can.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> ball = L2Ball(dimension=5, radius=3)
    >>> problem = Problem.of(LogisticLoss(), ball, users=10_000, privacy=Privacy(1, 1e-6), visits=1)
    >>> [(each.name, each.chosen.by) for each in (plan(problem), plan(problem, solver="sgd"))]
    [('agd', 'simulation'), ('sgd', 'name')]
    """
    choice = SolverChoice(by="name")
    if solver == AUTO:
        loss = rehearsable(problem)
        if isinstance(loss, Loss):
            rehearsed, stages = chosen_stages(problem, loss, _shuffled())
            choice = SolverChoice(by="simulation", losses=rehearsed.losses, scale=rehearsed.candidate.scale)
            return _solver(problem, METHODS[rehearsed.candidate.method], stages, choice)
        choice = SolverChoice(by="bound", because=loss)
    if solver in (AUTO, LEAST_BOUND):
        choice = replace(choice, by="bound")
        solver = predicted_bounds(problem)[0].solver
    method = METHODS.get(solver)
    if method is None:
        known = f"{AUTO}, {LEAST_BOUND} or one of {', '.join(METHODS)}"
        raise ParameterError("solver", solver, f"must be {known}", "auto chooses one")
    refusal = method.refusal(problem)
    if refusal is not None:
        others = [row.solver for row in predicted_bounds(problem, method.model) if row.refusal is None]
        way_out = f"take {' or '.join(others)}" if others else "take another loss"
        raise InfeasibleError("solver", solver, f"cannot be used: it {refusal}", way_out)
    return _solver(problem, method, method.stages(problem), choice)


def _solver(problem: Problem, method: Method, stages: tuple[Stage, ...], choice: SolverChoice) -> Solver:
    model = "none" if problem.privacy is None else method.model
    return Solver(name=method.name, model=cast(Model, model), problem=problem, stages=stages, chosen=choice)
