"""How many of 10,000 people said yes, without knowing who: the README's five lines."""

import numpy as np

from shuffledp import BinarySum, Privacy, RandomBits, simulate

plan = BinarySum.plan(users=10_000, privacy=Privacy(epsilon=1, delta=1e-6))
answers = np.arange(10_000) % 3 == 0
estimate = simulate(plan, answers, bits=RandomBits.secure())

print(f"{estimate}; the truth is {answers.sum():,}")
