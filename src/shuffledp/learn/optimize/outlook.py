"""Whether so few people can teach a model anything: said before anything is spent, from rehearsals alone."""

import math
import warnings
from contextlib import suppress
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
# One rehearsal's part may be off by this, by chance; then sizes near this one are rehearsed, too.
_BY_CHANCE, _NEAR = 0.06, (0.94, 1.06)
# Where less than this is proved of the excess loss, nothing needs to be rehearsed.
_PROVED = 0.1

Losses = tuple[tuple[str, float], ...]


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
    part = _usual_part(problem, loss, solver.name, solver.chosen.losses or _losses(problem, loss, solver.name))
    if part < _NOTHING:
        return None
    enough = _enough(problem, loss, solver.name)
    better = "More people, a larger epsilon or fewer features are needed"
    if enough is not None:
        better = f"From about {enough:,} people on there is something to learn"
    epsilon = math.nan if problem.privacy is None else problem.privacy.epsilon
    return (
        f"{problem.users:,} people are too few for {problem.dimension} numbers at epsilon {epsilon:g}: rehearsed on "
        f"synthetic people, {solver.name}'s model loses {part:.0%} of what the best constant does. "
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


@lru_cache(maxsize=256)
def _usual_part(problem: Problem, loss: Loss, solver: str, losses: Losses) -> float:
    """What a method's model loses of what the best constant does, about this many people, from losses it had once.

    One rehearsal is off by a few percent by chance, and by how many rounds happen to go into so many people: where that
    could change the answer, the mean over sizes near theirs is taken.
    """
    parts = [mean_part(losses)]
    if abs(parts[0] - _NOTHING) < _BY_CHANCE:
        for near in _NEAR:
            # Fewer may be too few for a batch.
            with suppress(InfeasibleError):
                about = replace(problem, users=round(problem.users * near))
                parts.append(mean_part(_rehearsed(about, loss, solver)))
    return math.exp(math.fsum(map(math.log, parts)) / len(parts))


@lru_cache(maxsize=256)
def _rehearsed(problem: Problem, loss: Loss, solver: str) -> Losses:
    """Of a method with its best rounds and steps."""
    return ranked(problem, loss, (METHODS[solver],))[0].losses


@lru_cache(maxsize=64)
def _enough(problem: Problem, loss: Loss, solver: str) -> int | None:
    """The fewest people, in steps, of whom the same method learns; None where none are found.

    Steps are powers of one factor, wherever the search begins, so that everybody who has too few is told the same.
    """
    first = math.floor(math.log(problem.users, _STEP)) + 1
    for step in range(first, first + _MOST_STEPS):
        users = _rounded(_STEP**step)
        with suppress(InfeasibleError):
            more = replace(problem, users=users)
            if _usual_part(more, loss, solver, _rehearsed(more, loss, solver)) < _NOTHING:
                return users
    return None


def _rounded(users: float) -> int:
    """Two digits, rounded up."""
    digits = int(10 ** max(0, math.floor(math.log10(users)) - 1))
    return math.ceil(users / digits) * digits
