"""Plain LinUCB on all instances at once, beside the loop that one would write."""

import math
import time

import numpy as np

from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FixedArms


def plain_loop(features: np.ndarray, means: np.ndarray, rounds: int, generator: np.random.Generator) -> float:
    """LinUCB by the same rule, one instance, one round at a time."""
    size = features.shape[1]
    matrix, vector, regret = np.eye(size), np.zeros(size), 0.0
    for _ in range(rounds):
        inverse = np.linalg.inv(matrix)
        theta = inverse @ vector
        widths = np.sqrt(np.einsum("ad,de,ae->a", features, inverse, features))
        pulled = 1 / math.sqrt(np.linalg.eigvalsh(matrix)[0])
        radius = pulled + 0.5 * math.sqrt(2 * math.log(20) + np.linalg.slogdet(matrix)[1])
        arm = int(np.argmax(features @ theta + radius * widths))
        phi = features[arm]
        matrix += np.outer(phi, phi)
        vector += phi * (generator.random() < means[arm])
        regret += means.max() - means[arm]
    return regret


def rounds_per_second() -> tuple[float, float]:
    """Of all instances together, and of the loop."""
    world = FixedArms.drawn(50, arms=100, dimension=5, generator=np.random.default_rng(1))
    policy = LinUCB(setting=LinearSetting(users=2000, dimension=5, nonnegative=True))
    started = time.process_time()
    run_linear_bandit(policy, world, seed=1)
    fast = 2000 * 50 / (time.process_time() - started)
    started = time.process_time()
    plain_loop(world.features[0], world.means[0], 2000, np.random.default_rng(1))
    return fast, 2000 / (time.process_time() - started)


def test_twelve_times_a_plain_loop() -> None:
    # Others keep the machine busy: one quiet moment shows that it can be.
    for _ in range(6):
        fast, plain = rounds_per_second()
        if fast >= 12 * plain:
            return
    raise AssertionError(f"{fast:,.0f} rounds a second against {plain:,.0f}")
