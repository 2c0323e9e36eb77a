"""Which categories there are: numbers, names, days, or cells that names are hashed into.

A plan counts codes 0, 1, ..., size - 1. These domains turn people's values into codes, on their own devices, and codes
back into names. A domain is public: it must not be read from the data.
"""

import csv
import datetime
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.domain import Categories, Codes, column_of, refuse_first
from shuffledp.protocols.fields import forwarded

LARGEST_SIZE = 1 << 31


@dataclass(frozen=True)
class Integers(Categories):
    """The whole numbers low..high.

    >>> Integers(3, 7).encode([3, 7, 5]).tolist()
    [0, 4, 2]
    """

    kind: ClassVar[str] = "integers"
    is_ordered: ClassVar[bool] = True
    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 62:
                raise ParameterError(name, value, "must be a whole number", "write the domain as LOW:HIGH")
        _check_size(self.high - self.low + 1)

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def encode(self, values: ArrayLike) -> Codes:
        array = column_of(values)
        if array.dtype.kind == "f":
            whole = array == np.floor(array)
            refuse_first(array, ~whole, "must be a whole number", "round the values first")
        elif array.dtype.kind not in "bui":
            raise DataError("values", f"dtype {array.dtype}", "must be whole numbers", "declare names as a,b,c instead")
        # Two passes over the data and no temporary where all is well.
        if array.min().item() < self.low or array.max().item() > self.high:
            outside = (array < self.low) | (array > self.high)
            problem = f"must lie in the domain {self.low}:{self.high}"
            refuse_first(array, outside, problem, "widen the domain, or bring such values into it")
        codes = array.astype(np.int64, copy=False)
        return codes - self.low if self.low else codes

    def name(self, code: int) -> str:
        return str(self.low + code)

    @property
    def text(self) -> str:
        return f"{self.low}:{self.high}"


@dataclass(frozen=True)
class Names(Categories):
    """A list of names; one of them may be the `other` that every value outside the list is counted as.

    Attributes:
        listed: all categories, each once.
        other: the one of them that values outside the list are counted as; None refuses such values.

    >>> Names(("red", "green")).encode(["green", "red"]).tolist()
    [1, 0]
    >>> Names(("red", "green", "another"), other="another").encode(["green", "blue"]).tolist()
    [1, 2]
    """

    kind: ClassVar[str] = "names"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    listed: tuple[Any, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", tuple(self.listed))
        seen: set[str] = set()
        for name in self.listed:
            if not isinstance(name, str):
                raise ParameterError("domain", name, "must be a list of names", "write them as text")
            if name in seen:
                raise ParameterError("domain", f"{name} twice", "must name every category once", "remove one of them")
            seen.add(name)
        if self.other is not None and self.other not in seen:
            raise ParameterError("other", self.other, "must be one of the categories", "name it in the domain, too")
        _check_size(len(self.listed))

    @property
    def size(self) -> int:
        return len(self.listed)

    def encode(self, values: ArrayLike) -> Codes:
        array = column_of(values).astype(np.str_)
        order = np.argsort(np.array(self.listed))
        sorted_names = np.array(self.listed)[order]
        places = np.minimum(np.searchsorted(sorted_names, array), self.size - 1)
        codes, outside = order[places].astype(np.int64), sorted_names[places] != array
        if self.other is not None:
            codes[outside] = self.listed.index(self.other)
            return codes
        problem = f"must be one of the {self.size} categories of the domain"
        way_out = "add it to the domain, or name a category for all others (--other NAME)"
        refuse_first(array, outside, problem, way_out)
        return codes

    def lists(self, value: Any) -> bool:
        return value in self.listed

    def including(self, name: str) -> "Names":
        return self if name in self.listed else Names((*self.listed, name), self.other)

    def name(self, code: int) -> str:
        return str(self.listed[code])

    @property
    def text(self) -> str:
        return ",".join(_quoted(name) for name in self.listed)

    @property
    def can_be_typed(self) -> bool:
        return all(name and name == name.strip() and name.isprintable() for name in self.listed)

    @property
    def parameters(self) -> dict[str, Any]:
        other = {} if self.other is None else {"other": self.other}
        return {"names": list(self.listed), **other}


@dataclass(frozen=True)
class Dates(Categories):
    """The days first..last, both in ISO form.

    >>> Dates("2026-01-30", "2026-02-02").encode(["2026-02-01"]).tolist()
    [2]
    """

    kind: ClassVar[str] = "dates"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    is_ordered: ClassVar[bool] = True
    first: str
    last: str

    def __post_init__(self) -> None:
        if _day(self.last) < _day(self.first):
            problem = "must not end before it begins"
            way_out = f"the first day must come before the last: write {self.last}:{self.first}"
            raise ParameterError("domain", f"{self.first}:{self.last}", problem, way_out)
        _check_size((_day(self.last) - _day(self.first)).days + 1)

    @property
    def size(self) -> int:
        return (_day(self.last) - _day(self.first)).days + 1

    def days(self, values: ArrayLike) -> NDArray[np.datetime64]:
        """The day of each text or time, inside the domain or not; what is none is refused."""
        array = column_of(values)
        written = array.dtype.kind == "U"
        if not written and array.dtype.kind != "M":
            raise DataError("values", f"dtype {array.dtype}", "must be dates", "write them as 2026-01-31")
        if written:
            # NumPy would also take a year for its first day, and `today` for a date.
            distinct, where = np.unique(array, return_inverse=True)
            is_day = np.array([_is_day(str(text)) for text in distinct])[where.reshape(-1)]
            refuse_first(array, ~is_day, "must be a date", "write it as 2026-01-31")
        days = array.astype("datetime64[D]")
        refuse_first(array, np.isnat(days), "must be a date", "write it as 2026-01-31")
        return days

    def encode(self, values: ArrayLike) -> Codes:
        array, days = column_of(values), self.days(values)
        codes = (days - np.datetime64(self.first)).astype(np.int64)
        problem = f"must lie in the domain {self.first}:{self.last}"
        refuse_first(array, (codes < 0) | (codes >= self.size), problem, "widen the domain")
        return codes

    def name(self, code: int) -> str:
        return (_day(self.first) + datetime.timedelta(days=code)).isoformat()

    @property
    def text(self) -> str:
        return f"{self.first}:{self.last}"


@dataclass(frozen=True)
class Hashed(Categories):
    """Any text, hashed into `cells` by a public salt: for domains nobody can list.

    Attributes:
        cells: how many counts there are.
        salt: public; another one puts other texts together.

    >>> Hashed(1000, "a").encode(["some", "text", "some"]).tolist()
    [498, 718, 498]
    """

    kind: ClassVar[str] = "hashed"
    is_open: ClassVar[bool] = True
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    cells: int
    salt: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.cells, bool) or not isinstance(self.cells, int):
            raise ParameterError("cells", self.cells, "must be a whole number", "1000 for a few hundred names")
        if not isinstance(self.salt, str):
            raise ParameterError("salt", self.salt, "must be text", "any will do; it is public")
        _check_size(self.cells)

    size = forwarded("cells")

    def encode(self, values: ArrayLike) -> Codes:
        array = column_of(values).astype(np.str_)
        distinct, where = np.unique(array, return_inverse=True)
        cells = [self._cell(str(name)) for name in distinct]
        return np.array(cells, dtype=np.int64)[where.reshape(-1)]

    def _cell(self, name: str) -> int:
        digest = hashlib.sha256(f"{len(self.salt)}:{self.salt}{name}".encode()).digest()
        # 128 bits more than any number of cells: no cell is favoured by more than 2^-97.
        return int.from_bytes(digest[:16], "big") * self.cells >> 128

    def collision_probability(self, names: int) -> float:
        """The chance that a given name shares its cell with one of so many others.

        >>> round(Hashed(1000).collision_probability(10), 4)
        0.01
        """
        return float(-np.expm1(names * np.log1p(-1 / self.cells)))

    def name(self, code: int) -> str:
        return f"cell {code}"

    @property
    def text(self) -> str:
        return f"hash:{self.cells}" + (f":{self.salt}" if self.salt else "")

    @property
    def example(self) -> str:
        return "something"


