"""Which rows of a table count where a person may have many: the first so many of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError
from shuffledp.protocols.domains.domain import Codes, Domain, column_of
from shuffledp.protocols.domains.repeated import check_at_most


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """The rows that count, whose they are, and how many people there are.

    Attributes:
        rows: the places of the rows in the table.
        person: the owner of each, 0..people-1, in the order in which people first occur.
        place: which of its owner's rows it is, 0..at_most-1.
        people: how many different people the table has.
        all_rows: how many rows the table has, those that do not count included.
    """

    rows: Codes
    person: Codes
    place: Codes
    people: int
    all_rows: int

    @property
    def left_out(self) -> int:
        """How many rows count for nothing: a fact without noise."""
        return self.all_rows - int(self.rows.size)

    def gathered(self, domain: Domain, checked: NDArray[Any]) -> NDArray[Any]:
        """What each person contributes to a plan with this domain, from a checked value for every row of the table."""
        if len(checked) != self.all_rows:
            raise DataError("user", self.all_rows, f"must be one a row, {len(checked)} in all", "check the column")
        return domain.gathered(checked[self.rows], self.person, self.place, self.people)


def kept_rows(owners: ArrayLike, at_most: int) -> KeptRows:
    """The first so many rows of each owner, in the order of the table.

    No chance is in the choice, so that an answer's error is that of its noise alone; and it depends on nobody else's
    rows, so that it is a part of what a neighbour replaces.

    How many people there are is public, as it is how many reports come; how many rows one has is not, and nothing that
    is sent depends on it.

    Args:
        owners: a name or number a row that says whose it is.
        at_most: how many rows of one person count.

    >>> kept = kept_rows(["x", "y", "x", "x"], 2)
    >>> kept.people, kept.rows.tolist(), kept.person.tolist(), kept.place.tolist()
    (2, [0, 2, 1], [0, 0, 1], [0, 1, 0])
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
    chosen = np.argsort(person, kind="stable")
    sizes = np.bincount(person, minlength=first.size)
    place = np.arange(person.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = place < at_most
    rows = chosen[kept]
    return KeptRows(rows, person[rows], place[kept], int(first.size), int(array.size))


def contributions(domain: Domain, values: ArrayLike, owners: ArrayLike, *, groups: ArrayLike | None = None) -> Any:
    """What each person of a table contributes to a plan with this domain.

    Args:
        domain: the plan's.
        values: a value a row, as people have them.
        owners: whose row it is.
        groups: which group it belongs to, where that is asked, too.

    Returns:
        An entry or a row a person, as the plan's `randomize` takes them.

    Raises:
        DataError: the plan does not say how many rows of one person count, or groups are given and not asked for, or
            the other way round.

    >>> from shuffledp.protocols.domains.repeated import RowCounts
    >>> contributions(RowCounts(2), [1, 1, 0, 1], ["x", "y", "y", "x"]).tolist()
    [2, 1]
    """
    if domain.most_rows is None:
        raise DataError("at_most", None, "must say how many rows of one person count", "plan with at_most=")
    kept = kept_rows(owners, domain.most_rows)
    # All rows are checked, also those that do not count: which ones do is a matter of their order.
    checked = domain.row.check_values(domain.row.encode(values))
    named = domain.group_list
    if (groups is None) != (named is None):
        raise DataError(
            "groups", None, "must be given where the plan asks for them, and only there", "plan with groups="
        )
    if groups is not None and named is not None:
        checked = domain.with_groups(named.encode(groups), checked)
    return kept.gathered(domain, checked)
