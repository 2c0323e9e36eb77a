"""How the regret of linear bandits grows with the users, where every user has new arms.

The theory's worst case: T^(3/4) in the local model, T^(3/5) with one shuffler and batches of T^(3/5) ([002]
Corollaries 3.3, 3.6), T^((k+1)/(2k+1)) with k shufflers ([000] Theorem 5.1), which tends to T^(1/2), all up to
logarithms. The bound of `ConfidenceRule` has these slopes with the logarithms in it, about 0.1 more.

New arms for every user are no worst case: they show all directions, the matrix's least eigenvalue grows with T, and
once the data outweigh noise and regularizer regret hardly grows. What is left then is that of the first slot, whose
users are shown a model of nobody: it grows like the slot. The local model's noise is outweighed last.

`concurrent` takes at every T the number of shufflers, up to 16, whose proved bound is the smallest.
"""

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.experiments.common import (
    Slope,
    along_decades,
    check_asked,
    check_seed,
    fitted_slope,
    mean_and_error,
)
from shuffledp.experiments.resumed import Measuring, RowTask, measured
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FreshArms

Floats = NDArray[np.float64]

PRIVACY = Privacy(1.0, 0.1)
DIMENSION, ARMS, SMALLEST, LARGEST_ALLOWED, A_DECADE = 3, 10, 1000, 10**7, 2
POLICIES = ("ldp", "shuffle-vec", "concurrent")
MOST_SHUFFLERS = 16
# Worlds of one task: few, so that a run that stops has lost little.
_TOGETHER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthPart:
    """Final regret in each of a task's worlds."""

    regrets: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthTask(RowTask):
    """One policy for so many users, in some of the worlds."""

    row = GrowthPart

    policy: str
    users: int
    worlds: int
    part: int
    seed: int
    rules: int = 2
    """Changes with the noise: kept rows of older ones are measured again."""

    @property
    def weight(self) -> int:
        """Users."""
        return self.users * self.worlds

    def run(self) -> GrowthPart:
        """Play one policy; the worlds of a part are the same for all policies and numbers of users."""
        started = time.perf_counter()
        generator = np.random.default_rng((self.seed, DIMENSION, self.part))
        world = FreshArms.drawn(self.worlds, arms=ARMS, dimension=DIMENSION, generator=generator)
        own_seed = int(np.random.SeedSequence((self.seed, self.users, self.part)).generate_state(1)[0])
        regret = run_linear_bandit(_policy(self.policy, self.users), world, seed=own_seed).final
        return GrowthPart(regrets=tuple(regret.tolist()), seconds=time.perf_counter() - started)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """Final regret at one number of users, its proved bound, and the part of the users who saw a model of nobody."""

    policy: str
    users: int
    shufflers: int
    slot_users: int
    instances: int
    regret_mean: float
    regret_standard_error: float
    bound: float
    first_slot_part: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSlope:
    """The slope of log regret against log users, over all and in the last decade, beside the bound's and the theory's.

    Intervals are of the worlds: jackknife, 95%. The bound's is of a straight line.
    """

    policy: str
    theory: float
    regret: Slope
    last_decade: Slope
    bound: Slope


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretGrowth:
    """The whole experiment."""

    rows: tuple[GrowthRow, ...]
    slopes: tuple[GrowthSlope, ...]
    instances: int
    seed: int

    def sentences(self) -> list[str]:
        """Where measured slopes are not the theory's, and why."""
        found = []
        for slope in self.slopes:
            last = max((row for row in self.rows if row.policy == slope.policy), key=lambda row: row.users)
            if not slope.regret.low <= slope.theory <= slope.regret.high:
                side = "below" if slope.regret.slope < slope.theory else "above"
                found.append(
                    f"{slope.policy}: {slope.regret.slope:.2f}, {side} the worst case's {slope.theory:.3g}; in the "
                    f"last decade {slope.last_decade.slope:.2f}, and then {last.first_slot_part:.0%} of its regret is "
                    f"of the first {last.slot_users:,} users."
                )
        if found:
            found.append(
                "New arms for every user show all directions: once data outweigh noise, only the first slot's users "
                "lose much, who are shown a model of nobody."
            )
        return found


