"""Whose rows a file's are, where a person may have several, and the groups that people belong to."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Domain
    from shuffledp.protocols.people.rows import KeptRows
    from shuffledp.randomness import RandomBits


@dataclass(frozen=True)
class Rows:
    """The rows of a file that count, and whose they are."""

    kept: "KeptRows"

    @classmethod
    def of(cls, file: Path, column: str | None, at_most: int | None, bits: "RandomBits | None" = None) -> "Rows | None":
        """The rows by the column that says whose they are; None where every row is a person's only one.

        Args:
            file: CSV, Parquet or .npy.
            column: the column that says whose a row is.
            at_most: how many rows of one person count.
            bits: where the choice among a person's rows comes from; the operating system's if left out.

        Raises:
            ParameterError: a person may have several rows and no column says whose they are, or the other way round.
        """
        if column is None and at_most is None:
            return None
        if column is None:
            problem = "must name the column that says whose a row is, as at most so many of each person count"
            raise ParameterError("user", None, problem, "add --user COLUMN")
        if at_most is None:
            problem = "must say how many rows of one person count"
            raise ParameterError("at_most", None, problem, f"add --at-most 5 beside --user {column}, or leave both out")
        from shuffledp.protocols.people.rows import kept_rows
        from shuffledp.randomness import RandomBits
        from shuffledp.tables.texts import read_texts

        chosen = RandomBits.secure() if bits is None else bits
        return cls(kept_rows(read_texts(file, column).where, at_most, bits=chosen))

    @property
    def people(self) -> int:
        """How many different people the file has: as many as report."""
        return self.kept.people

    def gathered(self, domain: "Domain", checked: Any) -> Any:
        """What each person contributes, from a checked value a row."""
        return self.kept.gathered(domain, checked)


def asked_groups(text: str | None, other: str | None) -> Any:
    """The groups that the options name, one of them for everybody else; None if none is named.

    >>> asked_groups("a, b", "rest").names()
    ['a', 'b', 'rest']
    """
    from shuffledp.cli.domains import parse_names
    from shuffledp.protocols.domains.categories import Names

    if text is None:
        if other is not None:
            raise ParameterError("other_group", other, "needs a list of groups", "add --groups a,b,c")
        return None
    names = parse_names(text, "groups")
    names = names if other is None or other in names else (*names, other)
    if len(names) < 2:
        problem = "must be two groups or more, or the path of a file with one name a line"
        raise ParameterError("groups", text, problem, "write a,b,c, or name a group for all others (--other-group)")
    return Names(names, other)


def read_groups(file: Path, column: str | None, domain: "Domain") -> Any:
    """The code of the group in every row; None where groups are not asked for.

    Raises:
        ParameterError: the plan asks for groups and no column has them, or the other way round.
    """
    from shuffledp.cli.domains import read_codes

    groups = domain.group_list
    if groups is None and column is None:
        return None
    if groups is None:
        problem = "must be beside a public list of groups: which ones occur may itself be somebody's secret"
        raise ParameterError("groups", None, problem, f"add --groups a,b,c beside --by {column}")
    if column is None:
        raise ParameterError("by", None, "must name the column of groups", "add --by COLUMN")
    try:
        return read_codes(file, column, groups)
    except DataError as outside:
        if outside.parameter != "values":
            raise
        problem = f"of {file.name} must be one of the {groups.size} groups"
        way_out = "add it to --groups, or name a group for all others (--other-group NAME)"
        raise DataError("by", outside.value, f"{column} {problem}", way_out) from None
