"""What a fitted estimator promises: the solver's guarantee, and what else people were asked or shown by."""

from collections.abc import Sequence
from dataclasses import replace

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.clipping import ClipCounts
from shuffledp.learn.optimize import OptimizationGuarantee, Solver

_READ_FROM_LABELS = (
    "Which classes there are was read from people's labels and is not covered: "
    "all this holds between rows of these classes. Declare classes to cover it."
)
_ASKED_ELSE = (
    "{:,} other people were asked only whether something of theirs had to be clipped, "
    "by counts of {:,} of them with the same epsilon and delta: nobody was asked both."
)
_NEW_PEOPLE = (
    "So far {:,} people in {:,} calls of partial_fit, each call of other people: "
    "somebody who was in two of them has spent epsilon and delta twice."
)


def guarantee_of(solver: Solver, counts: ClipCounts, unprotected: Sequence[str]) -> OptimizationGuarantee:
    """What holds for every person of one fit.

    Args:
        solver: what asked for gradients.
        counts: what asked others what was clipped.
        unprotected: what was read from data without noise.

    Returns:
        The guarantee of the part that proves least.
    """
    guarantee = solver.guarantee()
    because = [guarantee.because]
    privacy = guarantee.privacy
    if counts.plan is not None and privacy is not None:
        terms = counts.plan.delta_terms(privacy.epsilon, counts.plan.honest_users)
        if sum(term.value for term in terms) > privacy.delta:
            raise ParameterError("delta", privacy.delta, "is passed by the count of what was clipped", "count nobody")
        if sum(term.value for term in terms) > guarantee.delta:
            guarantee = replace(guarantee, terms=terms, pair=counts.plan.pair(counts.plan.honest_users))
        messages = max(guarantee.messages_per_user, counts.plan.messages_per_user_max)
        guarantee = replace(guarantee, messages_per_user=messages)
        because.append(_ASKED_ELSE.format(counts.users, counts.plan.users))
    if unprotected:
        because.append(_READ_FROM_LABELS)
    return replace(guarantee, because=" ".join(because))


def over_calls(
    before: OptimizationGuarantee | None, now: OptimizationGuarantee, users: int, calls: int
) -> OptimizationGuarantee:
    """What holds after several calls of `partial_fit`, whose people all differ: what the call that proves least proves.

    All calls promise the same epsilon and delta.

    Args:
        before: what held before; None in the first call.
        now: what holds for the people of the last call.
        users: people of all calls.
        calls: how many there were.
    """
    first = now if before is None or now.delta >= before.delta else before
    text = now.because
    return replace(first, because=f"{text} {_NEW_PEOPLE.format(users, calls)}", history=now.history)