def theory_of(policy: str) -> float:
    """The worst case's exponent.

    >>> [theory_of(name) for name in ("ldp", "shuffle-vec", "concurrent", "concurrent-1")]
    [0.75, 0.6, 0.5, 0.6666666666666666]
    """
    known = {"ldp": 3 / 4, "shuffle-vec": 3 / 5, "concurrent": 1 / 2}
    several = re.fullmatch(r"concurrent-([1-9]\d?)", policy)
    if policy not in known and several is None:
        raise ParameterError("policy", policy, f"must be one of {', '.join(known)}", "or concurrent-1, -2, ...")
    return known[policy] if several is None else (int(several[1]) + 1) / (2 * int(several[1]) + 1)


def regret_growth(
    *,
    largest: int = 10**6,
    instances: int = 20,
    seed: int = 1,
    policies: Sequence[str] = POLICIES,
    **measuring: Unpack[Measuring],
) -> RegretGrowth:
    """Rows for two numbers of users a decade, and the slopes through them."""
    check_asked("largest", largest, 10 * SMALLEST, LARGEST_ALLOWED, way_out="a slope needs a decade")
    check_asked("instances", instances, 2, way_out="20 are enough for a slope")
    check_seed(seed)
    theories = {policy: theory_of(policy) for policy in policies}
    sizes = along_decades(SMALLEST, largest, A_DECADE)
    worlds = [min(_TOGETHER, instances - first) for first in range(0, instances, _TOGETHER)]
    tasks = [
        GrowthTask(policy=policy, users=users, worlds=count, part=part, seed=seed)
        for policy, users, (part, count) in product(theories, sizes, enumerate(worlds))
    ]
    left, blind = iter(measured(tasks, **measuring)), _blind_regret()
    rows, slopes = [], []
    for policy, theory in theories.items():
        together = [list(islice(left, len(worlds))) for _ in sizes]
        here = [_row(policy, users, parts, blind) for users, parts in zip(sizes, together, strict=True)]
        regrets = np.array([[regret for part in parts for regret in part.regrets] for parts in together]).T
        slopes.append(
            GrowthSlope(
                policy=policy,
                theory=theory,
                regret=jackknife_slope(sizes, regrets),
                last_decade=jackknife_slope(sizes[-A_DECADE - 1 :], regrets[:, -A_DECADE - 1 :]),
                bound=fitted_slope(sizes, [row.bound for row in here]),
            )
        )
        rows += here
    return RegretGrowth(rows=tuple(rows), slopes=tuple(slopes), instances=instances, seed=seed)


def jackknife_slope(users: Sequence[int], regrets: Floats) -> Slope:
    """The slope of the log of the mean regret, a row a world; its interval comes from leaving out one world at a time.

    >>> slope = jackknife_slope([10, 100], np.array([[1.0, 10.0], [3.0, 30.0]]))
    >>> round(slope.slope, 9), round(slope.high - slope.low, 9)
    (1.0, 0.0)
    """
    worlds = len(regrets)
    x = np.log(users) - np.mean(np.log(users))

    def slope(means: Floats) -> Floats:
        return np.asarray(np.log(means) @ x / (x @ x))

    whole = float(slope(regrets.mean(axis=0)))
    others = slope((regrets.sum(axis=0) - regrets) / (worlds - 1))
    error = math.sqrt((worlds - 1) * float(np.mean(np.square(others - others.mean()))))
    width = float(stats.t.ppf(0.975, worlds - 1)) * error
    return Slope(slope=whole, low=whole - width, high=whole + width)


def _policy(name: str, users: int) -> LinearPolicy:
    setting = LinearSetting(users=users, dimension=DIMENSION, nonnegative=True)
    name = f"concurrent-{MOST_SHUFFLERS}" if name == "concurrent" else name
    return linear_policy(name, setting, PRIVACY, batch=round(users**0.6))


def _row(name: str, users: int, parts: Sequence[GrowthPart], blind: float) -> GrowthRow:
    policy = _policy(name, users)
    regrets = np.concatenate([part.regrets for part in parts])
    mean, error = mean_and_error(regrets)
    return GrowthRow(
        policy=name,
        users=users,
        shufflers=policy.shufflers,
        slot_users=policy.slot_users,
        instances=regrets.size,
        regret_mean=mean,
        regret_standard_error=error,
        bound=policy.rule.regret_bound,
        first_slot_part=min(1.0, blind * policy.slot_users / mean),
        seconds=sum(part.seconds for part in parts),
    )


def _blind_regret() -> float:
    """A user's regret who takes any arm."""
    generator = np.random.default_rng(1)
    world = FreshArms.drawn(1, arms=ARMS, dimension=DIMENSION, generator=generator)
    _, means = world.offer(20_000, generator)
    return float((means.max(axis=-1) - means.mean(axis=-1)).mean())
