"""Whose a row of a table is, where a person may have several, and which group it belongs to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.answers.asking import codes_in, texts_in
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.categories import with_other
from shuffledp.protocols.domains.domain import Categories, Codes
from shuffledp.protocols.people.rows import KeptRows, kept_rows
from shuffledp.protocols.plan import Plan


@dataclass(frozen=True, eq=False)
class Whose:
    """The rows of each person that count, and everybody's group; neither where a row is a person without a group."""

    kept: KeptRows | None = None
    at_most: int | None = None
    codes: Codes | None = None
    groups: Categories | None = None

    @classmethod
    def of(
        cls,
        data: Any,
        *,
        user: Any = None,
        at_most: int | None = None,
        by: Any = None,
        groups: Any = None,
        other_group: str | None = None,
    ) -> "Whose":
        """What the arguments of an answer say; one that needs another asks for it.

        Args:
            data: the table, or a column of values.
            user: a name or number a row that says whose it is, or the name of such a column.
            at_most: how many rows of one person count.
            by: a group a row, or the name of such a column.
            groups: all groups there may be.
            other_group: one more, for everybody whose group is not in the list.
        """
        for name, value, beside, partner in (
            ("at_most", at_most, "user", user),
            ("user", user, "at_most", at_most),
            ("groups", groups, "by", by),
            ("by", by, "groups", groups),
        ):
            if value is None and partner is not None:
                raise ParameterError(name, None, f"must be given beside {beside}", f"add {name}=")
        kept, codes, named = None, None, None
        if user is not None and at_most is not None:
            kept = kept_rows(_owners(data, user), at_most)
        if by is not None:
            named = _listed_groups(groups, other_group)
            codes = codes_of_groups(data, by, named)
        return cls(kept, at_most, codes, named)

    @property
    def domain(self) -> dict[str, Any]:
        """What a family is told of it."""
        told = {"at_most": self.at_most, "groups": self.groups}
        return {name: value for name, value in told.items() if value is not None}

    def people(self, values: NDArray[Any]) -> Any:
        """Something as long as there are people."""
        return values if self.kept is None else range(self.kept.people)

    def contributed(self, plan: Plan, values: NDArray[Any], *, encoded: bool = False) -> NDArray[Any]:
        """What people contribute to a plan, from a value a row.

        Args:
            plan: of the family that was told `domain`.
            values: a value a row, as people have them.
            encoded: whether they are codes already.
        """
        if self.kept is None and self.codes is None:
            return values if encoded else plan.encode(values)
        row = plan.domain.row
        checked = row.check_values(values if encoded else row.encode(values))
        if self.codes is not None:
            if len(self.codes) != len(checked):
                each = "person" if self.kept is None else "row"
                problem = f"must be one a {each}, {len(checked)} in all"
                raise ParameterError("by", len(self.codes), problem, "pass as many of both")
            checked = plan.domain.with_groups(self.codes, checked)
        return checked if self.kept is None else self.kept.gathered(plan.domain, checked)


def _listed_groups(groups: Any, other_group: str | None) -> Categories:
    """The public list of groups; what is wrong with it is said of `groups`, by which it was given."""
    try:
        return with_other(groups, other_group)
    except ParameterError as wrong:
        if wrong.parameter == "other":
            raise ParameterError("other_group", wrong.value, wrong.problem, wrong.way_out) from None
        problem, way_out = wrong.problem, wrong.way_out
        if isinstance(groups, str):
            problem, way_out = "must be a list of all groups there may be", 'pass one by one, such as ["A", "B"]'
        raise ParameterError("groups", wrong.value, problem, way_out) from None


def codes_of_groups(data: Any, by: Any, named: Categories) -> Codes:
    """The code of each person's group; whoever has none is in the group of all others, or refused if there is none."""
    without = "refuse" if named.other is None else "other"
    try:
        return codes_in(data, by, without, named) if isinstance(by, str) else codes_in(by, None, without, named)
    except DataError as refused:
        way_out = "name a group for everybody else: other_group=NAME"
        raise DataError("by", refused.value, refused.problem, way_out) from None


def _owners(data: Any, user: Any) -> NDArray[Any]:
    """A name a row that says whose it is."""
    if isinstance(user, str):
        return texts_in(data, user, "refuse")
    return np.asarray(texts_in([str(owner) for owner in user], None, "refuse"))
