"""Frequent strings of a domain that nobody can list."""

from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter
from shuffledp.protocols.heavy_hitters.plan import HeavyHitters
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.words import PRINTABLE

HeavyHittersFamily: Family[HeavyHitters] = Family.of(
    "heavy-hitters",
    "The most frequent of everybody's strings, in a domain that nobody can list.",
    HeavyHitters,
    domain=(
        DomainParameter("length"),
        DomainParameter("top"),
        DomainParameter("alphabet", lambda given: given.encode() if isinstance(given, str) else given),
        DomainParameter("keep"),
    ),
    reads="words",
)

__all__ = ["PRINTABLE", "FoundStrings", "HeavyHitter", "HeavyHitters", "HeavyHittersFamily", "Search", "SearchState"]
