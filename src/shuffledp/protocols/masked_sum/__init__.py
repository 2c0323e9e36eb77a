"""Sums in two rounds: keys for every two users, then values under masks that cancel."""

from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.masked_sum.plan import MaskedSum

MaskedSumFamily: Family[MaskedSum] = Family.of(
    "masked-sum",
    "A curator's sum of whole numbers, in two rounds in which everybody must stay: a demonstration.",
    MaskedSum,
    domain=(
        DomainParameter("high", lambda high: int(high) if high == int(high) else high, meaning="the largest number."),
    ),
)

__all__ = ["MaskedSum", "MaskedSumFamily"]
