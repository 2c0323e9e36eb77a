"""Solvers from documents: the stages that were planned, with their steps and noise, and nothing planned anew."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from shuffledp.errors import DataError
from shuffledp.learn.optimize.agd import AgdStage
from shuffledp.learn.optimize.conditioned import ConditionedStage
from shuffledp.learn.optimize.full_agd import FullAgdStage
from shuffledp.learn.optimize.gd import GdStage
from shuffledp.learn.optimize.intercepts import BallWithIntercepts
from shuffledp.learn.optimize.named_losses import loss_from
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.sets import Box, ConvexSet, L2Ball, Simplex
from shuffledp.learn.optimize.sgd import SgdStage
from shuffledp.learn.optimize.solver import Solver
from shuffledp.learn.optimize.stages import Stage
from shuffledp.privacy import Privacy
from shuffledp.protocols.plan import Plan

_SETS: dict[str, type[ConvexSet]] = {kind.kind: kind for kind in (L2Ball, Box, Simplex, BallWithIntercepts)}
_STAGES: dict[str, type[Stage]] = {
    kind.kind: kind for kind in (SgdStage, AgdStage, GdStage, FullAgdStage, ConditionedStage)
}


def solver_document(solver: Solver) -> dict[str, Any]:
    """What decides a solver, as JSON, but for the plans of its stages.

    Raises:
        ParameterError: its loss is none that devices know, or not the one that it was planned for.

    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, plan
    >>> ball = L2Ball(dimension=2, radius=2)
    >>> problem = Problem.of(LogisticLoss(), ball, users=1000, privacy=Privacy(1, 1e-6), visits=1)
    >>> solver = plan(problem, solver="agd")
    >>> again = solver_from(solver_document(solver), [seating.plan for seating in solver.seatings])
    >>> again.fingerprint == solver.fingerprint, again.problem.loss == solver.problem.loss
    (True, True)
    """
    _check_loss(solver.problem)
    stages = [{**stage.document(), **dict.fromkeys(stage.plans)} for stage in solver.stages]
    return {
        "solver": solver.name,
        "problem": solver.problem.document(),
        "loss": solver.problem.loss,
        "stages": stages,
    }


def solver_from(document: Mapping[str, Any], plans: Sequence[Plan]) -> Solver:
    """The solver that a document describes, whose stages have these plans.

    Args:
        document: what `solver_document` wrote.
        plans: those of its stages, in the order of its seatings.

    Raises:
        ShuffleDPError: its noise does not reach what it claims.
        KeyError, TypeError, ValueError: a field is missing, or no such thing.
    """
    left = iter(plans)
    stages = tuple(_stage(each, left) for each in document["stages"])
    if next(left, None) is not None:
        raise ValueError("more plans than stages have")
    problem = problem_from(document["problem"], document["loss"])
    _check_loss(problem)
    return Solver(name=document["solver"], model="shuffle", problem=problem, stages=stages)


def problem_from(document: Mapping[str, Any], loss: Any) -> Problem:
    """The problem that a document of it describes, of this loss's document."""
    given = {name: value for name, value in document.items() if name not in ("domain", "epsilon", "delta")}
    privacy = Privacy(document["epsilon"], document["delta"])
    # The longest row is the loss's own, and stands in no document of a problem.
    longest = loss_from(loss).row_bound
    return Problem(domain=_set(document["domain"]), privacy=privacy, loss=loss, row_bound=longest, **given)


def _check_loss(problem: Problem) -> None:
    """Devices take gradients of the loss that the solver was planned for, or nothing that was proved holds."""
    loss = loss_from(problem.loss)
    planned = (problem.smoothness, problem.strong_convexity, problem.ridge, problem.has_prox, problem.linear)
    constants = (loss.smoothness, loss.strong_convexity, loss.ridge, loss.has_prox, loss.is_linear)
    fits = constants == planned and loss.outputs == problem.outputs and loss.document() == problem.loss
    if not fits or problem.lipschitz > loss.lipschitz(problem.domain):
        raise DataError("loss", loss.name, "must be the one that the solver was planned for", "plan it again")


def _set(document: Mapping[str, Any]) -> ConvexSet:
    """The set that a document of it describes.

    >>> ball = BallWithIntercepts(dimension=3, radius=1.0, intercept_radius=2.0, every=3)
    >>> _set(ball.document()) == ball
    True
    """
    kind = _SETS[document["kind"]]
    given = {name: value for name, value in document.items() if name != "kind"}
    # Documents have whole numbers other than the dimension as 3.0, and fingerprints rest on that.
    whole = [each.name for each in fields(kind) if each.type is int and float(given[each.name]).is_integer()]
    return kind(**{**given, **{name: int(given[name]) for name in whole}})


def _stage(document: Mapping[str, Any], plans: Iterator[Plan]) -> Stage:
    kind = _STAGES[document["kind"]]
    own = dict(zip(kind.plans, plans, strict=False))
    return kind(**{**{field.name: document[field.name] for field in fields(kind)}, **own})
