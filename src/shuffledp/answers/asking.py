"""What all answers share: the plan for as many people as there are values, and its answer on them."""

import math
import warnings
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.domains.domain import Categories, Codes
from shuffledp.protocols.domains.public_values import check_public, check_public_number
from shuffledp.protocols.plan import Plan
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.tables.given import column_of
from shuffledp.tables.missing import Missing

# More messages than this take seconds: then the answer is drawn from its own law, which is the same.
_MOST_MESSAGES = 4_000_000


_Asked = ParamSpec("_Asked")
_Found = TypeVar("_Found")

_GIVE = {
    "epsilon": "1 is a common choice, smaller is safer",
    "delta": "well below one over the number of people, 1e-6 for example",
    "low": "the lowest value that anybody may have, known beforehand and not read from the data",
    "high": "the highest value that anybody may have, known beforehand and not read from the data",
}


def says_what_is_missing(function: Callable[_Asked, _Found]) -> Callable[_Asked, _Found]:
    """Make of what must be given by name, and is not, one sentence that says what to give."""
    named = signature(function).parameters.values()
    needed = [each.name for each in named if each.kind is each.KEYWORD_ONLY and each.default is each.empty]

    @wraps(function)
    def asked(*args: _Asked.args, **given: _Asked.kwargs) -> _Found:
        for name in needed:
            if name not in given:
                way_out = _GIVE.get(name, f"help(shuffledp.{function.__name__}) says what it is")
                raise ParameterError(name, None, "must be given", way_out)
        return function(*args, **given)

    return asked


def numbers_in(data: Any, column: str | None, missing: Any) -> NDArray[Any]:
    """A number a person."""
    return column_of(data, column, missing=missing, words=False)  # type: ignore[return-value]


def texts_in(data: Any, column: str | None, missing: Any) -> NDArray[np.str_]:
    """A text a person."""
    texts: Any = column_of(data, column, missing=missing, words=True)
    return np.asarray(texts.distinct[texts.where])


def codes_in(data: Any, column: str | None, missing: Any, categories: Categories) -> Codes:
    """A category's code a person; each different text is looked up once."""
    check_public(Missing.of(missing), categories, words=True)
    if categories.reads == "numbers":
        return categories.encode(numbers_in(data, column, missing))
    texts: Any = column_of(data, column, missing=missing, words=True, other=categories.other)
    return np.asarray(categories.encode(texts.distinct)[texts.where])


def planned(
    protocol: str,
    values: NDArray[Any],
    epsilon: float,
    delta: float,
    method: str,
    honest_fraction: float,
    max_messages: int | None,
    missing: Any = None,
    **domain: Any,
) -> Plan:
    """The plan for as many people as there are values.

    A weak promise is warned of. A public number for people without one that nobody could have is refused, whether or
    not somebody needs it.
    """
    plan: Plan = PROTOCOLS[protocol].plan(
        users=len(values),
        privacy=Privacy(epsilon, delta),
        method=method,
        honest_fraction=honest_fraction,
        max_messages=max_messages,
        **domain,
    )
    check_public_number(Missing.of(missing), plan.domain)
    for caution in plan.cautions:
        warnings.warn(caution, stacklevel=3)
    return plan


def answered(plan: Plan, values: NDArray[Any], seed: int | None, bits: RandomBits | None) -> Any:
    """The plan's answer on encoded values: by messages where they are few enough, and by its law where not."""
    return simulate(plan, values, bits=bits_for(seed, bits), fast=is_much(plan))


def is_much(plan: Plan) -> bool:
    """Whether all messages are so many that the answer is drawn from its law instead."""
    return plan.users * math.ceil(plan.messages_per_user_mean) > _MOST_MESSAGES


def bits_for(seed: int | None, bits: RandomBits | None) -> RandomBits:
    """The bits that are given, or a seed's, or else the operating system's."""
    if seed is not None and bits is not None:
        raise ParameterError("seed", seed, "and bits must not both be given", "leave one out")
    if bits is not None:
        return bits
    return RandomBits.secure() if seed is None else RandomBits.seeded(seed)


def clipped(plan: Plan, values: NDArray[Any], clip: bool) -> NDArray[Any]:
    """Values within the domain; how many had to be brought there is not kept, as it would be told without noise."""
    return plan.domain.row.clip_own_values(values)[0] if clip else values
