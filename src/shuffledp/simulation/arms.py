"""Bandits in a simulated world: all instances at once by the noise's own law, or one by its messages."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.learn.bandits.arms.elimination import ArmsState, Elimination, PrivateElimination
from shuffledp.learn.bandits.arms.references import EveryRound
from shuffledp.learn.bandits.spec import reward_bits
from shuffledp.randomness import RandomBits
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
    """All instances of the world side by side, a stage at a step; `seed` is of the rewards, `bits` of the noise.

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
    if isinstance(policy, EveryRound):
        counts = policy.play(world.means, bits=bits)
        return ArmsRun((counts * gaps).sum(axis=1), np.ones(world.instances, dtype=np.bool_))
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
    """Ask and tell until all users came, or about so many: every message is made, shuffled and read unless `fast`.

    Goes on from `state` where one is given; a batch that was void is asked for again.
    """
    now = policy.start() if state is None else state
    until = policy.horizon if users is None else min(users, policy.horizon)
    while now.users < until and (cohort := policy.ask(now)) is not None:
        if cohort.plan is None:
            now = policy.tell(now, None)
            continue
        sent = reward_bits(np.asarray(rewards(cohort.arm, cohort.users)), bits=bits)
        try:
            estimate = simulate(cohort.plan, sent, bits=bits, fast=fast)
        except BrokenBatchError:
            now = policy.tell(now, None)
        else:
            now = policy.tell(now, estimate)
    return now
