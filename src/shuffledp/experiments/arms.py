"""Regret of private arm elimination: what privacy costs, and which batches to take.

`arms_regret` runs all policies side by side on worlds with random gaps. `extra_regret` measures what [003] Theorem 3.3
says of doubling batches: beyond the regret of the same policy without noise they cost about k log T / epsilon. Gaps
there are above epsilon and spread over a factor of two, one period of the doubling, so that its steps average out;
for gaps below epsilon noise is small beside chance, and the extra regret is smaller than the theorem's.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from shuffledp.experiments.common import along_decades, check_asked, fitted_slope, mean_and_error
from shuffledp.experiments.resumed import Measuring, RowTask, measured
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.arms.elimination import Elimination
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.spec import check_whole
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.arms import (
    UCB1,
    CuratorElimination,
    EveryRound,
    LocalElimination,
    NonPrivateElimination,
    ThompsonSampling,
)
from shuffledp.simulation.arms import simulate_arms
from shuffledp.simulation.environments.arms import ArmsWorld, random_gaps

DELTA = 1e-6
EPSILONS = (0.2, 1.0, 10.0)
FIXED = (10, 30, 100, 300, 1000, 3000)
SMALLEST, LARGEST_ALLOWED = 10_000, 10**9
GROWTH = 1.25
# Every user draws for every arm, which takes a minute for a million users of so many instances.
_LONGEST_THOMPSON, _MOST_INSTANCES = 10**6, {"thompson": 50}

Policy = Elimination | EveryRound


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsRow:
    """One policy's regret; epsilon is None for those that are not private."""

    policy: str
    epsilon: float | None
    arms: int
    horizon: int
    instances: int
    regret_mean: float
    regret_standard_error: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraRow:
    """Regret beyond that of the same policy without noise."""

    arms: int
    horizon: int
    epsilon: float
    extra_mean: float
    extra_standard_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretTask(RowTask):
    """One policy for one horizon; epsilon is None for those that are not private."""

    row = ArmsRow

    policy: str
    epsilon: float | None
    arms: int
    horizon: int
    instances: int
    seed: int
    worlds: int = 2
    """Changes with the worlds: kept rows of older ones are measured again."""

    @property
    def weight(self) -> int:
        """Those that choose every round take the most steps."""
        return self.instances * self.arms * {"ucb1": 50, "thompson": 500}.get(self.policy, 1)

    def run(self) -> ArmsRow:
        """One policy in all instances; the same seed draws the same rewards for policies with the same stages."""
        started = time.perf_counter()
        policy = dict(policies(self.arms, self.horizon, self.epsilon))[self.policy]
        world = random_gaps(self.instances, self.arms, smallest=0.02, largest=0.5, seed=self.seed)
        world = ArmsWorld(world.means[: _MOST_INSTANCES.get(self.policy)])
        regret = simulate_arms(policy, world, bits=RandomBits.seeded(self.seed), seed=self.seed).regret
        mean, error = mean_and_error(regret)
        found = {"regret_mean": mean, "regret_standard_error": error, "seconds": time.perf_counter() - started}
        return self.measured_as(ArmsRow, instances=regret.size, **found)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTask(RowTask):
    """Doubling batches and their twin."""

    row = ExtraRow

    arms: int
    horizon: int
    epsilon: float
    instances: int
    seed: int
    worlds: int = 2

    @property
    def weight(self) -> int:
        """Two policies."""
        return 2 * self.instances * self.arms

    def run(self) -> ExtraRow:
        """Doubling batches beside their twin without noise."""
        policy = DoublingBatches(arms=self.arms, horizon=self.horizon, privacy=Privacy(self.epsilon, DELTA))
        extra = extra_regret(policy, self.instances, bits=RandomBits.seeded(self.seed), seed=self.seed)
        mean, error = mean_and_error(extra)
        return self.measured_as(ExtraRow, extra_mean=mean, extra_standard_error=error)


def extra_regret(policy: Elimination, instances: int, *, bits: RandomBits, seed: int) -> NDArray[np.float64]:
    """What a policy regrets beyond its twin without noise, in the same worlds, with gaps from 0.3 to 0.6."""
    world = random_gaps(instances, policy.arms, smallest=0.3, largest=0.6, seed=seed)
    twin = NonPrivateElimination(arms=policy.arms, horizon=policy.horizon, growth=2.0)
    mine, other = (simulate_arms(each, world, bits=bits, seed=seed).regret for each in (policy, twin))
    return mine - other


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponent:
    """How extra regret grows in k - 1, log T or 1 / epsilon: least squares on logarithms, Student's 95% interval."""

    against: str
    exponent: float
    low: float
    high: float
    theory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsRegret:
    """The whole experiment."""

    rows: tuple[ArmsRow, ...]
    extra: tuple[ExtraRow, ...]
    exponents: tuple[Exponent, ...]
    seed: int

    @property
    def epsilons(self) -> list[float]:
        """Every epsilon that a private policy was run with, in order."""
        return sorted({row.epsilon for row in self.rows if row.epsilon is not None})

    @property
    def free(self) -> set[str]:
        """The policies that are not private."""
        return {row.policy for row in self.rows if row.epsilon is None}

    def best_fixed(self, epsilon: float, horizon: int) -> ArmsRow:
        """The fixed batch that was best in hindsight."""
        return min(
            (r for r in self.rows if r.policy.startswith("fixed") and (r.epsilon, r.horizon) == (epsilon, horizon)),
            key=lambda row: row.regret_mean,
        )


