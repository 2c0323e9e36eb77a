"""Linear bandits on many instances at once: between two releases nothing changes, so a whole slot is one step.

The same law as asking and telling user by user (`tests/learn/bandits/linear`), without the messages.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import ConfidentModel
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.randomness import RandomBits
from shuffledp.simulation.environments.linear_curves import Floats, Progress, RegretCurves
from shuffledp.simulation.environments.linear_every_round import run_every_round
from shuffledp.simulation.environments.linear_worlds import FixedArms, LinearWorld


def run_linear_bandit(
    policy: LinearPolicy, world: LinearWorld, *, seed: int, progress: Progress | None = None
) -> RegretCurves:
    """Regret of a policy in every instance of a world.

    Args:
        policy: any linear policy, private or not.
        world: instances with theta and arms of the policy's dimension.
        seed: of rewards, of arms that are drawn on the way, and of noise.
        progress: called with the number of users who have come so far.

    Raises:
        ParameterError: the world has another dimension.
    """
    if world.theta.shape[1] != policy.setting.dimension:
        limits = f"must be {policy.setting.dimension} as in the world"
        raise ParameterError("dimension", world.theta.shape[1], limits, "make both alike")
    generator = np.random.default_rng((seed, 1))
    if policy.updates_every_round and world.is_fixed:
        return run_every_round(policy, cast(FixedArms, world), generator, progress)
    kept, regret, time = RegretCurves(policy.setting.users, world.instances), np.zeros(world.instances), 0
    for _, _, users, lost in run_slots(policy, world, generator, seed):
        before, regret, time = regret, regret + lost, time + users
        kept.add(before, regret, time)
        if progress is not None and users:
            progress(time)
    return kept


def run_slots(
    policy: LinearPolicy, world: LinearWorld, generator: np.random.Generator, seed: int
) -> Iterator[tuple[Floats, ConfidentModel, int, Floats]]:
    """Slot after slot: the sums that were released, the model made of them, its users, and each instance's regret."""
    joint = policy.setting.joint
    bits, rounding = RandomBits.seeded(seed).spawn(2)
    shape = (world.instances, joint.length)
    # Sums of joint vectors: in steps where clients round them.
    sums: NDArray[Any] = np.zeros(shape, dtype=np.int64 if policy.is_counted else np.float64)
    noise: Iterator[NDArray[Any]] = iter(())
    if policy.releases:
        noise = policy.sample_noise(shape, bits=bits, generator=generator.spawn(1)[0])
    for release in range(policy.releases + 1):
        released = np.asarray((sums + next(noise)) * policy.step) if release else np.zeros(shape)
        model = policy.rule.model(*joint.unpack(released), release)
        users = min(policy.slot_users, policy.setting.users - release * policy.slot_users)
        lost = np.zeros(world.instances)
        for packed, regret in world.slot(model, users, joint, generator, singly=policy.is_counted) if users else ():
            sent = policy.to_steps(packed.reshape(-1, joint.length), bits=rounding)
            sums += sent.reshape(packed.shape).sum(axis=1)
            lost += regret
        yield released, model, users, lost
