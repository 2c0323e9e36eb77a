"""Run a plan on data, message by message or by the estimate's own law."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.protocols.learner import Cohort
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.runner import Progress, ask_and_tell
from shuffledp.randomness import RandomBits


def simulate(
    plan: Plan,
    values: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = False,
    clip: bool = False,
    progress: Progress | None = None,
) -> Any:
    """The answer of a plan over these values, in one process.

    Args:
        plan: any plan; a running sum answers with its estimate at the end.
        values: one entry or row for each of the plan's users, encoded (`plan.encode`).
        bits: where all randomness comes from; seeded bits label the answer a simulation.
        fast: draw the answer from its own law instead of making, permuting and reading every message.
        clip: bring values into the plan's domain and count them, where they would be refused.
        progress: called with the number of users who have reported so far.

    Returns:
        The plan's estimate, with its error; it carries the plan.

    Raises:
        ParameterError: values outside the domain, or of another number of users.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=1000, privacy=Privacy(1, 1e-6))
    >>> estimate = simulate(plan, [1] * 300 + [0] * 700, bits=RandomBits.secure())
    >>> abs(estimate.value - 300) < 30
    True
    """
    array, clipped = plan.clip_values(values) if clip else (np.asarray(values), 0)
    if fast:
        estimate = plan.sample_estimate(array, bits=bits)
    else:
        estimate = _by_messages(plan, plan.check_values(array), bits, progress)
    labelled = estimate.labelled(simulated=not bits.is_secure, clipped=clipped)
    # An answer knows its plan, unless it is of a kind of another package that does not.
    return labelled.made_by(plan) if hasattr(labelled, "made_by") else labelled


def _by_messages(plan: Plan, array: Any, bits: RandomBits, progress: Progress | None) -> Any:
    plan.check_reports(len(array))
    learner = plan.learner()
    ordered: list[Any] = []

    def prepared(cohort: Cohort, first: int, users: int, clients: RandomBits) -> Any:
        if not ordered:
            ordered.append(plan.in_order(array, bits=clients))
        positions = np.arange(first, first + users)
        return plan.prepare(ordered[0][first : first + users], bits=clients, positions=positions)

    states = ask_and_tell(learner, plan.open_batches, prepared, len(array), bits=bits, progress=progress)
    *_, last = states
    return learner.estimate(last)
