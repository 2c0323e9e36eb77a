"""Plain Thompson sampling with fixed arms, updated every round, all instances at once: rank-one updates only.

With C = R R^T the covariance of theta and u = R^T phi, a reward of variance s^2 takes (R u)(R u)^T / (s^2 + u.u) off C,
and R - a (R u) u^T has that square where a = (1 - s / sqrt(s^2 + u.u)) / u.u. So nothing is ever decomposed on the way.
"""

import numpy as np

from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.posterior import PosteriorRule
from shuffledp.simulation.environments.linear_curves import Floats, Progress, RegretCurves, keep_block
from shuffledp.simulation.environments.linear_worlds import FixedArms

# Rewards drawn at a time; rounding errors of so many rounds are swept away by computing everything afresh.
_ROUNDS = 1000


def narrow(root: Floats, features: Floats, variance: float) -> tuple[Floats, Floats]:
    """What a reward of these features adds to a root of the covariance, and how theta moves for an error of 1.

    Args:
        root: R of every instance, (instances, dimension, dimension).
        features: phi of every instance.
        variance: of a reward.

    Returns:
        What is added to R, and R u / (variance + u.u), which is times the reward less its expectation.
    """
    along = np.matmul(features[:, np.newaxis, :], root)
    squares = np.square(along).sum(axis=-1, keepdims=True)
    across = np.matmul(root, np.swapaxes(along, 1, 2))
    # Where u.u is 0 nothing is learned, and nothing added.
    part = (1 - np.sqrt(variance / (variance + squares))) / np.maximum(squares, 1e-300)
    return -part * across * along, (across / (variance + squares))[..., 0]


def run_every_draw(
    policy: LinearPolicy, world: FixedArms, generator: np.random.Generator, progress: Progress | None = None
) -> RegretCurves:
    """Regret by the law of slots of one user who draws theta, faster."""
    users, features, joint = policy.setting.users, world.features, policy.setting.joint
    instances, arms, size = features.shape
    rule, variance = PosteriorRule(policy.setting, policy.release_noise), policy.setting.reward_deviation**2
    kept, regret, sums = RegretCurves(users, instances), np.zeros(instances), np.zeros((instances, joint.length))
    rows, flat, flat_means = np.arange(instances) * arms, features.reshape(-1, size), world.means.reshape(-1)
    for first in range(0, users, _ROUNDS):
        count = min(_ROUNDS, users - first)
        model = rule.model(*joint.unpack(sums), first)
        theta, root = model.theta.copy(), model.root.copy()
        uniform, normals = generator.random((count, instances)), generator.standard_normal((count, instances, size, 1))
        chosen = np.empty((count, instances), dtype=np.intp)
        for step in range(count):
            drawn = np.matmul(root, normals[step])
            drawn[..., 0] += theta
            arm = np.matmul(features, drawn)[..., 0].argmax(axis=1)
            arm += rows
            chosen[step] = arm
            phi = flat[arm]
            added, moved = narrow(root, phi, variance)
            wrong = (uniform[step] < flat_means[arm]) - (phi * theta).sum(axis=1)
            theta += moved * wrong[:, np.newaxis]
            root += added
        paid = uniform < flat_means[chosen]
        sums += joint.pack(flat[chosen], paid).sum(axis=0)
        lost = (world.best - flat_means[chosen]).cumsum(axis=0)
        keep_block(kept, regret, lost, first)
        regret = regret + lost[-1]
        if progress is not None:
            progress(first + count)
    return kept
