"""The batch of one arm: its plan, the error of its sum, draws of that error, and what all batches together protect.

Each user's reward goes into one batch, so batches compose in parallel: two neighbours differ in one batch, and
everything that is later asked of others is computed from what that batch showed. Users who come up to M times, never
twice in one batch, are in up to M batches, whose exact composition is the guarantee ([002] Assumption 4.1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.accounting.ledger import Entry
from shuffledp.accounting.spending import Spending
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.binary_sum.response import Response
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.protocols.fields import Constants
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.laws import sample_polya_difference

METHODS = (Shares.method, Coins.method, Response.method)
MOST_VISITS = 1000

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_ANY_USERS = 1000


@lru_cache(maxsize=512)
def batch_plan(
    users: int, privacy: Privacy, method: str, honest_fraction: float, constants: Constants
) -> BinarySumPlan:
    """The plan of a batch of this size; cached, as all policies of a simulation share them."""
    if method not in METHODS:
        raise ParameterError("method", method, f"must be {', '.join(METHODS)}", "shares has the least noise")
    return BinarySum.plan(
        users=users, privacy=privacy, method=method, honest_fraction=honest_fraction, constants=constants
    )


def batch_error(plan: BinarySumPlan) -> tuple[float, IntegerLaw | None]:
    """The squared ranges of a batch's rewards, added up, and the law of what is added to their sum.

    A randomized response is a bit of its own with another mean: no noise, but a wider range.
    """
    if isinstance(plan, Response):
        return plan.users / (1 - plan.random_probability) ** 2, None
    if isinstance(plan, Shares | Coins):
        return float(plan.users), plan.noise_law
    raise ParameterError("method", plan.method, f"must be {', '.join(METHODS)}", "its error has no simple law")


def sample_sums(plan: BinarySumPlan, batches: int, ones: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.float64]:
    """What so many batches' estimates add up to where so many rewards in all are 1, without messages."""
    if isinstance(plan, Shares):
        shape = Fraction(plan.users, plan.honest_users) * batches
        noise = sample_polya_difference(shape, plan.ratio, ones.size, bits=bits)
        return np.asarray(ones + noise.reshape(ones.shape), dtype=np.float64)
    if isinstance(plan, Coins):
        law = plan.noise_law
        drawn = binomial(batches * law.trials, law.p, ones.size, bits=bits).reshape(ones.shape)
        return np.asarray(ones + drawn - batches * law.mean)
    if isinstance(plan, Response):
        users = batches * plan.users
        lost, gained = (_binomials(counts, plan.lie, bits) for counts in (ones, users - ones))
        answers = ones + gained - lost
        return np.asarray((answers - users * plan.lie) / (1 - plan.random_probability))
    raise ParameterError("method", plan.method, f"must be {', '.join(METHODS)}", "its error has no simple law")


def _binomials(trials: NDArray[np.int64], p: float, bits: RandomBits) -> NDArray[np.int64]:
    """One draw of Bin(trials[i], p) for each i; those with equal trials at once."""
    drawn = np.empty(trials.shape, dtype=np.int64)
    for number in np.unique(trials):
        here = trials == number
        drawn[here] = binomial(int(number), p, int(np.count_nonzero(here)), bits=bits)
    return drawn


@lru_cache(maxsize=64)
def privacy_of_one_visit(privacy: Privacy, method: str, visits: int) -> Privacy:
    """The largest epsilon of one batch with which so many batches together are private.

    Shares show the same pair in batches of all sizes, which is composed; of other methods only the claim is.

    >>> round(privacy_of_one_visit(Privacy(1, 1e-6), "shares", 50).epsilon, 4)  # simple composition: 0.02
    0.0335
    """
    if visits == 1:
        return privacy
    delta = privacy.delta / (2 * visits)

    def fits(epsilon: float) -> bool:
        claim = Privacy(epsilon, delta)
        return Spending([_entry(batch_plan(_ANY_USERS, claim, method, 1.0, "exact"))] * visits).fits(privacy)

    low, high = privacy.epsilon / visits * (1 - 1e-9), privacy.epsilon
    while high - low > 1e-3 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Privacy(low, delta)


def _entry(plan: BinarySumPlan) -> Entry:
    entry = entry_of(plan, _ANY_TIME)
    # All of its delta, whatever the size of the batch.
    return replace(entry, extra_delta=plan.privacy.delta) if isinstance(plan, Shares) else entry.claim_only()


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditGuarantee:
    """What a bandit promises to each user about the user's rewards, all of it from plans and the accountant.

    `shuffle` is of what the analyzer sees; `proved_delta` what the accountant finds at that epsilon, at most the
    claim's. `joint` is of everything that all other users are shown together: they are only told arms, and arms are
    computed from what the analyzer sees. Users who pool the noise that they added themselves know more than they were
    shown: against them only the noise of others protects, as much as `honest_fraction` asked for. `local_epsilon` is
    what a user's own messages satisfy with the shuffler on the analyzer's side; None where nothing.
    """

    shuffle: Privacy
    proved_delta: float
    joint: Privacy
    local_epsilon: float | None
    local_delta: float | None
    visits: int
    because: str


def guarantee_of(plans: Sequence[BinarySumPlan], privacy: Privacy, visits: int) -> BanditGuarantee:
    """The guarantee of users who are in at most `visits` of batches by these plans."""
    if visits == 1:
        proved = max(plan.guarantee().delta for plan in plans)
        because = "a user is in one batch; batches are disjoint, and later ones depend on it only by what it showed"
    else:
        # Equal claims: any of the plans stands for all, as nothing that depends on the size is used.
        proved = Spending([_entry(plans[0])] * visits).delta(privacy.epsilon)
        because = f"a user is in at most {visits} batches, once in each, whose exact composition this is"
    local = [plan.local_epsilon for plan in plans]
    known = [epsilon for epsilon in local if epsilon is not None]
    complete = len(known) == len(plans)
    return BanditGuarantee(
        shuffle=privacy,
        proved_delta=proved,
        joint=privacy,
        local_epsilon=visits * max(known) if complete else None,
        local_delta=visits * max(plan.local_delta or 0.0 for plan in plans) if complete else None,
        visits=visits,
        because=because,
    )
