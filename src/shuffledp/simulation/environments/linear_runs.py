"""Linear bandits on many instances at once: between two releases nothing changes, so a whole slot is one step.

The same law as asking and telling user by user (`tests/learn/bandits/linear`), without the messages.
"""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.models import LinearModel
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.randomness import RandomBits
from shuffledp.simulation.environments.linear_curves import Floats, Progress, RegretCurves
from shuffledp.simulation.environments.linear_every_draw import run_every_draw
from shuffledp.simulation.environments.linear_every_round import run_every_round
from shuffledp.simulation.environments.linear_offers import OfferedInstances, OfferedWorld
from shuffledp.simulation.environments.linear_worlds import FixedArms, LinearWorld


def run_linear_bandit(
    policy: LinearPolicy,
    world: LinearWorld | OfferedWorld,
    *,
    seed: int,
    progress: Progress | None = None,
    instances: int = 1,
) -> RegretCurves:
    """Regret of a policy in every instance of a world.

    Args:
        policy: any linear policy, private or not.
        world: instances with theta and arms of the policy's dimension, or any world with the two methods of
            `OfferedWorld`: what users are offered, and what arms pay on average.
        seed: of rewards, of arms that are drawn on the way, and of noise.
        progress: called with the number of users who have come so far.
        instances: how many times a world of two methods is run, side by side; others say it themselves.

    Returns:
        The regret of every instance as users came.

    Raises:
        ParameterError: the world has another dimension, or lacks a method.
        DataError: a world offers features, or has means, of another shape or range.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.bandits.linear.setting import LinearSetting
    >>> from shuffledp.references.bandits.catalogue import linear_policy
    >>> from shuffledp.simulation.environments.linear_worlds import FreshArms
    >>> policy = linear_policy("linucb", LinearSetting(users=200, dimension=2), Privacy(1, 0.1))
    >>> bool(run_linear_bandit(policy, FreshArms(np.array([[0.6, 0.8]]), arms=3), seed=1).final[0] < 200)
    True
    """
    size = policy.setting.dimension
    here = world if isinstance(world, LinearWorld) else OfferedInstances.of(world, instances, size)
    if here.dimension != size:
        raise ParameterError("dimension", here.dimension, f"must be {size} as in the world", "make both alike")
    generator = np.random.default_rng((seed, 1))
    if policy.updates_every_round and here.is_fixed:
        run = {"confidence": run_every_round, "posterior": run_every_draw}[policy.choice]
        return run(policy, cast(FixedArms, here), generator, progress)
    kept, regret, time = RegretCurves(policy.setting.users, here.instances), np.zeros(here.instances), 0
    for _, _, users, lost in run_slots(policy, here, generator, seed):
        before, regret, time = regret, regret + lost, time + users
        kept.add(before, regret, time)
        if progress is not None and users:
            progress(time)
    return kept


def run_slots(
    policy: LinearPolicy, world: LinearWorld | OfferedInstances, generator: np.random.Generator, seed: int
) -> Iterator[tuple[Floats, LinearModel, int, Floats]]:
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
        model = policy.model_rule.model(*joint.unpack(released), release)
        users = min(policy.slot_users, policy.setting.users - release * policy.slot_users)
        lost = np.zeros(world.instances)
        for packed, regret in world.slot(model, users, joint, generator, singly=policy.is_counted) if users else ():
            sent = policy.to_steps(packed.reshape(-1, joint.length), bits=rounding)
            sums += sent.reshape(packed.shape).sum(axis=1)
            lost += regret
        yield released, model, users, lost
