"""Frequent strings of a domain that nobody can list."""

from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter
from shuffledp.protocols.heavy_hitters.plan import HeavyHitters
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.words import ANY_TEXT


def _symbols(given: str | bytes) -> bytes:
    """The different bytes of an alphabet, which may be text in any script."""
    return bytes(sorted(set(given.encode()))) if isinstance(given, str) else given


HeavyHittersFamily: Family[HeavyHitters] = Family.of(
    "heavy-hitters",
    "The most frequent of everybody's strings, in a domain that nobody can list.",
    HeavyHitters,
    domain=(
        DomainParameter("length", meaning="the bytes of a string that count, in UTF-8; 16."),
        DomainParameter("top", meaning="how many strings to find at most; 10."),
        DomainParameter("alphabet", _symbols, meaning="the symbols that strings are made of; any text."),
        DomainParameter("keep", meaning="how many prefixes survive a level at most; planned."),
    ),
    reads="words",
)

__all__ = ["ANY_TEXT", "FoundStrings", "HeavyHitter", "HeavyHitters", "HeavyHittersFamily", "Search", "SearchState"]
