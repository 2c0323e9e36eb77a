"""A cascade: shufflers one after another, each with a key of its own for the layer that only it can take off.

Hop 1 takes reports from people's devices; every later hop takes whole batches from the one before. This is what every
shuffler knows of it, without any code that opens a message.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shuffledp.errors import DataError
from shuffledp.service.expiry import EXPIRING_VERSION, NEVER, Expiries

LEAST_HOPS, MOST_HOPS = 2, 3
CASCADE_VERSION = 2
"""The version of the documents of a cascade; those of a task with one shuffler have version 1 and no layers."""
ADMISSION_VERSION = 4
"""The version of documents that name an issuer, in a cascade or not: earlier programs would let in anybody enrolled."""


def version_with(hops: Sequence[Any], plain: int, expires: Expiries = NEVER, *, issuer: bool = False) -> int:
    """The version of a document of a task or a campaign: the highest of what it has.

    Args:
        hops: of a cascade; none for one shuffler.
        plain: the version of one that has nothing else.
        expires: the last days of its keys.
        issuer: whether it names an issuer.

    >>> version_with((), 1), version_with([1, 2], 1), version_with([1, 2], 1, {"k": "2999-12-31"}, issuer=True)
    (1, 2, 4)
    """
    if issuer:
        return ADMISSION_VERSION
    if expires:
        return EXPIRING_VERSION
    return CASCADE_VERSION if hops else plain


def key_texts(document: Any) -> list[str]:
    """The texts of hops' keys that a JSON document lists, first hop first.

    >>> key_texts([{"hop": 1, "public_key": "a"}, {"hop": 2, "public_key": "b"}])
    ['a', 'b']

    Raises:
        DataError: it lists something else, or in another order.
    """
    listed: list[Any] = document if isinstance(document, list) and document else [None]
    for number, each in enumerate(listed, 1):
        if not isinstance(each, Mapping) or set(each) != {"hop", "public_key"} or each["hop"] != number:
            problem = "must be a list of numbers and keys, in order"
            raise DataError("hops", type(document).__name__, problem, "create it again with this version")
    return [str(each["public_key"]) for each in listed]


def hops_of_task(text: str) -> list[str]:
    """The keys of a task's or a campaign's hops, from its text: beside the routing all that a hop reads of it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError("task", "no JSON", "must be a JSON document", "send the task's file unchanged") from None
    listed = document.get("hops") if isinstance(document, Mapping) else None
    return [] if listed is None else key_texts(listed)
