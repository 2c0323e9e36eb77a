"""Table 1 of [001]: how what privacy costs in convex optimization falls with the users.

Measured is the excess population loss over the solver's twin, the same run on the same users without noise, in worlds
that have coordinates of all sizes (`simulation.environments.convex`). One row has one epsilon for all n, chosen so that
the noise of a run is shorter than the domain at n = 1000, which asks for a large epsilon, and longer than chance at
n = 1,000,000 as far as that leaves room, which asks for a small one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.experiments.common import (
    Progress,
    along_decades,
    check_asked,
    check_seed,
    fitted_slope,
    mean_and_error,
)
from shuffledp.experiments.resumed import RowTask, measured
from shuffledp.learn.optimize import Problem, plan
from shuffledp.privacy import Privacy
from shuffledp.simulation.environments.convex import Kinks, SignWorld, Valleys, counted_run

DELTA = 1e-6
SMALLEST, A_DECADE = 1000, 2
ROUNDS_ASKED_ONCE, ROUNDS_ASKED_OFTEN = 100_000, 1000
# Runs of very many rounds are repeated less often: about so many rounds in all, and at least so many runs.
_ALL_ROUNDS, _FEWEST = 100_000, 6
_NEAR = 0.1


@dataclass(frozen=True, slots=True)
class ConvexCell:
    """One cell of the table: a solver, a world, and why its slope may miss the theory's."""

    name: str
    solver: str
    theory: float
    world: SignWorld
    why: str
    epsilon: float = 1.0
    visits: int | None = 1


_ALL_SIZES = (
    "a world with coordinates of all sizes has a logarithm that the theory leaves out: "
    "with more users more of them are steep enough to count"
)
_PHASES = (
    "the theory leaves out logarithms: with more users there are more phases or longer ones, "
    "and the last has a smaller part of the users"
)
_CHANCE = (
    "for many users the planner makes steps for chance, too, which is then larger than noise, so that noise costs less"
)
SETTINGS = (
    ConvexCell("convex", "smoothed-agd", -2 / 3, Kinks(smallest=1e-3), _ALL_SIZES),
    ConvexCell("convex smooth", "agd", -4 / 5, Valleys(), _ALL_SIZES),
    ConvexCell("convex smooth", "sgd", -1 / 2, Valleys(), _ALL_SIZES),
    ConvexCell("strongly convex", "phased-smoothed-agd", -4 / 3, Kinks(ridge=5.0), _PHASES),
    ConvexCell("strongly convex smooth", "phased-agd", -2.0, Valleys(ridge=5.0), _PHASES),
    ConvexCell("convex, full", "gd", -1.0, Valleys(), _CHANCE, epsilon=0.1, visits=None),
    ConvexCell("strongly convex, full", "phased-gd", -2.0, Valleys(ridge=5.0), _PHASES, visits=None),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessRow:
    """What noise costs at one number of users; `twin` is the excess loss without noise, `bound` is proved for both."""

    setting: str
    solver: str
    users: int
    rounds: int
    runs: int
    extra_mean: float
    extra_standard_error: float
    twin: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexTask(RowTask):
    """One solver at one number of users."""

    row = ExcessRow

    setting: str
    solver: str
    users: int
    instances: int
    seed: int

    @property
    def weight(self) -> int:
        return self.users if self.solver == "sgd" else 200_000 if self.solver.endswith("gd") else 50_000

    def run(self) -> ExcessRow:
        """What noise costs at the epsilon of the table's cell."""
        cell = next(each for each in SETTINGS if (each.name, each.solver) == (self.setting, self.solver))
        return self.at(cell, Privacy(cell.epsilon, DELTA))

    def at(self, cell: ConvexCell, privacy: Privacy) -> ExcessRow:
        """The mean of runs at any privacy, each beside its twin, with noise and with the same noise mirrored."""
        world = cell.world
        problem = Problem.of(
            world.loss,
            world.domain,
            users=self.users,
            privacy=privacy,
            visits=cell.visits,
            rounds=ROUNDS_ASKED_ONCE if cell.visits == 1 else ROUNDS_ASKED_OFTEN,
        )
        solver = plan(problem, solver=self.solver)
        runs = max(min(_FEWEST, self.instances), min(self.instances, _ALL_ROUNDS // solver.rounds))
        twins, extras = np.empty(runs), np.empty(runs)
        for run in range(runs):
            losses = []
            for scale in (0, 1, -1):
                people, noise = (np.random.default_rng((self.seed, self.users, run, part)) for part in (0, 1))
                losses.append(world.excess(counted_run(solver, world, scale=scale, people=people, noise=noise)))
            # Mirrored noise takes away what is odd in it, whose mean is 0 as long as the domain's edge is not met.
            twins[run], extras[run] = losses[0], (losses[1] + losses[2]) / 2 - losses[0]
        mean, error = mean_and_error(extras)
        found = {"extra_mean": mean, "extra_standard_error": error, "twin": float(twins.mean()), "bound": solver.bound}
        return self.measured_as(ExcessRow, rounds=solver.rounds, runs=runs, **found)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRow:
    """The slope of log excess against log users, with its 95% interval, beside the theory's."""

    setting: str
    solver: str
    slope: float
    slope_low: float
    slope_high: float
    theory: float
    epsilon: float
    because: str | None
    """Why it differs, where the theory's lies outside the interval or further off than 0.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexRates:
    """The whole experiment."""

    rows: tuple[RateRow, ...]
    points: tuple[ExcessRow, ...]
    instances: int
    seed: int

    def points_of(self, row: RateRow) -> list[ExcessRow]:
        """In the order of their users."""
        return [point for point in self.points if (point.setting, point.solver) == (row.setting, row.solver)]


def convex_rates(
    *,
    largest: int = 10**6,
    instances: int = 40,
    seed: int = 1,
    solvers: Sequence[str] | None = None,
    workers: int = 1,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> ConvexRates:
    """Rows for two numbers of users a decade from 1000 on, and the slopes through them.

    Reference: [001] Table 1.
    """
    check_asked("largest", largest, 10 * SMALLEST, 10**7, way_out="a slope needs a decade")
    check_asked("instances", instances, 2, 100_000, way_out="40 are enough for a slope")
    check_seed(seed)
    sizes = along_decades(SMALLEST, largest, A_DECADE)
    chosen = [setting for setting in SETTINGS if solvers is None or setting.solver in solvers]
    tasks = [
        ConvexTask(setting=setting.name, solver=setting.solver, users=users, instances=instances, seed=seed)
        for setting in chosen
        for users in sizes
    ]
    points = measured(tasks, workers=workers, cache=cache, progress=progress)
    rows = [
        _rate(setting, points[place * len(sizes) : (place + 1) * len(sizes)]) for place, setting in enumerate(chosen)
    ]
    return ConvexRates(rows=tuple(rows), points=tuple(points), instances=instances, seed=seed)


def _rate(setting: ConvexCell, points: Sequence[ExcessRow]) -> RateRow:
    lost = [point for point in points if not point.extra_mean > 0]
    if lost:
        problem = f"are too few: noise did not show at {lost[0].users:,} users with {setting.solver}"
        raise ParameterError("instances", lost[0].runs, problem, "take more")
    slope = fitted_slope([point.users for point in points], [point.extra_mean for point in points])
    off = abs(slope.slope - setting.theory)
    return RateRow(
        setting=setting.name,
        solver=setting.solver,
        slope=slope.slope,
        slope_low=slope.low,
        slope_high=slope.high,
        theory=setting.theory,
        epsilon=setting.epsilon,
        because=None if slope.low <= setting.theory <= slope.high and off <= _NEAR else setting.why,
    )
