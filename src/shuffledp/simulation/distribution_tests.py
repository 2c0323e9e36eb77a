"""Run a distribution test on data, message by message."""

from numpy.typing import ArrayLike

from shuffledp.protocols.distribution_test.base import DistributionTest, TestedClaim
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler


def simulate_test(test: DistributionTest, values: ArrayLike, *, bits: RandomBits) -> TestedClaim:
    """The verdict on these users' categories: every message is made, permuted and read.

    >>> import numpy as np
    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.protocols.distribution_test import UniformityTest
    >>> test = UniformityTest.plan(users=2000, privacy=Privacy(1, 1e-6), categories=20, distance=0.25)
    >>> simulate_test(test, np.arange(2000) % 5, bits=RandomBits.secure()).rejected
    True
    """
    codes = test.check_values(values)
    test.check_reports(codes.size)
    clients, shuffling = bits.spawn(2)
    shuffler = Shuffler(bits=shuffling)
    shuffler.open(BatchSpec(test.users, test.messages_per_user_max))
    shuffler.accept(test.randomize(codes, bits=clients))
    return test.estimate(test.tally(shuffler.close()), simulated=not bits.is_secure)
