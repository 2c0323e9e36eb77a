"""Which rows of a table count where a person may have many: so many of each, chosen at random."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError
from shuffledp.protocols.domains.domain import Codes, column_of
from shuffledp.protocols.domains.repeated import RepeatedDomain, check_at_most
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """The rows that count, whose they are, and how many people there are.

    Attributes:
        rows: the places of the rows in the table.
        person: the owner of each, 0..people-1, in the order in which people first occur.
        place: which of its owner's rows it is, 0..at_most-1.
        people: how many different people the table has.
    """

    rows: Codes
    person: Codes
    place: Codes
    people: int


def kept_rows(owners: ArrayLike, at_most: int, *, bits: RandomBits) -> KeptRows:
    """At most so many rows of each owner, every choice of them equally likely.

    How many people there are is public, as it is how many reports come; how many rows one has is not, and nothing that
    is sent depends on it.

    Args:
        owners: a name or number a row that says whose it is.
        at_most: how many rows of one person count.
        bits: where the choice comes from.

    >>> kept = kept_rows(["x", "y", "x", "x"], 2, bits=RandomBits.seeded(1))
    >>> kept.people, kept.person.tolist(), kept.place.tolist(), len(set(kept.rows.tolist()))
    (2, [0, 0, 1], [0, 1, 0], 3)
    """
    check_at_most(at_most)
    array = column_of(owners)
    if array.dtype.kind == "f" and np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array))[0]) + 1
        raise DataError("user", f"none in row {row}", "must say whose every row is", "fill in its owner")
    _, first, owner = np.unique(array, return_index=True, return_inverse=True)
    # People in the order of their first rows: a running count takes them as they come.
    order = np.empty(first.size, dtype=np.int64)
    order[np.argsort(first, kind="stable")] = np.arange(first.size)
    person = order[owner.reshape(-1)]
    chosen = np.lexsort((bits.words(person.size), person))
    sizes = np.bincount(person, minlength=first.size)
    place = np.arange(person.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = place < at_most
    rows = chosen[kept]
    return KeptRows(rows, person[rows], place[kept], int(first.size))


def contributions(
    domain: RepeatedDomain, values: ArrayLike, owners: ArrayLike, *, bits: RandomBits, clip: bool = False
) -> tuple[Any, int]:
    """What each person of a table contributes to a plan with this domain, and how many rows had to be clipped.

    Args:
        domain: the plan's.
        values: a value a row, as people have them.
        owners: whose row it is.
        bits: where the choice among a person's rows comes from.
        clip: whether values outside the range are brought into it.
    """
    array = np.asarray(values)
    kept = kept_rows(owners, domain.at_most, bits=bits)
    if array.shape[:1] != (np.asarray(owners).size,):
        raise DataError("user", np.asarray(owners).size, f"must be one a row, {len(array)} in all", "check the column")
    own, clipped = domain.row.clip_own_values(array) if clip else (array, 0)
    # All rows are checked, also those that do not count: which ones do is a matter of chance.
    checked = domain.row.check_values(domain.row.encode(own))
    return domain.gathered(checked[kept.rows], kept.person, kept.place, kept.people), clipped
