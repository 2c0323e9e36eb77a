"""Binary sums: how many users have the value 1, by several methods."""

from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.binary_sum.correlated import Correlated
from shuffledp.protocols.binary_sum.poisson_bits import PoissonBits
from shuffledp.protocols.binary_sum.pure import Pure
from shuffledp.protocols.binary_sum.response import Response
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.protocols.binary_sum.zsum import ZSum
from shuffledp.protocols.family import Family, few_a_user

BinarySum: Family[BinarySumPlan] = Family.of(
    "binary-sum",
    "How many users have the value 1.",
    Coins,
    Shares,
    Response,
    ZSum,
    PoissonBits,
    Correlated,
    Pure,
    few_messages=few_a_user,
    variants={
        "at_most": "shuffledp.protocols.people.families:RepeatedCount",
        "groups": "shuffledp.protocols.grouped.families:GroupedCountFamily",
        "at_most+groups": "shuffledp.protocols.grouped.rows:GroupedRowsCountFamily",
    },
)
