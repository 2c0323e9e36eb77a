"""The least and the largest value as they are typed: --domain LOW:HIGH, or --low LOW --high HIGH, in every command."""

from collections.abc import Collection, Mapping
from typing import Any

from shuffledp.cli.days import DayRange, limit
from shuffledp.errors import ParameterError

_ENDS = ("low", "high")


def with_both_ways(options: Collection[str]) -> tuple[str, ...]:
    """Names of options with those that say the same limits in the other way.

    >>> with_both_ways(["low", "high"]), with_both_ways(["domain", "steps"]), with_both_ways(["domain", "other"])
    (('low', 'high', 'domain'), ('domain', 'steps', 'low', 'high'), ('domain', 'other'))
    """
    more = ("domain",) if {*_ENDS} <= {*options} else _ENDS if "steps" in options else ()
    return tuple(dict.fromkeys((*options, *more)))


def in_one_way(typed: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Options with their limits in the way that a family knows.

    Args:
        typed: what was typed, by the names of options.
        known: the family's own names of options.

    Raises:
        ParameterError: limits are said twice, by half, or in another form.

    >>> in_one_way({"domain": "0:99"}, ["low", "high"]), in_one_way({"low": 0.0, "high": 0.5}, ["domain", "steps"])
    ({'low': 0.0, 'high': 99.0}, {'domain': '0:0.5'})
    >>> in_one_way({"low": "2026-01-01", "high": "2026-12-31T10:00"}, ["domain", "steps"])
    {'domain': '2026-01-01:2026-12-31'}
    """
    found = dict(typed)
    said = [name for name in _ENDS if name in typed]
    apart, together = {*_ENDS} <= {*known}, "steps" in known
    if said and "domain" in typed and (apart or together):
        problem = "and --domain must not both be given"
        raise ParameterError(said[0], typed[said[0]], problem, "leave one out: both are limits")
    if "domain" in typed and apart and "domain" not in known:
        found |= zip(_ENDS, _ends(str(found.pop("domain"))), strict=True)
    if said and together and not apart:
        for name in _ENDS:
            if name not in typed:
                raise ParameterError(name, None, f"must be given beside --{said[0]}", f"add --{name}")
        found["domain"] = ":".join(_written(found.pop(name)) for name in _ENDS)
    return found


def read_limits(words: dict[str, Any]) -> None:
    """Turn the limits among a command's words from text into numbers, or leave days as they are.

    Raises:
        ParameterError: one is neither.
    """
    for name in _ENDS:
        if isinstance(words.get(name), str):
            words[name] = limit(name, words[name])


def in_numbers(typed: Mapping[str, Any], *, days: bool) -> tuple[dict[str, Any], DayRange | None]:
    """Options with days among their limits as numbers; and the range of days, None where limits are numbers.

    Args:
        typed: what was typed, with limits in the way that a family knows.
        days: whether the command takes days as numbers.

    Raises:
        ParameterError: a day where only numbers are taken, or beside a number.
    """
    said = [name for name in _ENDS if isinstance(typed.get(name), str)]
    if not said:
        return dict(typed), None
    if not days:
        problem = "must be a number here"
        raise ParameterError(said[0], typed[said[0]], problem, "days are limits of a mean, or of quantiles")
    for name in _ENDS:
        if name not in typed:
            raise ParameterError(name, None, f"must be given beside --{said[0]}", f"add --{name}")
    found = DayRange.of(*(typed[name] for name in _ENDS))
    return {**typed, **dict(zip(_ENDS, found.ends, strict=True))}, found


def _ends(text: str) -> tuple[float | str, float | str]:
    try:
        low, high = (limit("domain", end.strip()) for end in text.split(":"))
    except (ValueError, ParameterError):
        raise ParameterError("domain", text, "must be LOW:HIGH, two numbers", "write for instance 0:100") from None
    return low, high


def _written(end: float | str) -> str:
    """An end of a domain; of a time the day, as domains count days."""
    if isinstance(end, str):
        return end[: len("2026-01-31")]
    return str(int(end) if float(end).is_integer() else end)