KINDS: dict[str, type[Categories]] = {kind.kind: kind for kind in (Integers, Names, Dates, Hashed)}
AnyCategories = Categories | int | range | Sequence[str] | Mapping[str, Any]


def as_categories(given: Any) -> Categories:
    """The domain meant: a number of categories, a range, a list of names, or a domain's own document.

    >>> as_categories(1000).size, as_categories(range(5, 8)), as_categories(["a", "b"]).names()
    (1000, Integers(low=5, high=7), ['a', 'b'])
    """
    if isinstance(given, Categories):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        _check_size(given)
        return Integers(0, given - 1)
    if isinstance(given, range) and given.step == 1:
        return Integers(given.start, given.stop - 1)
    if isinstance(given, Mapping):
        return _from_document(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return Names(tuple(given))
    raise ParameterError("domain", given, "must say which categories there are", "pass a number, a range or names")


def with_other(given: Any, other: str | None) -> Categories:
    """The domain meant, with a category that every value outside a list of names is counted as.

    Args:
        given: as `as_categories` takes it.
        other: that category's name, which need not be in the list; None where there is none.

    >>> with_other(["red", "green"], "another").encode(["green", "blue"]).tolist()
    [1, 2]
    """
    if other is None:
        return as_categories(given)
    names = given.listed if isinstance(given, Names) else given
    if not isinstance(names, list | tuple):
        kind = as_categories(given).kind
        problem = f"can only be given for a list of names, not for {kind}"
        raise ParameterError("other", other, problem, "leave it out, or widen the domain")
    return Names(tuple(names) if other in names else (*names, other), other)


def parse_categories(
    text: str, other: str | None = None, names_in: Callable[[str], Sequence[str]] | None = None
) -> Categories:
    """The domain that a text describes, as it is typed after --domain: the inverse of `Categories.text`.

    Args:
        text: names between commas, LOW:HIGH of numbers or dates, or hash:CELLS or hash:CELLS:SALT.
        other: a name that all values outside a list of names are counted as.
        names_in: turns a text that is none of the others into names; it is cut at commas if left out.

    Raises:
        ParameterError: the text describes no domain of two categories or more.

    >>> parse_categories("red, green").names(), parse_categories("18:99").size
    (['red', 'green'], 82)
    >>> parse_categories("2026-01-01:2026-01-31").size, parse_categories("hash:1000:2026").text
    (31, 'hash:1000:2026')
    """
    found: Categories
    ends = [end.strip() for end in text.split(":")]
    if text.startswith("hash:"):
        cells, _, salt = text.removeprefix("hash:").partition(":")
        if not re.fullmatch(r"\d{1,18}", cells, re.ASCII):
            raise ParameterError("domain", text, "must say how many cells", "write hash:1000 or hash:1000:SALT")
        found = Hashed(int(cells), salt)
    elif len(ends) == 2 and all(re.fullmatch(r"-?\d+", end) for end in ends):
        low, high = map(int, ends)
        _check_order(text, low, high)
        found = Integers(low, high)
    elif len(ends) == 2 and all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", end) for end in ends):
        found = Dates(*ends)
    else:
        names = tuple(split_names(text, "domain") if names_in is None else names_in(text))
        names = names if other is None or other in names else (*names, other)
        if len(names) == 1:
            check_days_are_iso(text)
            problem = "must have at least two categories, or be the path of a file with one name a line"
            raise ParameterError("domain", text, problem, "write a,b,c or LOW:HIGH, or check the path")
        return Names(names, other)
    if other is not None:
        problem = f"can only be given for a list of names, not for {found.kind}"
        raise ParameterError("other", other, problem, "leave it out, or widen the domain")
    return found


def split_names(text: str, parameter: str) -> tuple[str, ...]:
    """The names between commas, quoted as in a CSV file where a comma is part of one.

    >>> split_names("red, green,blue", "names"), split_names('"a,b", c', "names")
    (('red', 'green', 'blue'), ('a,b', 'c'))
    """
    try:
        cells = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        problem = "must have its quotes in pairs, around whole names"
        raise ParameterError(
            parameter, repr(text), problem, """write a,b,c, or '"a,b",c' for a name with a comma"""
        ) from None
    names = tuple(name.strip() for name in cells)
    if not names or not all(names):
        problem = "must have a name between any two commas" if "," in text else "must not be empty"
        raise ParameterError(parameter, repr(text), problem, "write a,b,c")
    return names


def _quoted(name: str) -> str:
    """A name as it is typed in a list of names: in quotes where it would mean something else without."""
    if "," in name or '"' in name or name.startswith("hash:"):
        return '"' + name.replace('"', '""') + '"'
    return name


def check_days_are_iso(text: str) -> None:
    """Refuse days in another form than ISO's, which no number is and no name should be.

    >>> check_days_are_iso("2026-01-01:2026-12-31")
    >>> check_days_are_iso("01.01.2026:31.12.2026")
    Traceback (most recent call last):
        ...
    shuffledp.errors.ParameterError: domain must have ISO days, got 01.01.2026:31.12.2026: write days as 2025-01-01.
    """
    if any(
        re.fullmatch(r"\d{1,2}([./-])\d{1,2}\1\d{2,4}|\d{4}([./])\d{1,2}\2\d{1,2}", e.strip()) for e in text.split(":")
    ):
        raise ParameterError("domain", text, "must have ISO days", "write days as 2025-01-01")


def _check_order(text: str, low: Any, high: Any) -> None:
    if low > high:
        raise ParameterError("domain", text, "must not end before it begins", "write LOW:HIGH, both are in it")


def _from_document(document: Mapping[str, Any]) -> Categories:
    kind = KINDS.get(str(document.get("kind")))
    again = "make the plan again"
    if kind is None:
        raise DataError("plan.categories", document.get("kind"), f"must be one of {', '.join(KINDS)}", again)
    given = {name: value for name, value in document.items() if name != "kind"}
    if kind is Names:
        given = {"listed": tuple(given.pop("names", ())), **given}
    try:
        return kind(**given)
    except TypeError:
        raise DataError("plan.categories", sorted(given), f"are not what {kind.kind} needs", again) from None


def _check_size(size: int) -> None:
    if size < 1:
        raise ParameterError("domain", f"{size} categories", "must not be empty", "name at least two categories")
    if size == 1:
        raise ParameterError(
            "domain", "1 category", "must have at least two", "everybody is in the only one: count the reports"
        )
    if size > LARGEST_SIZE:
        raise ParameterError("domain", size, f"must be at most {LARGEST_SIZE}", "hash the names into fewer cells")


def _is_day(text: str) -> bool:
    """Whether this is a day in ISO form, perhaps with a time after it."""
    try:
        return datetime.datetime.fromisoformat(text).tzinfo is None and text[4:5] == "-" == text[7:8]
    except ValueError:
        return False


def _day(text: Any) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except (TypeError, ValueError):
        raise ParameterError("domain", text, "must be a date", "write it as 2026-01-31") from None
