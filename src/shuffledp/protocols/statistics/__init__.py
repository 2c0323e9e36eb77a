"""Means, variances and weighted means: what bounded and vector sums say, divided, with error bars.

No privacy is argued here: a plan of BoundedSum or VectorSum is asked once, and what is made of its answer
is a post-processing. The number of users is public, since neighbours replace a value and keep the number.

Moments and weighted means are one vector sum with noise like a Gaussian's. For two numbers that beats two bounded
sums at half the budget each by the method bits, but not by shares, whose noise is Laplace's: see
docs/howto/means-and-variances.md.
"""

from shuffledp.protocols.derived import DerivedFamily
from shuffledp.protocols.family import RANGE, DomainParameter
from shuffledp.protocols.statistics.mean import Mean
from shuffledp.protocols.statistics.moments import Moments, MomentsEstimate
from shuffledp.protocols.statistics.weighted import WeightedMean, WeightedMeanEstimate

_WEIGHT = DomainParameter(
    "largest_weight",
    way_out="say how much one user may weigh at most",
    meaning="the largest weight that a user may have.",
)

MeanFamily = DerivedFamily.by(
    Mean,
    "The mean of everybody's number, each between --low and --high.",
    *RANGE,
    variants={
        "at_most": "shuffledp.protocols.people.mean:RepeatedMeanFamily",
        "groups": "shuffledp.protocols.grouped.families:GroupedMeanFamily",
        "at_most+groups": "shuffledp.protocols.grouped.moments:GroupedRowsMeanFamily",
    },
)
MomentsFamily = DerivedFamily.by(
    Moments,
    "The mean and the variance of everybody's number, each between --low and --high.",
    *RANGE,
    variants={"at_most": "shuffledp.protocols.people.moments:RepeatedMomentsFamily"},
)
WeightedMeanFamily = DerivedFamily.by(
    WeightedMean, "The mean of everybody's number, weighted by another private number.", *RANGE, _WEIGHT, reads="rows"
)

__all__ = [
    "Mean",
    "MeanFamily",
    "Moments",
    "MomentsEstimate",
    "MomentsFamily",
    "WeightedMean",
    "WeightedMeanEstimate",
    "WeightedMeanFamily",
]
