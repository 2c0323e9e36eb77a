"""What people without a value report: one policy for every file, every command and every one-liner.

Nobody is left out for having no value. The number of reports can be seen by everybody, so that leaving rows out would
tell, without any noise, how many of them there are; instead, such people report something public, and their report
looks like any other. Where that is not wanted the whole table is refused. A refusal itself tells that somebody has no
value; it says how many and which row comes first only where the truth was asked for, because both are exact facts
about people.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.complaints import named

Rule = Literal["refuse", "other", "default"]
_CHOICES = "must be refuse, other or default=VALUE"
MISSING_CATEGORY = "missing"
"""The public category of people without a value, where no other was named for them."""

EVERY_ROW = "must have a value in every row"
"""How a refusal ends of a table in which somebody has none."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What people without a value report.

    A NaN, a null, NaT and an empty cell are no value.

    Attributes:
        rule: `refuse` refuses a table in which anybody has none; `other` lets them report a category that is there
            for it; `default` lets them report the same public value. None, where nothing was said, is `refuse`, but for
            a list of categories with a catch-all, which then has them, too.
        value: the public value of `default`, as it was typed.
        tells: whether a refusal may say how many rows have no value, and which is the first.
        is_option: whether the policy is typed after --missing, and not passed in Python: a refusal says what to write.
        each: public values of single columns, by their names; `rule` is about all others.
        column: the one column that the policy is about, where each has its own; None otherwise.
    """

    rule: Rule | None = None
    value: str | None = None
    tells: bool = False
    is_option: bool = False
    each: tuple[tuple[str, str], ...] = ()
    column: str | None = None

    @classmethod
    def of(cls, given: Any, *, tells: bool = False, is_option: bool = False, several: bool = False) -> Self:
        """The policy that a text describes: `refuse`, `other`, `default=VALUE` or `default VALUE`.

        Where columns have names, `COLUMN=VALUE,COLUMN=VALUE` is a value for each, and `default=VALUE` behind them is
        for all others, which are refused without it.

        Args:
            given: the text; a number is the public value itself, a policy stays as it is; None where nothing was said.
            tells: whether a refusal may say how many rows have no value.
            is_option: whether it was typed after --missing.
            several: whether columns may be named.

        Raises:
            ParameterError: the text describes none.

        >>> Missing.of("default=0").value, Missing.of("default not said").value, Missing.of("other").rule
        ('0', 'not said', 'other')
        >>> Missing.of(0) == Missing.of("default=0")
        True
        >>> Missing.of("age=40,city=Oslo", several=True).of_column("city").value
        'Oslo'
        """
        if isinstance(given, Missing):
            return replace(given, tells=given.tells or tells)  # type: ignore[return-value]
        if isinstance(given, Real):
            return cls("default", str(given), tells, is_option)
        if given is None or given in ("refuse", "other"):
            return cls(given, None, tells, is_option)
        if isinstance(given, str) and given.startswith(("default=", "default ")):
            value = given[len("default=") :].strip()
            if value:
                return cls("default", value, tells, is_option)
        elif several and isinstance(given, str) and "=" in given:
            each = _values_of_columns(given)
            rest = each.pop("default") if "default" in each else None
            return cls(None if rest is None else "default", rest, tells, is_option, tuple(each.items()))
        way_out = "write for instance default=0, the public value that people without one report"
        raise ParameterError("missing", given or repr(given), _CHOICES, way_out)

    @property
    def typed(self) -> str:
        """The policy as it is typed after --missing."""
        own = str(self.rule or "refuse") if self.value is None else f"{self.column or self.rule}={self.value}"
        if not self.each:
            return own
        return ",".join(
            [*(_cell(f"{name}={value}") for name, value in self.each), *([_cell(own)] if self.rule else [])]
        )

    @property
    def is_said(self) -> bool:
        """Whether anything was said of people without a value."""
        return self.rule is not None or bool(self.each)

    def of_column(self, column: str | None) -> "Missing":
        """What people without a value in one column report.

        Args:
            column: its name; None where it has none.

        Raises:
            ParameterError: columns have values of their own, and this one has no name.
        """
        if not self.each:
            return self
        if column is None:
            problem = "names columns, which have no names here"
            raise ParameterError("missing", self.typed, problem, "write default=VALUE, one value for all")
        own = dict(self.each).get(column)
        if own is None:
            # Its refusal says how this column is named, and its errors that it has the value of all others.
            return replace(self, each=(), column=column if self.rule is None else None)
        return replace(self, rule="default", value=own, each=(), column=column)

    def check_columns(self, names: Sequence[str], where: str) -> None:
        """Refuse values for columns that are not there.

        Args:
            names: the columns there are.
            where: the table's name.

        Raises:
            ParameterError: it names the first such column.
        """
        for name, value in self.each:
            if name not in names:
                listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
                raise ParameterError("missing", f"{name}={value}", f"must name columns of {where}", f"it has {listed}")

    def check_row(self, names: Sequence[str]) -> None:
        """Refuse values for some columns of a row that is one person's value: whether a row fits is public.

        Args:
            names: the columns of the row.

        Raises:
            ParameterError: some have a public value and others none; it names the first without.
        """
        without = [name for name in names if self.of_column(name).rule != "default"]
        if 0 < len(without) < len(names):
            problem = "must name every column of a row: whether it fits is decided before anybody is asked"
            raise ParameterError("missing", self.typed, problem, f"add {without[0]}=VALUE, or default=VALUE behind all")

    def word(self, other: str | None = None) -> str | None:
        """What people without a value report in a column of words; None where they are refused.

        Args:
            other: the category of all values outside a list; "missing" if there is none.
        """
        if self.rule == "other" and other is None:
            return MISSING_CATEGORY
        return {"default": self.value, "refuse": None}.get(self.rule or "other", other)

    @property
    def number(self) -> int | float | bool:
        """The public value of a column of numbers.

        Raises:
            ParameterError: the policy names a category, or a text that is no number.

        >>> Missing.of("default=1").number, Missing.of("default=0.5").number, Missing.of("default=true").number
        (1, 0.5, True)
        """
        if self.rule == "other":
            problem = "needs a list of categories, which numbers do not have"
            raise ParameterError("missing", self.typed, problem, "write default=VALUE with a public number")
        text = str(self.value)
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        for kind in (int, float):
            try:
                found = kind(text)
            except ValueError:
                continue
            if abs(found) < 1e300:
                return found
        way_out = f"write for instance {self.column or 'default'}=0"
        raise ParameterError("missing", self.typed, "must name a finite number here", way_out)

    def check_number(self) -> None:
        """Refuse a policy that says nothing about numbers, whatever the data are."""
        if self.rule in ("other", "default"):
            _ = self.number

    def fill_numbers(self, values: NDArray[Any], blank: NDArray[np.bool_], column: str | None, where: str) -> Any:
        """A column of numbers in which everybody has a value.

        Whole numbers stay whole and booleans stay booleans where the public value is one, too; everything else
        becomes float64.

        Args:
            values: a number a row; anything where there is none.
            blank: the rows without a value.
            column: the column's name, for a refusal.
            where: the table's name, for a refusal.
        """
        if self.each:
            return self.of_column(column).fill_numbers(values, blank, column, where)
        self.check_number()
        if not blank.any():
            return values
        if self.rule in (None, "refuse"):
            raise self.refusal(blank, column, where)
        public = np.asarray(self.number)
        if values.dtype.kind == "b" and public.dtype.kind != "b":
            is_bit = public in (0, 1)
            public = public.astype(np.bool_) if is_bit else public
        whole = public.dtype.kind in "bi" and values.dtype.kind in "iu"
        if whole and np.iinfo(values.dtype).min <= int(public) <= np.iinfo(values.dtype).max:
            kind: Any = values.dtype
        else:
            kind = values.dtype if values.dtype.kind == public.dtype.kind == "b" else np.float64
        return np.where(blank, public.astype(kind), values.astype(kind, copy=False))

    def refusal(self, blank: NDArray[np.bool_], column: str | None, where: str, *, words: bool = False) -> DataError:
        """Blame a table in which somebody has no value.

        Args:
            blank: the rows without a value.
            column: the column's name.
            where: the table's name.
            words: whether the column holds words, for which there may be a category of those without one.

        >>> print(Missing(is_option=True).refusal(np.array([False, True]), "age", "people.csv"))
        column age of people.csv must have a value in every row, got rows without one: say what such people report
        instead, --missing default=VALUE.
        >>> Missing().refusal(np.array([False, True]), "city", "the data", words=True).way_out
        'say what such people report instead, missing="default=VALUE" or missing="other"'
        """
        problem = f"{named(column, where)} {EVERY_ROW}"
        told = "rows without one"
        if self.tells:
            told = (
                f"{int(blank.sum()):,} of {blank.size:,} rows without one, the first in row {int(blank.argmax()) + 1}"
            )
        policies = ("default=VALUE", "other")[: 2 if words else 1] if self.column is None else (f"{column}=VALUE",)
        choices = [f"--missing {each}" if self.is_option else f'missing="{each}"' for each in policies]
        return DataError("column", told, problem, f"say what such people report instead, {' or '.join(choices)}")


def _values_of_columns(text: str) -> dict[str, str]:
    """A value for each column named, cells quoted as in CSV where a comma is part of one."""
    cells = next(csv.reader([text], skipinitialspace=True), [])
    found: dict[str, str] = {}
    for cell in cells:
        name, _, value = (part.strip() for part in cell.partition("="))
        if not name or not value or name in found:
            way_out = "write for instance age=40,city=Oslo, and default=0 behind them for all other columns"
            raise ParameterError("missing", cell or repr(text), "must be COLUMN=VALUE, each column once", way_out)
        found[name] = value
    return found


def _cell(text: str) -> str:
    """A text as one cell of a CSV line."""
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
