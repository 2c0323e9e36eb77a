"""Theorem 28 of [004] as a run: a curator's sum of bits in two rounds of shuffling."""

import numpy as np

from shuffledp.privacy import Privacy
from shuffledp.protocols.masked_sum import MaskedSum
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below
from shuffledp.simulation.masked_sum import MaskedSumRun, run_masked_sum


def secure_sum(users: int, privacy: Privacy, seed: int) -> tuple[MaskedSum, MaskedSumRun]:
    """The plan of a masked sum, and one run of it on random bits.

    Args:
        users: how many take part.
        privacy: the target.
        seed: another number, other coins, values and noise.
    """
    plan = MaskedSum.plan(users=users, privacy=privacy)
    people, protocol = RandomBits.seeded(seed).spawn(2)
    values = uniform_below(2, users, bits=people).astype(np.int64)
    return plan, run_masked_sum(plan, values, bits=protocol)
