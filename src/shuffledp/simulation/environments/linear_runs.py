"""Linear bandits on many instances at once: between two releases nothing changes, so a whole slot is one step.

The same law as asking and telling user by user (`tests/learn/bandits/linear`), without the messages.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import LinearModel
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.curator import SquareRootLinUCB, TreeLinUCB
from shuffledp.learn.bandits.linear.linucb import LinUCB
from shuffledp.learn.bandits.linear.local import LocalLinUCB
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.prefix_noise import square_root_noise, tree_noise, walk_noise
from shuffledp.simulation.environments.linear_worlds import FixedArms, FreshArms

Floats = NDArray[np.float64]
Progress = Callable[[int], None]
"""Called with the number of users who have come so far."""

# Times at which regret is kept.
POINTS = 200
# Features at a time, where every user has its own arms.
_AT_A_TIME = 1 << 20
# Noises at a time.
_DRAWN_TOGETHER = 1 << 17


@dataclass(frozen=True, eq=False)
class RegretCurves:
    """Cumulative regret, in means of rewards, of every instance (a row) after so many users (a column)."""

    times: NDArray[np.int64]
    regret: Floats

    @property
    def final(self) -> Floats:
        """Of every instance after all users."""
        return np.asarray(self.regret[:, -1])

    @property
    def mean(self) -> float:
        """Over instances."""
        return float(self.final.mean())

    @property
    def standard_error(self) -> float:
        """Of that mean."""
        return float(self.final.std(ddof=1) / math.sqrt(len(self.final))) if len(self.final) > 1 else 0.0


def run_linear_bandit(
    policy: LinearPolicy, world: FixedArms | FreshArms, *, seed: int, progress: Progress | None = None
) -> RegretCurves:
    """Regret of a policy in every instance of a world."""
    if world.theta.shape[1] != policy.setting.dimension:
        limits = f"must be {policy.setting.dimension} as in the world"
        raise ParameterError("dimension", world.theta.shape[1], limits, "make both alike")
    generator = np.random.default_rng((seed, 1))
    plain = isinstance(policy, LinUCB) and policy.batch == 1 and policy.setting.constants == "exact"
    if isinstance(policy, LinUCB) and plain and isinstance(world, FixedArms):
        from shuffledp.simulation.environments.linear_every_round import run_every_round

        return run_every_round(policy, world, generator, progress)
    run = _Run(policy, world, generator, seed)
    return run.curves(progress)


class KeptRegret:
    """Regret at some times, on the line between two where slots do not end there."""

    def __init__(self, users: int, instances: int) -> None:
        self.times = np.unique(np.linspace(0, users, min(users, POINTS) + 1).astype(np.int64))
        self.regret = np.zeros((instances, self.times.size))
        self._before, self._filled = 0, 1

    def add(self, first: Floats, last: Floats, time: int) -> None:
        """Regret before and after the users up to this time."""
        while self._filled < self.times.size and self.times[self._filled] <= time:
            part = (self.times[self._filled] - self._before) / (time - self._before)
            self.regret[:, self._filled] = first + part * (last - first)
            self._filled += 1
        self._before = time


class _Run:
    def __init__(
        self, policy: LinearPolicy, world: FixedArms | FreshArms, generator: np.random.Generator, seed: int
    ) -> None:
        self.policy, self.world, self.generator = policy, world, generator
        self.bits, self.rounding = RandomBits.seeded(seed).spawn(2)
        self.joint = policy.setting.joint
        # Of fixed arms, what a reward of 1 would add; the matrices' part also gives the widths.
        self.arms = (
            self.joint.pack(world.features, np.ones(world.means.shape)) if isinstance(world, FixedArms) else None
        )
        # Sums of joint vectors: in steps where clients round them.
        counted = isinstance(policy, CountedPolicy)
        kind = np.int64 if counted else np.float64
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

    def _slot(self, model: LinearModel, count: int) -> Floats:
        """Let so many users choose; add up what they tell; their regret."""
        if isinstance(self.world, FixedArms) and self.arms is not None:
            return self._fixed_slot(self.world, self.arms, model, count)
        if not isinstance(self.world, FreshArms):
            raise ParameterError("world", type(self.world).__name__, "must have arms", "make FixedArms or FreshArms")
        lost = np.zeros(self.world.instances)
        size = self.world.instances * self.world.arms * self.joint.dimension
        for begin in range(0, count, max(1, _AT_A_TIME // size)):
            users = min(max(1, _AT_A_TIME // size), count - begin)
            features, means = self.world.offer(users, self.generator)
            wide = LinearModel(model.theta[:, None], model.inverse[:, None], model.radius[:, None])
            chosen = wide.choose(features)[..., np.newaxis]
            taken = np.take_along_axis(means, chosen, axis=-1)[..., 0]
            phi = np.take_along_axis(features, chosen[..., np.newaxis], axis=-2)[..., 0, :]
            rewards = self.generator.random(taken.shape) < taken
            self._add_packed(self.joint.pack(phi, rewards))
            lost += (means.max(axis=-1) - taken).sum(axis=1)
        return lost

    def _fixed_slot(self, world: FixedArms, arms: Floats, model: LinearModel, count: int) -> Floats:
        """All users of an instance choose the same arm."""
        size, every = self.joint.dimension, np.arange(world.instances)
        widths = np.matmul(arms[..., size:], self.joint.pack_matrix(model.inverse)[..., np.newaxis])[..., 0]
        np.sqrt(np.maximum(widths, 0.0, out=widths), out=widths)
        widths *= model.radius[:, np.newaxis]
        widths += np.matmul(world.features, model.theta[..., np.newaxis])[..., 0]
        chosen = widths.argmax(axis=1)
        means, packed = world.means[every, chosen], arms[every, chosen]
        if isinstance(self.policy, CountedPolicy):
            each = np.repeat(packed[:, np.newaxis], count, axis=1)
            each[..., :size] *= (self.generator.random((len(means), count)) < means[:, np.newaxis])[..., np.newaxis]
            self._add_packed(each)
        else:
            packed *= count
            packed[:, :size] *= (self.generator.binomial(count, means) / count)[:, np.newaxis]
            self.sums += packed
        return np.asarray(count * (world.best - means))

    def _add_packed(self, packed: Floats) -> None:
        """Joint vectors of so many users of each instance."""
        if isinstance(self.policy, CountedPolicy):
            steps = self.policy.plan.domain.to_steps(packed.reshape(-1, self.joint.length), bits=self.rounding)
            self.sums += steps.reshape(packed.shape).sum(axis=1)
        else:
            self.sums += packed.sum(axis=1)

    def _released(self, noise: NDArray[np.int64] | Floats) -> Floats:
        if isinstance(self.policy, CountedPolicy):
            return np.asarray((self.sums + noise) * self.policy.plan.domain.step)
        return np.asarray(self.sums + noise)

    def _noise(self) -> Iterator[NDArray[np.int64] | Floats]:
        """Of each release in turn."""
        policy, shape = self.policy, (self.world.instances, self.joint.length)
        generator = self.generator.spawn(1)[0]
        if policy.releases == 0:
            return iter(())
        if isinstance(policy, CountedPolicy):
            return counted_noise(policy, shape, self.bits)
        if isinstance(policy, TreeLinUCB):
            return tree_noise(policy.releases, policy.node_deviation, shape, generator=generator)
        if isinstance(policy, SquareRootLinUCB):
            first = float(policy.release_noise.deviations[1])
            return square_root_noise(policy.releases, first, shape, generator=generator)
        if isinstance(policy, LocalLinUCB):
            each = policy.user_deviation * math.sqrt(policy.slot_users)
            return walk_noise(policy.releases, each, shape, generator=generator)
        return iter(np.zeros((policy.releases, 1, 1)))


def counted_noise(policy: CountedPolicy, shape: tuple[int, int], bits: RandomBits) -> Iterator[NDArray[np.int64]]:
    """The noise of each release in turn: that of the batches that make it, each drawn once."""
    parents = policy.plan.schedule.parents[: policy.releases + 1].tolist()
    last_child = {parent: release for release, parent in enumerate(parents)}
    prefixes = {0: np.zeros(shape, dtype=np.int64)}
    together = max(1, _DRAWN_TOGETHER // (shape[0] * shape[1]))
    for first in range(1, policy.releases + 1, together):
        count = min(together, policy.releases + 1 - first)
        drawn = policy.plan.batch_noise.sample(Fraction(1), count * shape[0] * shape[1], bits=bits)
        for release, noise in enumerate(drawn.reshape(count, *shape), first):
            prefixes[release] = prefixes[parents[release]] + noise
            yield prefixes[release]
            for done in [kept for kept in prefixes if last_child.get(kept, kept) <= release]:
                del prefixes[done]
