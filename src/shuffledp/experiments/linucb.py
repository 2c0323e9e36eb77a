"""Figures 1 and 2 of [002], with noise that is proved: regret of LinUCB in every trust model.

100 arms, theta and features on the raised sphere (`linear_worlds`), Bernoulli rewards, 20,000 users, delta 0.1,
batches of 20 for the two policies of the paper and for the local one's updates. Figure 1 has dimension 5, Figure 2
has 10 and 15. All inner products of features are >= 0, so the joint vector's sensitivity is 2. All policies have the
same worlds, and the same rule for regularizer and radius; Thompson samplers have the same releases and another rule.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.experiments.common import check_asked, check_seed
from shuffledp.experiments.resumed import Measuring, RowTask, measured
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.catalogue import POLICIES, linear_policy
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FixedArms

USERS, ARMS, BATCH, DELTA = 20_000, 100, 20, 0.1
EPSILONS = (0.2, 1.0, 10.0)
DIMENSIONS = {1: (5,), 2: (10, 15)}
FREE = ("linucb", "thompson")
"""Policies that are not private: no epsilon changes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegretRow:
    """Final regret over instances, and its mean and standard error along the way."""

    policy: str
    epsilon: float | None
    dimension: int
    instances: int
    regret_mean: float
    regret_standard_error: float
    seconds: float
    slot_users: int
    times: tuple[int, ...]
    curve_mean: tuple[float, ...]
    curve_standard_error: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureTask(RowTask):
    """One policy at one epsilon in one dimension; without privacy, epsilon is None."""

    row = RegretRow

    policy: str
    epsilon: float | None
    dimension: int
    instances: int
    users: int = USERS
    seed: int = 1
    rules: int = 3
    """Changes with the rule for radii and the noise: kept rows of older ones are measured again."""

    @property
    def weight(self) -> int:
        """How long it takes: longer where the model changes every round."""
        return self.users * self.instances * self.dimension * (20 if self.policy == "jdp-tree" else 1)

    def run(self) -> RegretRow:
        """Play one policy in all worlds; the worlds are the same for all policies."""
        started = time.perf_counter()
        setting = LinearSetting(users=self.users, dimension=self.dimension, nonnegative=True)
        privacy = Privacy(1.0 if self.epsilon is None else self.epsilon, DELTA)
        policy = linear_policy(self.policy, setting, privacy, batch=min(BATCH, self.users))
        generator = np.random.default_rng((self.seed, self.dimension))
        world = FixedArms.drawn(self.instances, arms=ARMS, dimension=self.dimension, generator=generator)
        curves = run_linear_bandit(policy, world, seed=self.seed)
        errors = curves.regret.std(axis=0, ddof=1) / math.sqrt(self.instances)
        return self.measured_as(
            RegretRow,
            regret_mean=curves.mean,
            regret_standard_error=curves.standard_error,
            seconds=time.perf_counter() - started,
            slot_users=policy.slot_users,
            times=tuple(curves.times.tolist()),
            curve_mean=tuple(curves.regret.mean(axis=0).tolist()),
            curve_standard_error=tuple(errors.tolist()),
        )


def figure_tasks(
    figure: int, *, instances: int, seed: int = 1, users: int = USERS, policies: Sequence[str] = POLICIES
) -> list[FigureTask]:
    """In the order of the table: what is not private once for each dimension."""
    if figure not in DIMENSIONS:
        raise ParameterError("figure", figure, "must be 1 or 2", "1 has dimension 5, 2 has 10 and 15")
    check_asked("instances", instances, 2, way_out="50 are the paper's")
    check_seed(seed)
    return [
        FigureTask(policy=policy, epsilon=epsilon, dimension=dimension, instances=instances, users=users, seed=seed)
        for dimension in DIMENSIONS[figure]
        for policy in policies
        for epsilon in ((None,) if policy in FREE else EPSILONS)
    ]


def linucb_figure(tasks: Sequence[FigureTask], **measuring: Unpack[Measuring]) -> list[RegretRow]:
    """All rows, in the tasks' order; those in the cache are not measured again."""
    return measured(tasks, **measuring)
