"""The batch of one arm: its plan, and what all batches together protect.

Each user's reward goes into one batch, so batches compose in parallel: two neighbours differ in one batch, and
everything that is later asked of others is computed from what that batch showed. Users who come up to M times, never
twice in one batch, are in up to M batches, whose exact composition is the guarantee ([002] Assumption 4.1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

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

METHODS = (Shares.method, Coins.method, Response.method)
PAPER_METHODS = (Coins.method,)
"""Methods that the paper's constants are for."""
MOST_VISITS = 1000

_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_ANY_USERS = 1000


def check_method(name: str, method: Any) -> str:
    """A binary sum whose error has a simple law."""
    if not isinstance(method, str) or method not in METHODS:
        raise ParameterError(name, method, f"must be {', '.join(METHODS)}", "shares has the least noise")
    return method


@lru_cache(maxsize=512)
def batch_plan(
    users: int, privacy: Privacy, method: str, honest_fraction: float, constants: Constants
) -> BinarySumPlan:
    """The plan of a batch of this size; cached, as all policies of a simulation share them."""
    asked: dict[str, Any] = {"honest_fraction": honest_fraction, "constants": constants}
    return BinarySum.plan(users=users, privacy=privacy, method=check_method("method", method), **asked)


@lru_cache(maxsize=64)
def privacy_of_one_visit(privacy: Privacy, method: str, visits: int) -> Privacy:
    """The largest epsilon of one batch with which so many batches together are private.

    A pair that batches of all sizes show, as those of shares do, is composed; of other methods only the claim is.

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
    return replace(entry, extra_delta=plan.privacy.delta) if plan.has_one_pair else entry.claim_only()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsGuarantee:
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


def guarantee_of(plans: Sequence[BinarySumPlan], privacy: Privacy, visits: int) -> ArmsGuarantee:
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
    return ArmsGuarantee(
        shuffle=privacy,
        proved_delta=proved,
        joint=privacy,
        local_epsilon=visits * max(known) if complete else None,
        local_delta=visits * max(plan.local_delta or 0.0 for plan in plans) if complete else None,
        visits=visits,
        because=because,
    )
