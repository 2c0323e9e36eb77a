"""Schedules: the best of all there are, also where users return so often that noise outweighs what they tell."""

import math

import numpy as np
import pytest

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.continual.planner import slot_users_for
from shuffledp.continual.visits import Visits
from shuffledp.errors import InfeasibleError
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB, best_schedule
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.schedules.combinatorial import slots
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FreshArms

PRIVACY = Privacy(1.0, 0.1)


@pytest.mark.parametrize(
    ("users", "dimension", "shufflers", "visits"),
    [(316_228, 3, 2, 1), (3000, 5, 4, 50), (3000, 5, 4, 5), (20_000, 5, 4, 1), (500, 2, 3, 1)],
)
def test_no_other_schedule_has_a_smaller_bound(users: int, dimension: int, shufflers: int, visits: int) -> None:
    setting = LinearSetting(users=users, dimension=dimension, nonnegative=True)
    deviation = gaussian_standard_deviation(PRIVACY, setting.joint.apart)

    def bound(used: int, budget: int) -> float:
        deviations = deviation * math.sqrt(Visits(visits, used).squares) * np.sqrt([1.0, budget])
        return planning_bound(setting, deviations, slot_users_for(users, budget, used), slots(budget, used))

    every = [
        bound(used, budget)
        for used in range(1, shufflers + 1)
        for budget in [*range(1, 30), *range(30, 400, 5)]
        if slots(budget, used) <= users
    ]
    # Large budgets are searched in steps of a sixteenth.
    assert bound(*best_schedule(setting, PRIVACY, shufflers, visits)[1:]) <= 1.002 * min(every)


def test_more_noise_is_never_better() -> None:
    setting = LinearSetting(users=3000, dimension=5)
    bounds = [planning_bound(setting, np.array([spread, 2 * spread]), 100, 30) for spread in np.geomspace(1, 1e6, 25)]
    assert bounds == sorted(bounds)


def test_returning_users_are_learned_from() -> None:
    setting = LinearSetting(users=3000, dimension=3, nonnegative=True)
    chosen = ConcurrentLinUCB.planned(setting, PRIVACY, visits=20)
    assert chosen.plan.shufflers_used == 1 and chosen.rule.matrix_noise.max() < setting.users / setting.dimension
    four = ConcurrentLinUCB.with_layout(setting, PRIVACY, 20, shufflers=4, shufflers_used=4, budget=1, users=3000)
    world = FreshArms.drawn(8, arms=10, dimension=3, generator=np.random.default_rng(1))
    regrets = [run_linear_bandit(policy, world, seed=1) for policy in (chosen, four)]
    assert regrets[0].mean + 3 * regrets[0].standard_error < regrets[1].mean


def test_where_nothing_can_be_learned_it_says_so() -> None:
    setting = LinearSetting(users=300, dimension=5)
    with pytest.raises(InfeasibleError, match="too few to learn anything"):
        ConcurrentLinUCB.planned(setting, Privacy(0.1, 1e-6), visits=20)
