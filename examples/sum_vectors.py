"""One step of learning from 2,000 people's gradients, each clipped, none of them seen by anybody."""

import numpy as np

from shuffledp import Privacy, RandomBits, VectorSum, simulate

users, dimension = 2_000, 10
generator = np.random.default_rng(1)
weights = np.linspace(-1, 1, dimension)
features = generator.normal(size=(users, dimension))
answers = features @ weights + generator.normal(size=users)
gradients = -2 * answers[:, np.newaxis] * features  # of the squared error, at weights 0

plan = VectorSum.plan(users=users, privacy=Privacy(epsilon=1, delta=1e-6), dimension=dimension, radius=10)
estimate = simulate(plan, gradients, bits=RandomBits.secure(), clip=True)
step, wanted = -estimate.value / users, weights / np.linalg.norm(weights)

print(f"{plan.method}: each sends {plan.messages_per_user_max} messages of {plan.bits_per_message} bits")
print(f"{estimate.clipped} gradients were longer than {plan.radius:g} and were shortened")
print(f"mean gradient, every number to ± {plan.standard_error / users:.3f}: {(estimate.value / users).round(2)}")
print(f"cosine between a step against it and the true weights: {step @ wanted / np.linalg.norm(step):.3f}")