def policies(arms: int, horizon: int, epsilon: float | None) -> Iterator[tuple[str, Policy]]:
    """All that are compared, by name."""
    if epsilon is None:
        yield "non-private", NonPrivateElimination(arms=arms, horizon=horizon)
        yield "non-private doubling", NonPrivateElimination(arms=arms, horizon=horizon, growth=2.0)
        yield "ucb1", UCB1(arms=arms, horizon=horizon)
        if horizon <= _LONGEST_THOMPSON:
            yield "thompson", ThompsonSampling(arms=arms, horizon=horizon)
        return
    privacy = Privacy(epsilon, DELTA)
    yield "doubling", DoublingBatches(arms=arms, horizon=horizon, privacy=privacy)
    yield "doubling coins", DoublingBatches(arms=arms, horizon=horizon, privacy=privacy, method="coins")
    yield "growing 1.25", DoublingBatches(arms=arms, horizon=horizon, privacy=privacy, growth=GROWTH)
    for batch in FIXED:
        if batch * arms <= horizon // 4:
            yield f"fixed {batch}", FixedBatches(arms=arms, horizon=horizon, privacy=privacy, batch=batch)
    if epsilon <= 1:
        paper = DoublingBatches(arms=arms, horizon=horizon, privacy=privacy, method="coins", constants="paper")
        yield "doubling paper", paper
    yield "curator", CuratorElimination(arms=arms, horizon=horizon, privacy=privacy)
    yield "curator 1.25", CuratorElimination(arms=arms, horizon=horizon, privacy=privacy, growth=GROWTH)
    yield "local", LocalElimination(arms=arms, horizon=horizon, privacy=privacy)


def arms_regret(
    *,
    arms: int = 10,
    largest: int = 10**6,
    instances: int = 200,
    epsilons: Sequence[float] = EPSILONS,
    seed: int = 1,
    **measuring: Unpack[Measuring],
) -> ArmsRegret:
    """All policies, all horizons and epsilons, and the growth of what privacy costs; rows in the cache are kept.

    Reference: [003] Theorems 3.1 and 3.3.
    """
    check_whole("arms", arms, 2, 1000, "try 10")
    check_whole("instances", instances, 2, 100_000, "200 are enough for a picture")
    check_whole("seed", seed, 0, 2**63, "pass for instance 1")
    check_asked("largest", largest, 10 * SMALLEST, LARGEST_ALLOWED, way_out="try 1000000")
    tasks = [
        RegretTask(policy=name, epsilon=epsilon, arms=arms, horizon=horizon, instances=instances, seed=seed)
        for horizon in along_decades(SMALLEST, largest, 2)
        for epsilon in (None, *epsilons)
        for name, _ in policies(arms, horizon, epsilon)
    ]
    lines = [
        (against, ExtraTask(arms=k, horizon=horizon, epsilon=epsilon, instances=instances, seed=seed))
        for against, k, horizon, epsilon in _extra_points()
    ]
    found = measured([*tasks, *(task for _, task in lines)], **measuring)
    rows, extra = found[: len(tasks)], found[len(tasks) :]
    points = [(against, row) for (against, _), row in zip(lines, extra, strict=True)]
    return ArmsRegret(rows=tuple(rows), extra=tuple(extra), exponents=_exponents(points), seed=seed)


def _extra_points() -> list[tuple[str, int, int, float]]:
    """One line through the middle for each of the three: what it is against, arms, horizon, epsilon."""
    arms = [("arms", k, 10**7, 0.1) for k in (2, 3, 5, 9, 17, 33)]
    horizon = [("log horizon", 9, 10**power, 0.1) for power in (5, 6, 7, 8, 9, 10)]
    epsilon = [("1 / epsilon", 9, 10**7, epsilon) for epsilon in (0.02, 0.04, 0.08, 0.16, 0.32)]
    return arms + horizon + epsilon


_AGAINST: dict[str, Callable[[ExtraRow], float]] = {
    "arms": lambda row: row.arms - 1.0,
    "log horizon": lambda row: math.log(row.horizon),
    "1 / epsilon": lambda row: 1 / row.epsilon,
}


def _exponents(points: Sequence[tuple[str, ExtraRow]]) -> tuple[Exponent, ...]:
    found = []
    for against, x in _AGAINST.items():
        rows = [row for name, row in points if name == against]
        fit = fitted_slope([x(row) for row in rows], [row.extra_mean for row in rows])
        found.append(Exponent(against=against, exponent=fit.slope, low=fit.low, high=fit.high, theory=1.0))
    return tuple(found)
