"""Bounded sums: the sum of reals in a known range, by several methods."""

from typing import Any

from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.bounded_sum.bits import BoundedBits
from shuffledp.protocols.bounded_sum.shares import BoundedShares
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.family import RANGE, Family, few_a_user
from shuffledp.references.comparison import GAUSSIAN, gaussian_document


def _gaussian(*, users: int, privacy: Privacy, low: float, high: float) -> dict[str, Any]:
    """P_Amp of [002] in numbers."""
    check_range(low, high)
    given = {"low": low, "high": high}
    return gaussian_document(
        "bounded-sum", users=users, privacy=privacy, dimension=1, radius=(high - low) / 2, domain=given
    )


BoundedSum: Family[BoundedSumPlan] = Family.of(
    "bounded-sum",
    "The sum of everybody's number, each between --low and --high.",
    BoundedBits,
    BoundedShares,
    domain=RANGE,
    few_messages=few_a_user,
    comparisons={GAUSSIAN: _gaussian},
    variants={
        "at_most": "shuffledp.protocols.people.families:RepeatedSumFamily",
        "groups": "shuffledp.protocols.grouped.families:GroupedSumFamily",
        "at_most+groups": "shuffledp.protocols.grouped.rows:GroupedRowsSumFamily",
    },
)
