"""Histograms: how many users have each category, by several methods."""

from shuffledp.protocols.family import CATEGORIES, Family, few_a_user, worst_number
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.correlated import HistogramCorrelated
from shuffledp.protocols.histogram.count_min import CountMin
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.protocols.histogram.fake_users import FakeUsers
from shuffledp.protocols.histogram.hadamard import Hadamard
from shuffledp.protocols.histogram.opt_in import OptIn
from shuffledp.protocols.histogram.sketch import Sketch
from shuffledp.protocols.histogram.zsum import HistogramZSum

Histogram: Family[HistogramPlan] = Family.of(
    "histogram",
    "How many users have each category of a public list, --domain or --categories.",
    Decoys,
    HistogramCorrelated,
    HistogramZSum,
    OptIn,
    FakeUsers,
    Buckets,
    Hadamard,
    CountMin,
    Sketch,
    domain=(CATEGORIES,),
    error=worst_number,
    few_messages=few_a_user,
    error_name="error of the worst bin",
    variants={
        "at_most": "shuffledp.protocols.people.histogram:RepeatedHistogramFamily",
        "groups": "shuffledp.protocols.grouped.families:GroupedHistogramFamily",
    },
)
