"""Strongly convex losses by phases: each starts where the last ended, and the radius shrinks.

After a phase with excess loss at most Delta on average, the optimum is at most sqrt(2 Delta / lambda) away in mean
square, which is all that the bounds of `agd`, `smoothed-agd` and `gd` need of the next phase. Phases have users of
their own.

Reference: [001] Theorem 4.8, and the strongly convex part of Theorem 4.9 (Feldman, Koren, Talwar 2020).
"""

import math
from collections.abc import Iterator

from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.stages import Method, Stage, StageSketch

# At most so many phases, each with so many times the users of the one before.
_MOST_PHASES, _RATIOS = 8, (1.0, 2.0, 4.0)


class Phased(Method):
    """Phases of another method, as many and as large as the last bound is least for.

    >>> from shuffledp.learn.optimize.agd import Agd
    >>> Phased(Agd()).name
    'phased-agd'
    """

    def __init__(self, inner: Method) -> None:
        self.inner = inner
        self.name = f"phased-{inner.name}"  # type: ignore[misc]
        self.asks_once = inner.asks_once  # type: ignore[misc]
        self.model = inner.model  # type: ignore[misc]
        self.reference = "[001] Theorem 4.8" if inner.asks_once else "[001] Theorem 4.9"  # type: ignore[misc]

    def refusal(self, problem: Problem) -> str | None:
        if not problem.curvature > 0:
            if problem.ridge > 0:
                return "needs a loss that is strongly convex in the intercept, too: fit none"
            return "needs a strongly convex loss: add a ridge"
        return self.inner.refusal(problem)

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        return self.inner.sketch(problem, users, distance, rounds)

    def stage(self, problem: Problem, sketch: StageSketch, distance: float, *, planned: bool = True) -> Stage:
        return self.inner.stage(problem, sketch, distance, planned=planned)

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return self.inner.expected_noise(problem, rounds)

    def predicted_bound(self, problem: Problem) -> float:
        return min(self._predicted(problem, sizes) for sizes in _layouts(problem.users, problem.rounds))

    def _predicted(self, problem: Problem, sizes: list[int]) -> float:
        distance, bound = problem.domain.reach, math.inf
        for size in sizes:
            bound = self.inner.sketch(problem, size, distance, problem.rounds // len(sizes)).bound
            distance = _shrunken(problem, bound)
        return bound

    def stages(self, problem: Problem, *, planned: bool = True) -> tuple[Stage, ...]:
        sizes = min(_layouts(problem.users, problem.rounds), key=lambda sizes: self._predicted(problem, sizes))
        distance, built = problem.domain.reach, []
        for size in sizes:
            sketch = self.inner.sketch(problem, size, distance, problem.rounds // len(sizes))
            built.append(self.inner.stage(problem, sketch, distance, planned=planned))
            distance = _shrunken(problem, built[-1].bound or 0.0)
        return tuple(built)


def _shrunken(problem: Problem, bound: float) -> float:
    """How far the optimum is from a model with this excess loss, in mean square."""
    return min(problem.domain.diameter, math.sqrt(2 * bound / problem.curvature))


def _layouts(users: int, rounds: int) -> Iterator[list[int]]:
    """Sizes of phases, in order."""
    for phases in range(1, min(_MOST_PHASES, rounds, users) + 1):
        for ratio in _RATIOS if phases > 1 else (1.0,):
            weights = [ratio**phase for phase in range(phases)]
            sizes = [math.floor(users * weight / sum(weights)) for weight in weights]
            if sizes[0] >= 1:
                yield sizes
