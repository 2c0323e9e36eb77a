"""Whose rows a file's are, where a person may have several, and the groups that people belong to."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.domains.domain import Categories, Domain
    from shuffledp.protocols.people.rows import KeptRows
    from shuffledp.protocols.plan import Plan
    from shuffledp.tables.reading import Reading


@dataclass(frozen=True, slots=True)
class Unlike:
    """How much of a file does not count as it is; facts without noise.

    Attributes:
        clipped: values that were brought into the range.
        left_out: rows that count for nothing, as their owners have more than may count; None if rows are people.
        rows: how many there are.
    """

    clipped: int = 0
    left_out: int | None = None
    rows: int = 0


@dataclass(frozen=True)
class Rows:
    """The rows of a file that count, and whose they are."""

    kept: "KeptRows"

    @classmethod
    def of(
        cls,
        file: Path,
        column: str | None,
        at_most: int | None,
        reading: "Reading | None" = None,
    ) -> "Rows | None":
        """The rows by the column that says whose they are; None where every row is a person's only one.

        Args:
            file: CSV, Parquet or .npy.
            column: the column that says whose a row is.
            at_most: how many rows of one person count.
            reading: how the file is read; a row that is nobody's is refused whatever it says of missing values.

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
            raise ParameterError("at_most", None, problem, f"add --at-most 5 beside --user {column}")
        from shuffledp.protocols.people.rows import kept_rows
        from shuffledp.tables.texts import read_texts

        try:
            whose = read_texts(file, column, reading=None if reading is None else reading.refusing())
        except DataError as refused:
            raise refused if refused.parameter != "column" else _of_option("user", refused) from None
        return cls(kept_rows(whose.where, at_most))

    @property
    def people(self) -> int:
        """How many different people the file has: as many as report."""
        return self.kept.people

    @property
    def left_out(self) -> int:
        """How many rows count for nothing; a fact without noise."""
        return self.kept.left_out

    def gathered(self, domain: "Domain", checked: Any) -> Any:
        """What each person contributes, from a checked value a row."""
        return self.kept.gathered(domain, checked)


def _of_option(name: str, refused: DataError) -> DataError:
    """A refusal of a column, under the name of the option that named it."""
    return DataError(name, refused.value, refused.problem, refused.way_out)


def counted_rows(plan: "Plan", unlike: Unlike, *, file: Path | None, shows_truth: bool) -> str | None:
    """Which rows of a file count, in words; None where every row is a person's only one.

    Args:
        plan: says how many of one person do.
        unlike: says how many do not.
        file: None where there is none.
        shows_truth: whether facts without noise may be shown.
    """
    most = plan.domain.most_rows
    if most is None or file is None:
        return None
    words = f"the first {most:,} rows of everybody" if most > 1 else "the first row of everybody"
    told = f"; {unlike.left_out:,} of {unlike.rows:,} rows were left out" if shows_truth else ""
    return f"{words}, in the file's order{told}"


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
    try:
        return Names(names, other)
    except ParameterError as wrong:
        raise ParameterError("groups", wrong.value, wrong.problem, wrong.way_out) from None


def check_groups(column: str | None, *, known: bool) -> None:
    """Refuse a column of groups where no list says which there are."""
    if column is not None and not known:
        problem = "must be a public list beside --by: which groups occur may itself be somebody's secret"
        raise ParameterError("groups", None, problem, f"add --groups a,b,c beside --by {column}")


def read_groups(file: Path, column: str | None, groups: "Categories | None", reading: "Reading | None" = None) -> Any:
    """The code of the group in every row; None where groups are not asked for.

    Args:
        file: CSV, Parquet or .npy.
        column: the column of groups.
        groups: all there are; None where they are not asked for.
        reading: how the file is read. Whoever has no group is in the group of all others, or refused if there is none.

    Raises:
        ParameterError: the plan asks for groups and no column has them, or the other way round.
    """
    from shuffledp.cli.domains import read_codes
    from shuffledp.tables.missing import Missing

    check_groups(column, known=groups is not None)
    if groups is None:
        return None
    if column is None:
        raise ParameterError("by", None, "must name the column of groups", "add --by COLUMN")
    own = None if reading is None else replace(reading, missing=Missing(None, tells=reading.missing.tells))
    try:
        return read_codes(file, column, groups, own)
    except DataError as outside:
        if outside.parameter != "values" and "value in every row" not in outside.problem:
            raise outside if outside.parameter != "column" else _of_option("by", outside) from None
        problem = f"of {file.name} must be one of the {groups.size} groups"
        way_out = "add it to --groups, or name a group for all others (--other-group NAME)"
        raise DataError("by", outside.value, f"{column} {problem}", way_out) from None
