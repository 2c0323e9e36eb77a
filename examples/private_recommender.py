"""Learn what suits whom, from shuffled batches, where every visitor is offered something new."""

import numpy as np

from shuffledp import Privacy
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FreshArms

setting = LinearSetting(users=10_000, dimension=4, nonnegative=True)
world = FreshArms.drawn(8, arms=20, dimension=4, generator=np.random.default_rng(1))
_, chances = world.offer(1000, np.random.default_rng(2))
blind = float((chances.max(axis=-1) - chances.mean(axis=-1)).mean()) * setting.users
print(f"20 new offers a visit: one at random loses {blind:,.0f} clicks in {setting.users:,} visits")

for name in ("linucb", "concurrent-4", "shuffle-vec", "ldp"):
    policy = linear_policy(name, setting, Privacy(epsilon=1, delta=1e-3))
    regret = run_linear_bandit(policy, world, seed=1)
    guarantee = policy.guarantee()
    who = f"{guarantee.model} privacy, delta {guarantee.delta:.2g}" if guarantee.privacy else "no privacy"
    print(f"{name:>12} loses {regret.mean:6,.0f} ± {regret.standard_error:3.0f} ({who})")
