"""Frequent strings of a domain that nobody can list."""

from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.heavy_hitters.base import StringSearch
from shuffledp.protocols.heavy_hitters.everybody import EverybodySearch
from shuffledp.protocols.heavy_hitters.found import FoundStrings, HeavyHitter
from shuffledp.protocols.heavy_hitters.groups import GroupSearch
from shuffledp.protocols.heavy_hitters.search import Search, SearchState
from shuffledp.protocols.heavy_hitters.words import ANY_TEXT


def _symbols(given: str | bytes) -> bytes:
    """The different bytes of an alphabet, which may be text in any script."""
    return bytes(sorted(set(given.encode()))) if isinstance(given, str) else given


def _surely_found(plan: StringSearch) -> float:
    return plan.surely_found


HeavyHitters: Family[StringSearch] = Family.of(
    "heavy-hitters",
    "The most frequent of everybody's strings, in a domain that nobody can list.",
    EverybodySearch,
    GroupSearch,
    domain=(
        DomainParameter("length", meaning="the bytes of a string that count, in UTF-8; 16."),
        DomainParameter("top", meaning="how many strings to find at most; 10."),
        DomainParameter("alphabet", _symbols, meaning="the symbols that strings are made of; any text."),
        DomainParameter("keep", meaning="how many prefixes survive a level at most; planned."),
    ),
    error=_surely_found,
    error_name="surely finds strings of",
    error_unit=" users",
    reads="words",
)

__all__ = [
    "ANY_TEXT",
    "EverybodySearch",
    "FoundStrings",
    "GroupSearch",
    "HeavyHitter",
    "HeavyHitters",
    "Search",
    "SearchState",
    "StringSearch",
]
