"""The families of everything by group."""

from shuffledp.protocols.derived import DerivedFamily
from shuffledp.protocols.family import CATEGORIES
from shuffledp.protocols.grouped.histogram import GroupedHistogram
from shuffledp.protocols.grouped.statistics import GROUPS, RANGE, GroupedCount, GroupedMean, GroupedRate, GroupedSum

GroupedCountFamily = DerivedFamily.by(
    GroupedCount, "How many people of each group of a public list, --groups, have the value 1.", GROUPS
)
GroupedRateFamily = DerivedFamily.by(
    GroupedRate,
    "Which part of each group's people has the value 1, for groups of a public list, --groups.",
    GROUPS,
    variants={
        **dict.fromkeys(("low", "high"), "shuffledp.protocols.grouped.moments:GroupedMomentsFamily"),
        "at_most": "shuffledp.protocols.grouped.moments:GroupedRowsRateFamily",
        **dict.fromkeys(
            ("low+at_most", "high+at_most"), "shuffledp.protocols.grouped.moments:GroupedRowsMomentsFamily"
        ),
    },
)
GroupedSumFamily = DerivedFamily.by(
    GroupedSum, "The sum of the numbers of each group's people, for groups of a public list, --groups.", GROUPS, *RANGE
)
GroupedMeanFamily = DerivedFamily.by(
    GroupedMean,
    "The mean of the numbers of each group's people, for groups of a public list, --groups.",
    GROUPS,
    *RANGE,
)
GroupedHistogramFamily = DerivedFamily.by(
    GroupedHistogram,
    "How many people of each group of a public list, --groups, have each category.",
    GROUPS,
    CATEGORIES,
)
