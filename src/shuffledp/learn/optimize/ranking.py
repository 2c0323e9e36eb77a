"""Which solver, with how many rounds and which steps: the one whose rehearsals on synthetic populations are best.

Bounds are proved for the worst distribution, and rank solvers by it; rehearsals rank them by what happens to people who
are not out to harm the solver. Both are functions of the problem alone, so neither costs privacy. A choice that is
wrong costs accuracy: noise, guarantee and bound are those of whatever was chosen.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from shuffledp.errors import InfeasibleError
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.rehearsal import rehearse
from shuffledp.learn.optimize.stages import Method, Stage, StageSketch, SteppedMethod, noise_of
from shuffledp.learn.optimize.worlds import SPECS, World, world_of

MOST_NUMBERS = 1024
"""Models of more numbers are not rehearsed, which would take too long."""

# The public seed of all rehearsals.
_SEED = 18
# Rehearsed rounds of a candidate in a world: those of few rounds are rehearsed several times.
_ROUNDS, _MOST_RUNS = 96, 5
# Another try is better if it gains more than this part of the loss; fewer rounds are, if they cost less than this.
_WORTH, _FEWER = 0.002, 0.005
# Noise of a plan that is further from what was expected is rehearsed again.
_AS_EXPECTED = 1.05
# Numbers of rounds are tried by these factors, steps by these.
_FINER, _LONGER = math.sqrt(2), 2.0
_LEAST_SCALE, _FIRST_SCALE = 1 / 8, 2.0
_MOST_TRIES = 24


def mean_part(losses: Sequence[tuple[str, float]]) -> float:
    """The geometric mean of losses, each over that of a constant."""
    return float(np.exp(np.mean([math.log(max(part, 1e-6)) for _, part in losses])))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A method, or a method with so many rounds and steps for an optimum so far from the start.

    Attributes:
        method: its name.
        rounds: None leaves rounds and steps to the method, which takes those of its least bound.
        scale: the distance that steps are for, in parts of the domain's reach.
    """

    method: str
    rounds: int | None = None
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A candidate's rehearsals: in each world, the model's mean loss over that of the best constant.

    >>> Rehearsed(Candidate("agd"), (("clear", 0.5), ("faint", 1.0))).score
    0.7071...
    """

    candidate: Candidate
    losses: tuple[tuple[str, float], ...]

    @property
    def score(self) -> float:
        """The geometric mean over all worlds: below 1 where something is learned."""
        return mean_part(self.losses)


class Rehearsals:
    """All rehearsals of a problem; `surplus` is what noise is times the one to be expected."""

    def __init__(self, problem: Problem, loss: Loss, methods: Sequence[Method], surplus: float = 1.0) -> None:
        self.problem, self.surplus = problem, surplus
        self._methods = {method.name: method for method in methods if method.refusal(problem) is None}
        made = (world_of(spec, loss, problem.domain, _SEED + place) for place, spec in enumerate(SPECS))
        self._worlds = [world for world in made if world is not None]
        self._constants = [world.constant_loss() for world in self._worlds]
        self._found: dict[Candidate, Rehearsed] = {}

    def stages(self, candidate: Candidate, *, planned: bool) -> tuple[Stage, ...]:
        """What a candidate runs; planned, with exact noise, steps for it and the bound of those steps."""
        problem, method = self.problem, self._methods[candidate.method]
        if candidate.rounds is None:
            return method.stages(problem, planned=planned)
        assert isinstance(method, SteppedMethod)
        users = problem.users // candidate.rounds if method.asks_once else problem.users
        sketch = StageSketch(candidate.rounds, users, math.inf)
        plan = method.plan_noise(problem, users, candidate.rounds) if planned else None
        noise = noise_of(problem, plan) if planned else self.noise(candidate.method, candidate.rounds)
        stage = method.steps(problem, sketch, candidate.scale * problem.domain.reach, noise, plan)
        return (replace(stage, bound=method.proved_bound(problem, stage, noise)),)

    def noise(self, method: str, rounds: int) -> float:
        """The expected squared length of one round's noise."""
        return self.surplus**2 * self._methods[method].expected_noise(self.problem, rounds)

    def rehearsed(self, candidate: Candidate) -> Rehearsed:
        """A candidate's losses, each measured once."""
        if candidate not in self._found:
            stages = self.stages(candidate, planned=False)
            noises = tuple(self.noise(candidate.method, stage.rounds) for stage in stages)
            runs = max(1, min(_MOST_RUNS, _ROUNDS // sum(stage.rounds for stage in stages)))
            losses = tuple(
                (world.name, self._mean_loss(stages, noises, world, runs) / constant)
                for world, constant in zip(self._worlds, self._constants, strict=True)
            )
            self._found[candidate] = Rehearsed(candidate, losses)
        return self._found[candidate]

    def _mean_loss(self, stages: tuple[Stage, ...], noises: tuple[float, ...], world: World, runs: int) -> float:
        found = [world.mean_loss(rehearse(self.problem, stages, noises, world, _SEED + run)) for run in range(runs)]
        return float(np.mean(found))

    def all(self) -> list[Rehearsed]:
        """Every method as it is, and where steps may be chosen, those around the best; the best first."""
        for name, method in self._methods.items():
            if method.predicted_bound(self.problem) == math.inf:
                continue
            own = self.rehearsed(Candidate(name))
            if isinstance(method, SteppedMethod) and method.tuned:
                first = min(_FIRST_SCALE, method.longest_scale)
                self._climb(Candidate(name, self.stages(own.candidate, planned=False)[0].rounds, first))
        return self.ranked()

    def ranked(self) -> list[Rehearsed]:
        """All that were rehearsed, the best first: of those about as good the one of fewest rounds."""
        found = list(self._found.values())
        least = min(each.score for each in found)
        return sorted(found, key=lambda each: self._rank(each, least))

    def _rank(self, each: Rehearsed, least: float) -> tuple[bool, float]:
        near = each.score <= least * (1 + _FEWER)
        rounds = sum(stage.rounds for stage in self.stages(each.candidate, planned=False))
        return (False, float(rounds)) if near else (True, each.score)

    def _climb(self, start: Candidate) -> None:
        """Try neighbours of the best so far until none is better."""
        best = self.rehearsed(start)
        for _ in range(_MOST_TRIES):
            next_best = min(
                map(self.rehearsed, self._around(best.candidate)), key=lambda each: each.score, default=best
            )
            if next_best.score > best.score * (1 - _WORTH):
                return
            best = next_best

    def _around(self, candidate: Candidate) -> Iterator[Candidate]:
        method, rounds, scale = self._methods[candidate.method], candidate.rounds or 1, candidate.scale
        assert isinstance(method, SteppedMethod)
        most = self.problem.users // self.problem.smallest_batch if method.asks_once else self.problem.visits_allowed
        for factor in (1 / _FINER, _FINER):
            other = min(max(method.fewest_rounds, round(rounds * factor)), most, self.problem.rounds)
            if other != rounds:
                yield replace(candidate, rounds=other)
        for factor in (1 / _LONGER, _LONGER):
            if _LEAST_SCALE <= scale * factor <= method.longest_scale:
                yield replace(candidate, scale=scale * factor)


@lru_cache(maxsize=64)
def ranked(problem: Problem, loss: Loss, methods: tuple[Method, ...], surplus: float = 1.0) -> tuple[Rehearsed, ...]:
    """All rehearsals of a problem, the best first; noise is `surplus` times the one to be expected."""
    return tuple(Rehearsals(problem, loss, methods, surplus).all())


def chosen_stages(problem: Problem, loss: Loss, methods: tuple[Method, ...]) -> tuple[Rehearsed, tuple[Stage, ...]]:
    """The best candidate that can be planned, and its stages.

    Args:
        problem: users, domain, privacy and limits; no data.
        loss: what rehearsals minimize.
        methods: those to choose from.

    Raises:
        InfeasibleError: none can be planned.
    """
    surplus = 1.0
    while True:
        refused: InfeasibleError | None = None
        for rehearsed in ranked(problem, loss, methods, surplus):
            rehearsals = Rehearsals(problem, loss, methods, surplus)
            try:
                stages = rehearsals.stages(rehearsed.candidate, planned=True)
            except InfeasibleError as error:
                refused = error
                continue
            found = noise_of(problem, stages[0].plan)
            ratio = math.sqrt(found / rehearsals.noise(rehearsed.candidate.method, stages[0].rounds)) if found else 1.0
            if surplus == 1.0 and not 1 / _AS_EXPECTED < ratio < _AS_EXPECTED:
                surplus = ratio
                break
            return rehearsed, stages
        else:
            assert refused is not None
            raise refused
