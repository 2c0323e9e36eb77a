"""How the regret of linear bandits grows with the users, where every user has new arms.

The theory's worst case: T^(3/4) in the local model, T^(3/5) with one shuffler and batches of T^(3/5) ([002]
Corollaries 3.3, 3.6), T^((k+1)/(2k+1)) with k shufflers ([000] Theorem 5.1), all up to logarithms. The bound of
`ConfidenceRule` has these slopes with the logarithms in it, about 0.1 more. New arms for every user are no worst case:
they show all directions, the matrix's least eigenvalue grows with T, and once the data outweigh the regularizer regret
hardly grows. The local model's never do, and its measured slope is the theory's; the others' lie far below.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.experiments.counter import Slope, fitted_slope
from shuffledp.learn.bandits.linear.catalogue import linear_policy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FreshArms

PRIVACY = Privacy(1.0, 0.1)
DIMENSION, ARMS, SMALLEST, A_DECADE = 3, 10, 1000, 2
THEORY = {"ldp": 3 / 4, "shuffle-vec": 3 / 5, "concurrent-4": 5 / 9}

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthRow:
    """Final regret at one number of users, and its proved bound."""

    policy: str
    users: int
    slot_users: int
    regret_mean: float
    regret_standard_error: float
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthSlope:
    """Of log regret against log users, beside that of the bound and the theory's."""

    policy: str
    theory: float
    regret: Slope
    bound: Slope


def regret_growth(
    *,
    largest: int = 100_000,
    instances: int = 20,
    seed: int = 1,
    policies: Sequence[str] = tuple(THEORY),
    progress: Progress | None = None,
) -> tuple[list[GrowthRow], list[GrowthSlope]]:
    """Rows for two numbers of users a decade, and the slopes through them."""
    if not 10 * SMALLEST <= largest <= 10**7:
        raise ParameterError("largest", largest, f"must lie in {10 * SMALLEST:,}..10,000,000", "a slope needs a decade")
    if instances < 2:
        raise ParameterError("instances", instances, "must be >= 2", "20 are enough for a slope")
    steps = int(np.floor(A_DECADE * np.log10(largest / SMALLEST) + 1e-9))
    sizes = [round(SMALLEST * 10 ** (step / A_DECADE)) for step in range(steps + 1)]
    rows, slopes, done = [], [], 0
    total = len(policies) * sum(sizes)
    for policy in policies:
        here = []
        for users in sizes:
            here.append(_measured(policy, users, instances, seed))
            done += users
            if progress is not None:
                progress(done, total)
        rows += here
        slopes.append(
            GrowthSlope(
                policy=policy,
                theory=THEORY[policy],
                regret=fitted_slope(sizes, [row.regret_mean for row in here]),
                bound=fitted_slope(sizes, [row.bound for row in here]),
            )
        )
    return rows, slopes


def _measured(name: str, users: int, instances: int, seed: int) -> GrowthRow:
    setting = LinearSetting(users=users, dimension=DIMENSION, nonnegative=True)
    policy = linear_policy(name, setting, PRIVACY, batch=round(users**0.6))
    generator = np.random.default_rng((seed, DIMENSION))
    world = FreshArms.drawn(instances, arms=ARMS, dimension=DIMENSION, generator=generator)
    curves = run_linear_bandit(policy, world, seed=seed)
    return GrowthRow(
        policy=name,
        users=users,
        slot_users=policy.slot_users,
        regret_mean=curves.mean,
        regret_standard_error=curves.standard_error,
        bound=policy.rule.regret_bound,
    )
