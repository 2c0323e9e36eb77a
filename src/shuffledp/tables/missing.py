"""What people without a value report: one policy for every file, every command and every one-liner.

Nobody is left out for having no value. The number of reports can be seen by everybody, so that leaving rows out would
tell, without any noise, how many of them there are; instead, such people report something public, and their report
looks like any other. Where that is not wanted the whole table is refused. A refusal itself tells that somebody has no
value; it says how many and which row comes first only where the truth was asked for, because both are exact facts
about people.
"""

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
    """

    rule: Rule | None = None
    value: str | None = None
    tells: bool = False
    is_option: bool = False

    @classmethod
    def of(cls, given: Any, *, tells: bool = False, is_option: bool = False) -> Self:
        """The policy that a text describes: `refuse`, `other`, `default=VALUE` or `default VALUE`.

        Args:
            given: the text; a number is the public value itself, a policy stays as it is; None where nothing was said.
            tells: whether a refusal may say how many rows have no value.
            is_option: whether it was typed after --missing.

        Raises:
            ParameterError: the text describes none.

        >>> Missing.of("default=0").value, Missing.of("default not said").value, Missing.of("other").rule
        ('0', 'not said', 'other')
        >>> Missing.of(0) == Missing.of("default=0")
        True
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
        way_out = "write for instance default=0, the public value that people without one report"
        raise ParameterError("missing", given or repr(given), _CHOICES, way_out)

    @property
    def typed(self) -> str:
        """The policy as it is typed after --missing."""
        return str(self.rule or "refuse") if self.value is None else f"{self.rule}={self.value}"

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
        raise ParameterError("missing", self.typed, "must name a finite number here", "write for instance default=0")

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
        policies = ("default=VALUE", "other")[: 2 if words else 1]
        choices = [f"--missing {each}" if self.is_option else f'missing="{each}"' for each in policies]
        return DataError("column", told, problem, f"say what such people report instead, {' or '.join(choices)}")
