"""A linear bandit with every message made: users choose, randomize, their batches are shuffled, analyzed and told."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.learn.steps import compute
from shuffledp.protocols.learner import Cohort
from shuffledp.protocols.runner import ask_and_tell
from shuffledp.randomness import RandomBits

Floats = NDArray[np.float64]
Offer = Callable[[int], tuple[Floats, Callable[[NDArray[np.intp]], Floats]]]
"""The arms that so many users are offered, (users, arms, dimension), and the rewards of the arms that they choose."""


def run_with_messages(policy: CountedPolicy, offer: Offer, *, bits: RandomBits) -> Iterator[LinearState]:
    """Run a policy, with every message made, permuted and read.

    Args:
        policy: a policy whose sums are made from shuffled batches.
        offer: called with a number of users: the arms that they are offered, and a function from the arms that they
            choose to their rewards.
        bits: where all randomness of clients and shufflers comes from.

    Returns:
        The state after every cohort.
    """

    def rounded(cohort: Cohort, first: int, users: int, clients: RandomBits) -> NDArray[np.int64]:
        # Rounded once: all of a user's batches get the same steps.
        return policy.prepare(compute(cohort.step, offer(users), bits=clients), first, bits=clients)

    return ask_and_tell(policy, policy.shufflers, rounded, policy.setting.users, bits=bits)
