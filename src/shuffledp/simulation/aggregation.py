"""A plan for a shuffler, run where there is only an aggregator."""

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from shuffledp.errors import ParameterError
from shuffledp.protocols.aggregation import ShufflerFromAggregator, aggregate
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.randomness import RandomBits


def simulate_by_aggregator(plan: RoundPlan, values: ArrayLike, *, bits: RandomBits) -> Any:
    """The estimate of one round in which the users' messages are only ever added up.

    Its law is that of `simulate`, and so is what the adversary sees. Meant for small alphabets: a number has
    a digit for every message that could be sent.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=200, privacy=Privacy(1, 1e-6), method="poisson-bits")
    >>> estimate = simulate_by_aggregator(plan, [1] * 50 + [0] * 150, bits=RandomBits.seeded(1))
    >>> abs(estimate.value - 50) < 40
    True
    """
    reports = plan.randomize(values, bits=bits)
    if reports.labels is not None:
        raise ParameterError("plan", plan.protocol, "must have messages without labels", "take a sum of one number")
    shuffler = ShufflerFromAggregator(
        alphabet_size=plan.alphabet_size, largest_count=plan.users * plan.messages_per_user_max
    )
    total = aggregate(shuffler.encode(reports), shuffler.modulus)
    estimate = plan.analyze(shuffler.batch(total, reports=len(reports), bits=bits))
    return replace(estimate, simulated=not bits.is_secure)
