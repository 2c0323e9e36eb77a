"""What no bound over the whole horizon can be below: the quantile of the one estimate that is made of most noises.

A bound that was measured by simulation is in a plan's file as its maker wrote it. It cannot be recomputed while a file
is read, but what one estimate alone passes too often is refuted in no time.
"""

import numpy as np

from shuffledp.continual.bounds import sum_tails
from shuffledp.continual.combined_bound import CombinedLaws
from shuffledp.protocols.sums.noise import BatchNoise
from shuffledp.schedules.prefixes import PrefixSchedule

# Tails are off by no more than this: what transforms round, and as much again.
_DOUBT = 2e-12


def least_completed_bound(noise: BatchNoise, schedule: PrefixSchedule, reached: int, failure: float) -> int:
    """The least whole number that the deepest estimate passes with at most this probability.

    Args:
        noise: of a batch, with nothing above what the plan counts on.
        schedule: which batches make which estimate.
        reached: slots that are over when everybody has come.
        failure: the probability.

    >>> from shuffledp.protocols.sums.noise import CoinNoise
    >>> from shuffledp.schedules.combinatorial import combinatorial_schedule
    >>> least_completed_bound(CoinNoise(80), combinatorial_schedule(4, 2, 10), 14, 0.05)
    18
    """
    deepest = int(schedule.depths[: reached + 1].max())
    if deepest == 0:
        return 0
    tails = sum_tails(noise.law(), deepest)
    if tails.width > 1 or tails.stride > 1:
        # Very wide noise has only upper bounds of its tails.
        return 0
    # Sums of fewer noises have smaller tails: a group's largest number that is not above the deepest.
    column = int(np.searchsorted(tails.counts, deepest, side="right")) - 1
    return int(np.argmax(tails.tails[:, column] - _DOUBT <= failure))


def least_combined_bound(
    laws: CombinedLaws, budget: int, schedule: PrefixSchedule, reached: int, failure: float
) -> int:
    """As `least_completed_bound`, with second opinions: of the estimate one slot after the top level's batches."""
    ends = schedule.ends_by_level[-1]
    # The last of them that has a slot after it which is over, too.
    before = int(np.searchsorted(ends, reached))
    return laws.prefix_quantile(budget, before, failure)
