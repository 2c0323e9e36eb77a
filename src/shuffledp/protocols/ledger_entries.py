"""From a plan to an entry of the ledger."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.ledger import Entry
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.recorded import pair_document
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.errors import ParameterError
from shuffledp.protocols.plan import Plan

# Terms of delta that are (1 + e^epsilon) times a distance from what the pair describes, or the probability of
# an event outside of which the pair dominates; either is covered by what accounting.spending adds.
_DISTANCES = {"transport", "sampling", "cut-off", "rounding", "wrap-around", "masks", "smoothing"}


def entry_of(plan: Plan, time: datetime) -> Entry:
    """What running this plan once costs the population, as data that can be composed.

    The plan's pair is kept if it can be written down and all of delta beyond it is distance or failure;
    otherwise only the plan's (epsilon, delta) is, which is safe for any mechanism.

    Args:
        plan: what is run.
        time: when, with a time zone.

    Returns:
        The entry, which `Ledger.spend` takes.

    Raises:
        ParameterError: the time has no time zone.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=60, privacy=Privacy(1, 1e-6), method="coins")
    >>> entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC)).pair.describe()
    'P = Z, Q = Z + 1, where Z ~ Binomial(120, 0.5)'
    """
    if time.tzinfo is None:
        raise ParameterError("time", time.isoformat(), "must have a time zone", "pass datetime.now(UTC)")
    guarantee = plan.guarantee()
    claim_only = Entry.of_claim(
        time=time.astimezone(UTC).isoformat(timespec="seconds"),
        fingerprint=plan.fingerprint,
        users=plan.users,
        description=f"{plan.protocol} by {plan.method}",
        claim=plan.privacy,
    )
    return with_pair(claim_only, plan.charged_pair, guarantee.terms)


def with_pair(claim_only: Entry, pair: DominatingPair, terms: Sequence[DeltaTerm]) -> Entry:
    """The entry with its pair, if that can be written down and all of delta beyond it is distance or failure.

    Args:
        claim_only: the entry of the bare claim, which is kept otherwise.
        pair: what dominates all that is seen of one user.
        terms: every summand of delta at the claim's epsilon.
    """
    privacy, names = claim_only.claim, {term.name for term in terms}
    is_claim = type(pair) is ClaimPair or pair_document(pair) is None
    if is_claim or not {"noise"} <= names <= {"noise"} | _DISTANCES:
        return claim_only
    beyond = any(term.value > 0 for term in terms if term.name in _DISTANCES)
    # A distance from a pair that is not pure costs the pair's own delta once more: see accounting.spending; so
    # does what the pair dominates up to.
    again = sum(term.value for term in terms if term.name == "cut-off")
    extra = sum(term.value for term in terms) + again if beyond else 0.0
    # What the pair's own composition loses to its grid may be more than a very small delta.
    covered = max(extra, pair.delta(privacy.epsilon)) <= privacy.delta
    return claim_only if not covered else replace(claim_only, pair=pair, extra_delta=extra)
