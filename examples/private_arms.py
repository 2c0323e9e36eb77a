"""Which of four buttons 100,000 people like best: found while they come, with nobody's click known."""

import numpy as np

from shuffledp import Privacy, RandomBits
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.simulation.arms import play

liked = [0.30, 0.42, 0.25, 0.33]
world = np.random.default_rng(1)
policy = DoublingBatches(arms=4, horizon=100_000, privacy=Privacy(epsilon=1, delta=1e-6), growth=1.25)


def clicks(button: int, users: int) -> np.ndarray:
    return world.random(users) < liked[button]


# Every message is made, shuffled and read; fast=True draws the same estimates from their own law.
state = play(policy, clicks, bits=RandomBits.secure())

guarantee = policy.guarantee()
print(f"private with epsilon {guarantee.shuffle.epsilon:g}, delta {guarantee.shuffle.delta:g} for everybody")
for button, (mean, users) in enumerate(zip(state.means, state.counts, strict=True)):
    verdict = "left" if button in state.active else "dropped"
    print(f"button {button}: {mean:.3f} from {users:>6,} reports, in truth {liked[button]:.2f}: {verdict}")
regret = sum(users * (max(liked) - rate) for users, rate in zip(state.counts, liked, strict=True))
print(f"the best is {policy.best(state)}; {regret:,.0f} clicks were missed while that was not known")
