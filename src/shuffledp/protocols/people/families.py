"""The families for people who have several rows: counts and sums; histograms are in their own file."""

from typing import Any

from shuffledp.protocols.derived import DerivedFamily
from shuffledp.protocols.family import AT_MOST, Family, few_a_user
from shuffledp.protocols.people.count_bits import RepeatedCountBits
from shuffledp.protocols.people.count_shares import RepeatedCountShares
from shuffledp.protocols.people.numbers import ROW_RANGE
from shuffledp.protocols.people.sum import RepeatedSumPlan

RepeatedCount: Family[Any] = Family.of(
    "repeated-count",
    "How many rows are a yes, where a person has several and at most --at-most of them count.",
    RepeatedCountBits,
    RepeatedCountShares,
    domain=(AT_MOST,),
    few_messages=few_a_user,
)
RepeatedSumFamily = DerivedFamily.by(
    RepeatedSumPlan,
    "The sum over all rows, where a person has several and at most --at-most of them count.",
    *ROW_RANGE,
    AT_MOST,
)
