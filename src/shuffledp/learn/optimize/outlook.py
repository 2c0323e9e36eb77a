"""Whether so few people can teach a model anything: said before anything is spent, from rehearsals alone."""

import math
import warnings
from dataclasses import replace
from functools import lru_cache

from shuffledp.errors import InfeasibleError, TooFewPeopleWarning
from shuffledp.learn.optimize.choosing import METHODS, rehearsable
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.ranking import Candidate, Rehearsals, mean_part, ranked
from shuffledp.learn.optimize.solver import Solver

# A model whose loss is above this part of a constant's, in the mean over all worlds, has learned next to nothing.
_NOTHING = 0.95
# Numbers of people are tried in steps of this factor, this often.
_STEP, _MOST_STEPS = math.sqrt(2), 24
# Where less than this is proved of the excess loss, nothing needs to be rehearsed.
_PROVED = 0.1

Losses = tuple[tuple[str, float], ...]


def learns(losses: Losses) -> bool:
    """Whether rehearsed models lose less than the best constant by a twentieth, in the geometric mean over all worlds.

    >>> learns((("clear", 0.5), ("faint", 1.0))), learns((("clear", 0.97), ("faint", 1.01)))
    (True, False)
    """
    return mean_part(losses) < _NOTHING


def too_few(solver: Solver) -> str | None:
    """What to say of a solver whose people are too few to learn from; None where they are enough, or nobody can say.

    Args:
        solver: planned, and not yet run.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> few = Problem.of(LogisticLoss(), L2Ball(dimension=20, radius=5), users=120, privacy=Privacy(1, 1e-6), visits=1)
    >>> print(too_few(plan(few, solver="agd")))
    120 people are too few for 20 numbers at epsilon 1: ... From about ... people on there is something to learn. ...
    """
    problem = solver.problem
    loss = rehearsable(problem)
    if not isinstance(loss, Loss):
        return None
    proved = math.inf if solver.bound is None else solver.bound
    if not solver.chosen.losses and (proved < _PROVED or solver.model != "shuffle"):
        return None
    losses = solver.chosen.losses or _losses(problem, loss, solver.name)
    if learns(losses):
        return None
    enough = _enough(problem, loss, solver.name)
    better = "More people, a larger epsilon or fewer features are needed"
    if enough is not None:
        better = f"From about {enough:,} people on there is something to learn"
    epsilon = math.nan if problem.privacy is None else problem.privacy.epsilon
    return (
        f"{problem.users:,} people are too few for {problem.dimension} numbers at epsilon {epsilon:g}: rehearsed on "
        f"synthetic people, {solver.name}'s model loses {mean_part(losses):.0%} of what the best constant does. "
        f"{better}. Nothing has been spent"
    )


def warn_if_too_few(solver: Solver) -> None:
    """Warn before a solver is run in vain."""
    words = too_few(solver)
    if words is not None:
        warnings.warn(f"{words}.", TooFewPeopleWarning, stacklevel=2)


@lru_cache(maxsize=64)
def _losses(problem: Problem, loss: Loss, solver: str) -> Losses:
    """Of a solver that was named, with its own rounds and steps."""
    return Rehearsals(problem, loss, (METHODS[solver],)).rehearsed(Candidate(solver)).losses


@lru_cache(maxsize=64)
def _enough(problem: Problem, loss: Loss, solver: str) -> int | None:
    """The fewest people, in steps, of whom the same method learns; None where none are found."""
    users = float(problem.users)
    for _ in range(_MOST_STEPS):
        users *= _STEP
        try:
            more = replace(problem, users=math.ceil(users))
        except InfeasibleError:
            continue
        if learns(ranked(more, loss, (METHODS[solver],))[0].losses):
            return _rounded(users)
    return None


def _rounded(users: float) -> int:
    """Two digits, rounded up."""
    digits = int(10 ** max(0, math.floor(math.log10(users)) - 1))
    return math.ceil(users / digits) * digits
