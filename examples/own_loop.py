"""The three parties apart, as a service would run them: clients, a shuffler, an analyzer."""

import numpy as np

from shuffledp import BinarySum, Privacy, RandomBits, Shuffler
from shuffledp.shuffle.shuffler import BatchSpec

plan = BinarySum.plan(users=500, privacy=Privacy(epsilon=1, delta=1e-6), method="coins")
shuffler = Shuffler(bits=RandomBits.secure())
shuffler.open(BatchSpec(plan.users, plan.messages_per_user_max))

for person in range(plan.users):
    uses_the_feature = person % 5 == 0
    device = RandomBits.secure()
    shuffler.accept(plan.randomize(np.array([uses_the_feature]), bits=device))

print(plan.analyze(shuffler.close()))
