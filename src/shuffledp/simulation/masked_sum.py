"""Both rounds of a masked sum in one process: keys through the shuffler, then masked values."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.estimates import Estimate
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSumRun:
    """What happened: messages of each round, the keys, and the sum."""

    messages_round_1: int
    messages_round_2: int
    pairs: int
    fewest_key_bits: int
    keys_agree: bool
    estimate: Estimate
    truth: int
    seconds: float

    @property
    def error(self) -> float:
        """The estimate less the truth."""
        return self.estimate.value - self.truth


def run_masked_sum(plan: Any, values: ArrayLike, *, bits: RandomBits) -> MaskedSumRun:
    """Two rounds over these values, message by message.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.protocols.masked_sum import MaskedSum
    >>> plan = MaskedSum.plan(users=10, privacy=Privacy(1, 1e-6))
    >>> run = run_masked_sum(plan, [1] * 7 + [0] * 3, bits=RandomBits.seeded(1))
    >>> run.keys_agree, run.messages_round_1, run.messages_round_2, abs(run.error) < 30
    (True, 17730, 10, True)
    """
    started = time.perf_counter()
    true = plan.check_values(values)
    clients, shuffler = bits.spawn(2)
    shuffles = Shuffler(bits=shuffler)
    agreement = plan.agreement

    coins = agreement.toss(bits=clients)
    shuffles.open(BatchSpec(plan.users, agreement.messages_per_user))
    shuffles.accept(agreement.reports(coins))
    first = shuffles.close()
    useful = agreement.useful(first)
    keys = agreement.keys(coins, useful)

    shuffles.open(BatchSpec(plan.users, 1))
    shuffles.accept(plan.mask(true, keys, bits=clients))
    second = shuffles.close()
    low, high = np.triu_indices(plan.users, 1)
    return MaskedSumRun(
        messages_round_1=len(first),
        messages_round_2=len(second),
        pairs=agreement.pairs,
        fewest_key_bits=int(useful.sum(axis=1).min()),
        keys_agree=bool((keys[low, high - 1] == keys[high, low]).all()),
        estimate=replace(plan.analyze(second), simulated=not bits.is_secure),
        truth=int(true.sum()),
        seconds=time.perf_counter() - started,
    )
