"""Train a private classifier: each person is asked once, sends a few shuffled messages, and nobody sees a row."""

import numpy as np

from shuffledp.learn import ShuffleLogisticRegression

rng = np.random.default_rng(1)
X = rng.uniform(0, 10, (50_000, 4))
y = X @ [1.0, -0.5, 0.25, 0.0] - 4 + rng.logistic(size=50_000) > 0

model = ShuffleLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(0, 10), classes=[False, True])
model.fit(X[:40_000], y[:40_000])
print(f"right on {model.score(X[40_000:], y[40_000:]):.1%} of 10,000 others, by {model.solver_.name}")
print(f"the commoner class would be right on {max(y.mean(), 1 - y.mean()):.1%}")
print(f"guarantee: {model.guarantee_}")
