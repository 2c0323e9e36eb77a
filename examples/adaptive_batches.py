"""Concurrent shufflers whose next batch depends on what was released: short ones when the rate has changed."""

import numpy as np

from shuffledp import Privacy, RandomBits, ShufflerPool
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.shuffle.shuffler import BatchSpec

# A user is in at most two batches, one on each shuffler: half of epsilon and delta for either.
HALF = Privacy(epsilon=0.5, delta=5e-7)
PLANS = {size: BinarySum.plan(users=size, privacy=HALF, method="coins") for size in (200, 1000, 2000)}

stream = (np.random.default_rng(1).random(6000) < np.repeat([0.2, 0.7, 0.2], 2000)).astype(np.uint8)
pool = ShufflerPool(2, bits=RandomBits.secure())
open_plans, rate = {}, 0.5
for bit in stream:
    for shuffler in pool.idle:
        # The long shuffler always takes 2000; the short one 200 where the last estimate surprised, else 1000.
        size = 2000 if shuffler == 0 else (200 if abs(rate - 0.5) > 0.15 else 1000)
        open_plans[shuffler] = PLANS[size]
        pool.open(shuffler, BatchSpec(size, PLANS[size].messages_per_user_max))
    for shuffler in pool.active:
        plan = open_plans[shuffler]
        released = pool.accept(shuffler, plan.randomize(np.array([bit]), bits=RandomBits.secure()))
        if released is not None:
            estimate = plan.analyze(released)
            if shuffler == 1:
                rate = estimate.value / plan.users
            print(f"shuffler {shuffler}: {plan.users} users, rate {estimate.value / plan.users:.2f}")
