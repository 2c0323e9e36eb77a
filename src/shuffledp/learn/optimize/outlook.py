"""What so many people can teach a model, and in how many runs nothing: said before anything is spent, from rehearsals.

One rehearsal is a world of synthetic people and one draw of the noise. The mean over worlds says what to expect; that
it is good does not say that a run is, so that runs are counted, too, on seeds that no choice was made by.
"""

import math
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from shuffledp.errors import InfeasibleError, TooFewPeopleWarning
from shuffledp.learn.callers import warn_caller
from shuffledp.learn.optimize.choosing import METHODS, rehearsable
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.ranking import Candidate, Rehearsals, mean_part, ranked
from shuffledp.learn.optimize.rehearsal import rehearse
from shuffledp.learn.optimize.solver import Solver
from shuffledp.learn.optimize.stages import noise_of
from shuffledp.learn.optimize.worlds import SPECS, world_of

# A model whose loss is above this part of a constant's, in the mean over all worlds, has learned next to nothing.
_NOTHING = 0.95
# Numbers of people are tried in steps of this factor, this often.
_STEP, _MOST_STEPS = math.sqrt(2), 24
# One rehearsal's part may be off by this, by chance; then sizes near this one are rehearsed, too.
_BY_CHANCE, _NEAR = 0.06, (0.94, 1.06)
# Where less than this is proved of the excess loss, nothing needs to be rehearsed.
_PROVED = 0.1
# Runs of a world, fewer where they have many rounds, and seeds that no solver was chosen by.
_RUNS, _MOST_ROUNDS, _WORLDS_FROM, _RUNS_FROM = 5, 3000, 18, 1000
# Who is told: where so many of all runs learn nothing.
_OFTEN = 1 / 3

Losses = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a planned solver's models of synthetic people of this shape are worth, over worlds and draws of the noise.

    Attributes:
        users: how many people it is planned for.
        solver: its name.
        part: what a model loses of what the best constant does, in the geometric mean over all runs.
        low: the part that a tenth of the runs lie below.
        high: the part that a tenth of the runs lie above.
        runs: how many there were.
        in_vain: of those, how many made a model that is no better than the best constant.

    >>> known = dict(users=341, solver="agd", part=0.9, low=0.7, high=1.05, runs=25)
    >>> print(Outlook(**known, in_vain=10))
    rehearsed on synthetic people, agd's model loses 90% of what the best constant does (70% to 105% in 8 of 10 runs), \
and 10 of 25 runs learn nothing
    >>> Outlook(**known, in_vain=10).is_near_limit, Outlook(**known, in_vain=2).is_near_limit
    (True, False)
    """

    users: int
    solver: str
    part: float
    low: float
    high: float
    runs: int
    in_vain: int

    @property
    def is_near_limit(self) -> bool:
        """Whether a third of the runs or more learn nothing, however good the others are."""
        return self.in_vain >= _OFTEN * self.runs

    def __str__(self) -> str:
        nothing = f"{self.in_vain} of {self.runs} runs learn nothing" if self.in_vain else "every run learns something"
        return (
            f"rehearsed on synthetic people, {self.solver}'s model loses {self.part:.0%} of what the best constant "
            f"does ({self.low:.0%} to {self.high:.0%} in 8 of 10 runs), and {nothing}"
        )

    def document(self) -> dict[str, Any]:
        """The outlook as JSON."""
        return asdict(self)


def outlook(solver: Solver) -> Outlook | None:
    """What can be expected of a solver at this size; None where its loss is not rehearsed. It reads nobody's data.

    Args:
        solver: planned, and not yet run: its very stages run, with noise of their plans' variance.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> asked = {"privacy": Privacy(1, 1e-6), "visits": 1}
    >>> ball = L2Ball(dimension=5, radius=3)
    >>> few, many = (Problem.of(LogisticLoss(), ball, users=users, **asked) for users in (200, 20_000))
    >>> few, many = (outlook(plan(each, solver="agd")) for each in (few, many))
    >>> few.in_vain > many.in_vain, few.part > many.part
    (True, True)
    """
    loss = rehearsable(solver.problem)
    if not isinstance(loss, Loss) or solver.model != "shuffle":
        return None
    return _outlook(solver, loss)


@lru_cache(maxsize=64)
def _outlook(solver: Solver, loss: Loss) -> Outlook:
    problem, noises = solver.problem, tuple(noise_of(solver.problem, stage.plan) for stage in solver.stages)
    runs = max(1, min(_RUNS, _MOST_ROUNDS // (len(SPECS) * solver.rounds)))
    parts: list[float] = []
    for place, spec in enumerate(SPECS):
        world = world_of(spec, loss, problem.domain, _WORLDS_FROM + place)
        assert world is not None
        models = (rehearse(problem, solver.stages, noises, world, _RUNS_FROM + run) for run in range(runs))
        parts.extend(world.mean_loss(model) / world.constant_loss() for model in models)
    low, high = np.quantile(parts, (0.1, 0.9)).tolist()
    return Outlook(
        users=problem.users,
        solver=solver.name,
        part=mean_part([(solver.name, part) for part in parts]),
        low=low,
        high=high,
        runs=len(parts),
        in_vain=sum(part >= 1 for part in parts),
    )


def too_few(solver: Solver) -> str | None:
    """What to say of a solver whose people are too few to learn from; None where they are enough, or nobody can say.

    Args:
        solver: planned, and not yet run.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> few = Problem.of(LogisticLoss(), L2Ball(dimension=20, radius=5), users=120, privacy=Privacy(1, 1e-6), visits=1)
    >>> print(too_few(plan(few, solver="agd")))
    120 people are too few for 20 numbers at epsilon 1: ... From about ... people on there is something to learn
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
    return (
        f"{problem.users:,} people are too few for {_asked(problem)}: rehearsed on synthetic people, {solver.name}'s "
        f"model loses {part:.0%} of what the best constant does. {better}"
    )


def near_limit(solver: Solver) -> str | None:
    """What to say of a solver that learns from so many people on average, and yet nothing in a third of its runs.

    Args:
        solver: planned, and not yet run.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
    >>> asked = {"privacy": Privacy(1, 1e-6), "visits": 1}
    >>> problem = Problem.of(LogisticLoss(), L2Ball(dimension=20, radius=5), users=400, **asked)
    >>> print(near_limit(plan(problem, solver="agd")))
    400 people are near the fewest that learn 20 numbers at epsilon 1: rehearsed ... runs learn nothing. More people...
    """
    found = outlook(solver)
    if found is None or not found.is_near_limit:
        return None
    better = "More people, a larger epsilon, fewer features or asking people often make it likelier"
    least = f"{found.users:,} people are near the fewest that learn {_asked(solver.problem)}"
    return f"{least}: {found}. {better}"


def words_before(solver: Solver) -> str | None:
    """What is to be said before a solver is run: its people are too few, or near the least; None if neither."""
    return too_few(solver) or near_limit(solver)


def warn_if_too_few(solver: Solver) -> None:
    """Warn before a solver is run in vain, or likely so."""
    words = words_before(solver)
    if words is not None:
        warn_caller(f"{words}.", TooFewPeopleWarning)


def _asked(problem: Problem) -> str:
    epsilon = math.nan if problem.privacy is None else problem.privacy.epsilon
    return f"{problem.dimension} numbers at epsilon {epsilon:g}"


@lru_cache(maxsize=64)
def _losses(problem: Problem, loss: Loss, solver: str) -> Losses:
    """The rehearsed losses of a solver that was named, with its own rounds and steps."""
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
    """The rehearsed losses of a method with its best rounds and steps."""
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
