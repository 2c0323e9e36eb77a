"""The least and the largest value as they are typed: --domain LOW:HIGH, or --low LOW --high HIGH, in every command."""

from collections.abc import Collection, Mapping
from typing import Any

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


def _ends(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise ParameterError("domain", text, "must be LOW:HIGH, two numbers", "write for instance 0:100") from None
    return low, high


def _written(number: float) -> str:
    return str(int(number) if float(number).is_integer() else number)
