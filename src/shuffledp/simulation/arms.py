"""Bandits in a simulated world: all instances at once by the noise's own law, or one by its messages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.learn.bandits.arms.elimination import ArmsState, Elimination, PrivateElimination
from shuffledp.learn.steps import compute
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.arms import EveryRound
from shuffledp.simulation.environments.arms import ArmsWorld, reward_generator
from shuffledp.simulation.run import simulate

Rewards = Callable[[int, int], NDArray[np.generic]]
"""The rewards of so many users who play this arm."""


@dataclass(frozen=True, slots=True, eq=False)
class ArmsRun:
    """What a policy did in each instance."""

    regret: NDArray[np.float64]
    """The gaps of all arms that were played, added up over all users."""
    kept_best: NDArray[np.bool_]
    """Whether an arm with the largest mean was left at the end."""


def simulate_arms(policy: Elimination | EveryRound, world: ArmsWorld, *, bits: RandomBits, seed: int) -> ArmsRun:
    """All instances of a world side by side, a stage at a step, by the noise's own law.

    Args:
        policy: an elimination, private or not, or a reference that chooses every round.
        world: instances with as many arms as the policy.
        bits: where noise comes from.
        seed: of the rewards.

    Returns:
        The regret of each instance, and whether its best arm was left.

    >>> from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
    >>> from shuffledp.privacy import Privacy
    >>> policy = DoublingBatches(arms=3, horizon=100_000, privacy=Privacy(1, 1e-6))
    >>> run = simulate_arms(policy, ArmsWorld.one([0.8, 0.4, 0.4]), bits=RandomBits.seeded(1), seed=1)
    >>> run.regret.round(1), run.kept_best
    (array([179.2]), array([ True]))
    """
    if policy.arms != world.arms:
        raise ParameterError("arms", policy.arms, f"must be the world's {world.arms}", "plan for the arms there are")
    gaps = world.gaps
    if policy.every_round:
        counts = cast(EveryRound, policy).play(world.means, bits=bits)
        return ArmsRun((counts * gaps).sum(axis=1), np.ones(world.instances, dtype=np.bool_))
    policy = cast(Elimination, policy)
    generator = reward_generator(seed)
    active = np.ones(world.means.shape, dtype=np.bool_)
    sums, regret = np.zeros(world.means.shape), np.zeros(world.instances)
    came = np.zeros(world.instances, dtype=np.int64)
    going, seen = np.arange(world.instances), 0
    for stage in policy.stages:
        left = active[going].sum(axis=1)
        going = going[(left > 1) & (came[going] + left * stage.users <= policy.horizon)]
        if going.size == 0:
            break
        ones = generator.binomial(stage.users, world.means[going])
        sums[going] += policy.sample_sums(stage, ones, bits=bits)
        came[going] += active[going].sum(axis=1) * stage.users
        regret[going] += stage.users * (gaps[going] * active[going]).sum(axis=1)
        seen += stage.users
        means = np.where(active[going], sums[going] / seen, -np.inf)
        active[going] = means >= means.max(axis=1, keepdims=True) - stage.width
    # Sums of arms that were dropped stand still: only those of arms that are left are compared.
    chosen = np.where(active, sums, -np.inf).argmax(axis=1)
    regret += (policy.horizon - came) * gaps[np.arange(world.instances), chosen]
    return ArmsRun(regret, (active & (gaps == 0)).any(axis=1))


def play(
    policy: PrivateElimination,
    rewards: Rewards,
    *,
    bits: RandomBits,
    fast: bool = False,
    state: ArmsState | None = None,
    users: int | None = None,
) -> ArmsState:
    """Ask and tell until all users came, or about so many; a batch that was void is asked for again.

    Args:
        policy: a private elimination.
        rewards: called with an arm and a number of users: the reward of each of them.
        bits: where all randomness of clients and shufflers comes from.
        fast: draw batches' estimates from their law instead of making, permuting and reading every message.
        state: where to go on; the beginning if left out.
        users: about how many users come; all if left out.

    Returns:
        Where the policy stands then.
    """
    now = policy.start() if state is None else state
    until = policy.horizon if users is None else min(users, policy.horizon)
    while now.users < until and (cohort := policy.ask(now)) is not None:
        closed: dict[int, Estimate | None] = {}
        if cohort.plan is not None:
            sent = compute(cohort.step, partial(_rewards, rewards, cohort.users), bits=bits)
            try:
                closed[1] = simulate(cohort.plan, sent, bits=bits, fast=fast)
            except BrokenBatchError:
                closed[1] = None
        now = policy.tell(now, cohort.users, closed)
    return now


def _rewards(rewards: Rewards, users: int, arm: int) -> NDArray[np.generic]:
    return np.asarray(rewards(arm, users))
