"""Plain LinUCB with fixed arms, updated every round, all instances at once: rank-one updates only.

With w = V^-1 phi, Sherman and Morrison's formula takes w w^T / (1 + phi.w) off V^-1, (x.w)^2 / (1 + phi.w) off every
arm's squared width, and adds ln(1 + phi.w) to ln det V. As x.V^-1 b changes by x.w (y - phi.theta) / (1 + phi.w), every
arm's mean and squared width follow from x.w alone: one product of features and a vector a round.

The radius also needs V's least eigenvalue, which only grows: an older one gives a radius that is larger by a hair, and
holds. So it is computed every round at first, and later when the rounds grew by a hundredth.
"""

import numpy as np

from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.simulation.environments.linear_curves import Progress, RegretCurves, keep_block
from shuffledp.simulation.environments.linear_worlds import FixedArms

# Rewards drawn at a time; rounding errors of so many rounds are swept away by computing everything afresh.
_ROUNDS = 1000
BEHIND = 0.01
"""The part of the rounds by which the least eigenvalue may be older than the model."""


def run_every_round(
    policy: LinearPolicy,
    world: FixedArms,
    generator: np.random.Generator,
    progress: Progress | None = None,
    *,
    behind: float = BEHIND,
) -> RegretCurves:
    """Regret by the law of slots of one user, faster; exactly that where `behind` is 0."""
    users, rule, features = policy.setting.users, policy.rule, world.features
    instances, arms, size = features.shape
    kept = RegretCurves(users, instances)
    regret = np.zeros(instances)
    matrix, vector = np.broadcast_to(np.eye(size), (instances, size, size)).copy(), np.zeros((instances, size))
    rows = np.arange(instances) * arms
    flat, flat_means = features.reshape(-1, size), world.means.reshape(-1)
    cost, spread, length = rule.rewards_cost, policy.setting.reward_deviation, policy.setting.theta_length
    pulled, due = np.full(instances, length), 0
    column = np.empty((instances, arms, 1))
    along = column[..., 0]
    scores, squares = np.empty((instances, arms)), np.empty((instances, arms))
    for first in range(0, users, _ROUNDS):
        count = min(_ROUNDS, users - first)
        inverse = np.linalg.inv(matrix)
        log_det = np.linalg.slogdet(matrix)[1]
        means = np.matmul(features, np.matmul(inverse, vector[..., np.newaxis]))[..., 0]
        widths = np.einsum("iad,iad->ia", np.matmul(features, inverse), features)
        uniform = generator.random((count, instances))
        chosen = np.empty((count, instances), dtype=np.intp)
        paid = np.empty((count, instances), dtype=np.bool_)
        for step in range(count):
            if first + step >= due:
                # S / sqrt(m): the inverse's largest eigenvalue is that of V's least, and at most 1.
                pulled = length * np.sqrt(np.minimum(np.linalg.eigvalsh(inverse)[:, -1], 1.0))
                due = first + step + 1 + int(behind * (first + step))
            radius = spread * np.sqrt(cost + log_det) + pulled
            np.sqrt(widths, out=scores)
            scores *= radius[:, np.newaxis]
            scores += means
            arm = scores.argmax(axis=1)
            arm += rows
            chosen[step] = arm
            phi = flat[arm]
            reward = uniform[step] < flat_means[arm]
            paid[step] = reward
            across = np.matmul(inverse, phi[..., np.newaxis])
            np.matmul(features, across, out=column)
            # x.w of the chosen arm itself is its squared width.
            growth = 1 + widths.reshape(-1)[arm]
            part = (reward - means.reshape(-1)[arm]) / growth
            np.multiply(along, part[:, np.newaxis], out=squares)
            means += squares
            np.multiply(along, along, out=squares)
            squares /= growth[:, np.newaxis]
            widths -= squares
            log_det += np.log(growth)
            across /= np.sqrt(growth)[:, np.newaxis, np.newaxis]
            inverse -= across * across.transpose(0, 2, 1)
        taken, lost = flat[chosen], (world.best - flat_means[chosen]).cumsum(axis=0)
        matrix += np.einsum("tid,tie->ide", taken, taken)
        vector += np.einsum("tid,ti->id", taken, paid.astype(np.float64))
        keep_block(kept, regret, lost, first)
        regret = regret + lost[-1]
        if progress is not None:
            progress(first + count)
    return kept
