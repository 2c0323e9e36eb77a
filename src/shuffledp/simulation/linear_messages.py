"""A linear bandit with every message made: users choose, randomize, their batches are shuffled, analyzed and told."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.bandits.linear.confidence import LinearModel
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.pool import ShufflerPool
from shuffledp.shuffle.shuffler import BatchSpec

Floats = NDArray[np.float64]
Play = Callable[[LinearModel, int], tuple[Floats, Floats]]
"""What so many users who were sent this model do: the chosen arms' features, a row a user, and their rewards."""


def run_with_messages(policy: CountedPolicy, play: Play, *, bits: RandomBits) -> Iterator[LinearState]:
    """The state after every cohort."""
    clients, shuffling = bits.spawn(2)
    pool = ShufflerPool(policy.plan.shufflers_used, bits=shuffling)
    now = policy.start()
    while now.users < policy.setting.users:
        cohort = policy.ask(now)
        features, rewards = policy.setting.joint.check(*play(cohort.model, cohort.users))
        # Rounded once: all of a user's batches get the same steps.
        steps = policy.plan.domain.to_steps(policy.setting.joint.pack(features, rewards), bits=clients)
        closed = {}
        for batch in cohort.batches:
            mechanism = batch.mechanism
            if batch.opens:
                pool.open(batch.level - 1, BatchSpec(mechanism.users, mechanism.messages_max))
            released = pool.accept(batch.level - 1, mechanism.randomize(steps, batch.first_seat, bits=clients))
            if released is not None:
                closed[batch.level] = mechanism.read(mechanism.tally(released))[0]
        now = policy.tell(now, cohort.users, closed)
        yield now
