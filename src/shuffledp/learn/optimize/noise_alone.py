"""What a solver's model looks like where features say nothing: rehearsed, to hold a published model against.

A model is published, so that looking at it costs nothing. The law of its noise is known, and so is what a solver makes
of that noise and of people whose targets do not depend on their features. Weights that are no longer than those cannot
be told from noise by their length: there may be something in them, which people who were kept out can tell
(`evaluate`).

Worlds without a signal are populations in which every row has every target equally often. Classes of unequal size and
features off the middle of their bounds lengthen weights, too, as both move a score's mean, and with them its intercept.
So a model whose intercept is as long as in the first world, of equal classes in the middle, is held against that one;
any other also against a second, whose rows lie halfway to a corner and of whose targets one is fifteen times as often
as the other. What people's own rows are like is not known, so that this is a test by rehearsal, whose rates are
measured and not proved (docs/theory/rehearsals.md, benchmarks/learned_or_noise.py).
"""

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.optimize.choosing import rehearsable
from shuffledp.learn.optimize.linear_losses import lengths_of
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.rehearsal import rehearse
from shuffledp.learn.optimize.sets import ConvexSet
from shuffledp.learn.optimize.solver import Solver
from shuffledp.learn.optimize.stages import noise_of
from shuffledp.learn.optimize.worlds import SPECS, World, world_of

Floats = NDArray[np.float64]

# A public seed; runs of each world: a few, those that decide, and rounds of these at most.
_SEED, _FEW_RUNS, _RUNS, _MOST_ROUNDS = 31, 3, 36, 4000
# Weights so much longer than those of a few runs are not noise.
_CLEARLY = 2.0
# Rows of a world: at least so many, and twice the numbers of a score.
_ROWS, _ROWS_A_NUMBER = 48, 2
# Targets of the world in the middle, and those off it: so many of one for each of the other.
_LEVELS, _TO_ONE = 4, 15
# How far rows lie on the way to a corner.
_OFF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseAlone:
    """A model's weights beside those of rehearsals in which features say nothing.

    Attributes:
        length: of the model's weights, its intercepts left out.
        longest: of all rehearsed ones.
        runs: how many were rehearsed.

    >>> print(NoiseAlone(length=1.5, longest=2.0, runs=48))
    by its length the model cannot be told from noise: weights are 1.5 long, and up to 2 where features say nothing \
(48 rehearsals)
    >>> NoiseAlone(length=2.5, longest=2.0, runs=48).is_all
    False
    """

    length: float
    longest: float
    runs: int

    @property
    def is_all(self) -> bool:
        """Whether the model cannot be told from noise by the length of its weights."""
        return self.length <= self.longest

    def __str__(self) -> str:
        told = "cannot be told from noise" if self.is_all else "is more than noise"
        return (
            f"by its length the model {told}: weights are {self.length:.3g} long, and up to {self.longest:.3g} where "
            f"features say nothing ({self.runs} rehearsals)"
        )

    def document(self) -> dict[str, Any]:
        """The comparison as JSON."""
        return {"cannot_be_told_from_noise": self.is_all, **asdict(self)}


def noise_alone(solver: Solver, theta: Floats) -> NoiseAlone | None:
    """A published model beside what its solver makes of noise; None where its loss is not rehearsed.

    It reads nobody's data. Weights that are twice as long as a few rehearsed ones are held against no more of them.

    Args:
        solver: the one that was run: its very stages run again, with noise of their plans' variance.
        theta: the model that it made, begun at the centre of its domain.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import BallWithIntercepts, LogisticLoss, Problem, plan
    >>> models = BallWithIntercepts(dimension=5, radius=3, intercept_radius=6, every=5)
    >>> problem = Problem.of(LogisticLoss(), models, users=20_000, privacy=Privacy(1, 1e-6), visits=1)
    >>> solver, long = plan(problem, solver="agd"), np.array([0.0, 0.0, 0.0, 3.0, 0.0])
    >>> noise_alone(solver, long).is_all, noise_alone(solver, 0.1 * long).is_all
    (False, True)
    """
    loss = rehearsable(solver.problem)
    if not isinstance(loss, Loss) or solver.model != "shuffle":
        return None
    own = Lengths.of(solver.problem.domain, theta)
    most = max(_FEW_RUNS, min(_RUNS, _MOST_ROUNDS // solver.rounds))
    for runs in (_FEW_RUNS, most):
        middle, off = (_rehearsed(solver, loss, place, runs) for place in (0, 1))
        is_middle = own.intercepts <= max(each.intercepts for each in middle)
        held = middle if is_middle else (*middle, *off)
        found = NoiseAlone(length=own.weights, longest=max(each.weights for each in held), runs=len(held))
        if found.length > _CLEARLY * found.longest:
            break
    return found


@dataclass(frozen=True, slots=True)
class Lengths:
    """How long a model's weights are, and its intercepts, together."""

    weights: float
    intercepts: float

    @classmethod
    def of(cls, domain: ConvexSet, theta: Floats) -> Self:
        """Lengths of a model's weights and intercepts, as its domain knows them; all are weights where it does not."""
        weights = domain.penalized(theta)
        return cls(float(np.linalg.norm(weights)), float(np.linalg.norm(theta - weights)))


@lru_cache(maxsize=256)
def _rehearsed(solver: Solver, loss: Loss, place: int, runs: int) -> tuple[Lengths, ...]:
    """The lengths of models of so many runs in one of both worlds without a signal."""
    problem, noises = solver.problem, tuple(noise_of(solver.problem, stage.plan) for stage in solver.stages)
    world = worlds_without_signal(loss, problem.domain)[place]
    models = (rehearse(problem, solver.stages, noises, world, _SEED + run) for run in range(runs))
    return tuple(Lengths.of(problem.domain, model) for model in models)


def worlds_without_signal(loss: Loss, domain: ConvexSet) -> tuple[World, World]:
    """Populations in which every row has every target equally often: in the middle of the bounds, and off it.

    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> for world in worlds_without_signal(LogisticLoss(), L2Ball(dimension=5, radius=3)):
    ...     apart = (world.targets - world.targets.mean()) @ (world.features - world.features.mean(axis=0))
    ...     bool(np.abs(apart).max() < 1e-9), bool(world.lengths.max() <= 1 + 1e-9)
    (True, True)
    (True, True)
    """
    made = world_of(next(spec for spec in SPECS if not spec.full), loss, domain, _SEED)
    assert made is not None
    size = made.features.shape[1]
    rows = made.features[: max(_ROWS, _ROWS_A_NUMBER * size)]
    ordered = np.sort(made.targets)
    levels = ordered[((np.arange(_LEVELS) + 0.5) / _LEVELS * ordered.size).astype(np.int64)]
    off = rows.copy()
    inner = off[:, :-1]
    corner = np.where(inner.mean(axis=0) >= 0, 1.0, -1.0) * np.abs(inner).max(initial=0.0)
    off[:, :-1] = (1 - _OFF) * inner + _OFF * corner
    # No row is longer than may be, wherever the corner lies.
    longest = math.sqrt(float((made.lengths**2).max()))
    off *= np.minimum(1.0, longest / lengths_of(off))[:, np.newaxis]
    unequal = np.append(np.full(_TO_ONE, ordered[0]), ordered[-1])
    return _every(made, rows, levels), _every(made, off, unequal)


def _every(world: World, rows: Floats, targets: Floats) -> World:
    """Every row with every target."""
    features = np.tile(rows, (targets.size, 1))
    return World(world.name, world.loss, features, np.repeat(targets, len(rows)), lengths_of(features))
