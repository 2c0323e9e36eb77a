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
from shuffledp.simulation.environments.linear_curves import Floats, KeptRegret, Progress, RegretCurves
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
    return _Run(policy, world, generator, seed).curves(progress)


class _Run:
    def __init__(self, policy: LinearPolicy, world: LinearWorld, generator: np.random.Generator, seed: int) -> None:
        self.policy, self.world, self.generator = policy, world, generator
        self.bits, self.rounding = RandomBits.seeded(seed).spawn(2)
        self.joint = policy.setting.joint
        # Sums of joint vectors: in steps where clients round them.
        kind = np.int64 if policy.is_counted else np.float64
        self.sums: NDArray[Any] = np.zeros((world.instances, self.joint.length), dtype=kind)

    def curves(self, progress: Progress | None) -> RegretCurves:
        policy, users = self.policy, self.policy.setting.users
        kept = KeptRegret(users, self.world.instances)
        regret = np.zeros(self.world.instances)
        noise = self._noise()
        for release in range(policy.releases + 1):
            first = release * policy.slot_users
            count = min(policy.slot_users, users - first)
            if count == 0:
                break
            released = np.zeros(self.sums.shape) if release == 0 else self._released(next(noise))
            model = policy.rule.model(*self.joint.unpack(released), release)
            before, regret = regret, regret + self._slot(model, count)
            kept.add(before, regret, first + count)
            if progress is not None:
                progress(first + count)
        return RegretCurves(kept.times, kept.regret)

    def _slot(self, model: ConfidentModel, count: int) -> Floats:
        """Let so many users choose; add up what they tell; their regret."""
        lost = np.zeros(self.world.instances)
        for packed, regret in self.world.slot(model, count, self.joint, self.generator, singly=self.policy.is_counted):
            self.sums += self._steps(packed).sum(axis=1)
            lost += regret
        return lost

    def _steps(self, packed: Floats) -> NDArray[Any]:
        """Joint vectors (instances, users, length) as clients send them."""
        return self.policy.to_steps(packed.reshape(-1, self.joint.length), bits=self.rounding).reshape(packed.shape)

    def _released(self, noise: NDArray[Any]) -> Floats:
        total = self.sums + noise
        return np.asarray(total * self.policy.step)

    def _noise(self) -> Iterator[NDArray[Any]]:
        """The noise of each release in turn."""
        generator = self.generator.spawn(1)[0]
        if self.policy.releases == 0:
            return iter(())
        shape = (self.world.instances, self.joint.length)
        return self.policy.sample_noise(shape, bits=self.bits, generator=generator)
