"""Which values there are, on the command line: the option --domain, and the values of a file."""

import csv
import io
import re
from bisect import bisect_left
from pathlib import Path
from typing import Any

from shuffledp.cli.output import is_same_file
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.axes import Axis, parse_axes
from shuffledp.protocols.domains.categories import (
    Dates,
    Integers,
    Names,
    parse_categories,
    split_names,
)
from shuffledp.protocols.domains.domain import Categories, Codes, Domain
from shuffledp.protocols.domains.public_values import check_public, check_public_number, with_missing
from shuffledp.tables.columns import read_column
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.names import column_names
from shuffledp.tables.reading import Reading
from shuffledp.tables.table import choose_column
from shuffledp.tables.texts import Texts, read_texts

FROM_DATA = "data"
_SECRET = "which categories occur may itself be somebody's secret"
_PUBLIC = "list what may occur, or add --domain-is-public if what occurs is no secret"


def parse_domain(text: str, other: str | None = None) -> Categories:
    """The domain that a text describes: names, a range of numbers or dates, a file of names, or cells for hashes.

    >>> parse_domain("red, green").names(), parse_domain("18:99").size
    (['red', 'green'], 82)
    """
    if text == FROM_DATA:
        problem = f"cannot be read from data here ({_SECRET})"
        raise ParameterError("domain", text, problem, "list what may occur: a,b,c or LOW:HIGH or a file of names")
    return parse_categories(text, other, lambda listed: parse_names(listed, "domain"))


def parse_names(text: str, parameter: str) -> tuple[str, ...]:
    """Names between commas, or a file's, one a line.

    >>> parse_names("red, green,blue", "names")
    ('red', 'green', 'blue')
    """
    path = Path(text)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):
        is_file = False
    if is_file:
        return _names_in(path, parameter)
    return split_names(text, parameter)


def numbers_in(text: str) -> tuple[float, ...]:
    """The numbers between commas; none at all where something else is there, too.

    >>> numbers_in("0.25, 1"), numbers_in("a,1")
    ((0.25, 1.0), ())
    """
    try:
        return tuple(map(float, text.split(",")))
    except ValueError:
        return ()


def _text_in(path: Path, parameter: str, way_out: str) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError:
        raise ParameterError(parameter, path, "must be a file that exists and can be read", way_out) from None
    except UnicodeDecodeError:
        raise DataError(parameter, path, "must be a text file, in UTF-8", way_out) from None


def _names_in(path: Path, parameter: str) -> tuple[str, ...]:
    """One name a line, without a header; of a CSV file a name may be in quotes."""
    text = _text_in(path, parameter, "write one name a line")
    is_csv = path.suffix.lower() == ".csv"
    # Quotes may hold a line's end, which stays in the name as it does in data.
    lines = csv.reader(io.StringIO(text, newline="")) if is_csv else ([line.strip()] for line in text.splitlines())
    try:
        rows = list(lines)
    except csv.Error as broken:
        raise DataError(parameter, str(path), f"must be a CSV file ({broken})", "write one name a line") from None
    while rows and not any(rows[-1]):
        rows.pop()
    if not rows:
        raise DataError(parameter, str(path), "must name at least one category", "write one name a line")
    seen: dict[str, int] = {}
    for line, row in enumerate(rows, 1):
        if len(row) != 1 or not row[0].strip():
            problem = f"{path.name} must have one name in every line, and no header"
            raise DataError(parameter, f"{len([c for c in row if c])} in line {line}", problem, "write one name a line")
        name = row[0].strip()
        if name in seen:
            problem = f"{path.name} must name every category once"
            raise DataError(parameter, f"{name} in lines {seen[name]} and {line}", problem, "remove one of them")
        seen[name] = line
    return tuple(seen)


def asked_categories(domain: str | None, count: int | None, other: str | None) -> Categories | int | None:
    """The categories that the options ask for, or how many if they have no names; None if none of them was given."""
    if domain is not None and count is not None:
        raise ParameterError("categories", count, "and --domain must not both be given", "leave one out")
    if domain is not None:
        return parse_domain(domain, other)
    if other is not None:
        raise ParameterError("other", other, "needs a list of names", "add --domain a,b,c")
    return count


def asked_axes(text: str | None, steps: int | None) -> tuple[Axis, ...]:
    """The axes that --domain and --steps describe; one read from the data is refused."""
    if text is None or text == FROM_DATA:
        problem = "must be given: the least and the largest value in the data would be an answer without noise"
        raise ParameterError("domain", text, problem, "add --domain LOW:HIGH with limits known beforehand")
    return parse_axes(text, steps)


def read_values(
    file: Path,
    column: str | None,
    columns: str | None,
    *,
    named: Categories | None,
    in_rows: bool,
    words: bool = False,
    reading: Reading | None = None,
) -> Any:
    """The values of a file: codes where categories are named, a matrix where values are rows, or else a column.

    Args:
        file: CSV, Parquet or .npy, with a row a person.
        column: the name of the only column that is read.
        columns: the names of several, with commas between; all if left out.
        named: the categories that the column's values are looked up in.
        in_rows: whether a person's value has several numbers.
        words: whether a column without named categories is text.
        reading: what is between cells, a query, and what people without a value report.
    """
    if in_rows:
        if column is not None:
            raise ParameterError("column", column, "is one column; a vector has several", "use --columns A,B,C")
        return read_matrix(file, None if columns is None else split_names(columns, "columns"), reading=reading)
    if columns is not None:
        raise ParameterError("columns", columns, "are for vectors; a value here is in one", "use --column")
    if named is not None:
        return read_codes(file, column, named, reading)
    if words:
        texts = read_texts(file, column, reading=reading)
        return texts.distinct[texts.where]
    return read_column(file, column, reading=reading)


def columns_read(
    file: Path, column: str | None, columns: str | None, *, in_rows: bool, reading: Reading
) -> list[str | None]:
    """The columns that `read_values` reads, where each may have a public value of its own; [None] where none has."""
    if not reading.missing.each:
        return [None]
    there = column_names(file, reading=reading)
    if in_rows:
        names = list(there if columns is None else split_names(columns, "columns"))
        reading.missing.check_row(names)
        return [*names]
    return [choose_column(there, column, file.name)]


def read_own_values(
    file: Path, column: str | None, columns: str | None, domain: Domain, reading: Reading | None = None
) -> Any:
    """The values of a file as people have them: who sends them encodes them."""
    named = domain.named
    if reading is not None:
        if named is not None:
            with_missing(named, reading.missing, grows=False)
        read = columns_read(file, column, columns, in_rows=domain.is_row, reading=reading)
        for name in read:
            check_public(reading.missing.of_column(name), named, words=domain.reads == "words")
        if named is None and domain.reads != "words":
            check_public_number(reading.missing, domain, read)
    if named is None or named.reads == "numbers" or columns is not None:
        words = domain.reads == "words"
        return read_values(file, column, columns, named=None, in_rows=domain.is_row, words=words, reading=reading)
    texts = read_texts(file, column, reading=reading, other=named.other)
    # Looked up here, so that a value outside the domain is named by its row.
    encode_texts(named, texts)
    return texts.distinct[texts.where]


def read_codes(file: Path, column: str | None, categories: Categories, reading: Reading | None = None) -> Codes:
    """The codes of a column's values: numbers for a range of numbers, otherwise text exactly as it is written."""
    if categories.reads == "numbers":
        return categories.encode(read_column(file, column, reading=reading))

    _check_header(file, column, categories, reading)
    return encode_texts(categories, read_texts(file, column, reading=reading, other=categories.other))


def encode_texts(categories: Categories, texts: Texts) -> Codes:
    """The codes of a column of words; each different one is looked up once."""

    def is_refused(place: int) -> bool:
        try:
            categories.encode(texts.distinct[: place + 1])
        except DataError:
            return True
        return False

    try:
        return categories.encode(texts.distinct)[texts.where]
    except DataError as refusal:
        # The first that is refused: none before it is, so halving finds it, and its first row is the one to name.
        first = bisect_left(range(texts.distinct.size), True, key=is_refused)
        row = int((texts.where == first).argmax()) + 1
        word = str(texts.distinct[first])
        shown = repr(word if len(word) <= 40 else word[:40] + "…")
        raise DataError("values", f"{shown} in row {row}", refusal.problem, refusal.way_out) from None


def _check_header(file: Path, column: str | None, categories: Categories, reading: Reading | None) -> None:
    """In a file of one column without a header, the first person's value would be taken for the column's name."""
    if column is not None or file.suffix.lower() == ".npy" or categories.is_open:
        return
    names = column_names(file, reading=reading)
    try:
        categories.encode(names)
    except DataError:
        return
    if categories.other is None:
        problem = f"{file.name} must have its column's name in the first line"
        raise DataError("file", names[0], problem, "add a line above the values, or give that column's name")


def occurring(
    file: Path, column: str | None, domain: str, other: str | None, *, public: bool, reading: Reading | None = None
) -> Categories:
    """What occurs in a file's own column, as its domain: a range of whole numbers or dates, or names in order.

    Raises:
        ParameterError: nobody said that what occurs is no secret.
    """
    if not public:
        raise ParameterError("domain", domain, f"must not be read from the data: {_SECRET}", _PUBLIC)
    if other is not None:
        raise ParameterError("other", other, "has nothing to hold beside a domain of all data", "leave it out")
    words = sorted(str(word) for word in read_texts(file, column, reading=reading).distinct)
    if all(re.fullmatch(r"-?(0|[1-9]\d{0,17})", word, re.ASCII) for word in words):
        numbers = [int(word) for word in words]
        return Integers(min(numbers), max(numbers))
    if all(re.fullmatch(r"\d{4}-\d{2}-\d{2}", word, re.ASCII) for word in words):
        return Dates(words[0], words[-1])
    return Names(tuple(words))


def refuse_data(domain: str | None, file: Path) -> None:
    """Refuse categories that are read from people's data: they would tell which of them occur."""
    if is_from_data(domain, file):
        problem = f"must not be read from the data: {_SECRET}"
        raise ParameterError("domain", domain, problem, "list what may occur: a,b,c or LOW:HIGH or a file of names")


def is_from_data(domain: str | None, file: Path) -> bool:
    """Whether the domain is to be what occurs in the data: said in a word, or by the data's own file."""
    return domain is not None and (domain == FROM_DATA or is_same_file(Path(domain), file))


def probabilities_in(file: Path, categories: Categories) -> list[float]:
    """A column of numbers in the domain's order, or of names and numbers in any; with or without names above."""
    way_out = "write a probability a line, or a name, a comma and its probability"
    plain: list[float] = []
    named: dict[str, float] = {}
    for place, row in enumerate(csv.reader(_text_in(file, "against", way_out).splitlines()), 1):
        cells = [cell.strip() for cell in row if cell.strip()]
        if not cells:
            continue
        try:
            number = float(cells[-1])
        except ValueError:
            if place > 1:
                raise DataError("against", f"{cells[-1]} in line {place}", "must be a probability", way_out) from None
            continue
        if len(cells) > 2 or (plain if len(cells) == 2 else named):
            problem = "must have a probability, or a name and one, in every line"
            raise DataError("against", f"{len(cells)} cells in line {place}", problem, way_out)
        if len(cells) == 1:
            plain.append(number)
        elif cells[0] in named:
            raise DataError("against", f"{cells[0]} twice", "must name every category once", "remove one of them")
        else:
            named[cells[0]] = number
    if not named:
        return plain
    names = categories.names()
    if strange := [name for name in named if name not in set(names)]:
        raise DataError("against", strange[0], "must name categories of the domain", "add it to --domain, or remove it")
    return [named.get(name, 0.0) for name in names]


def looked_up(names: str | None, categories: Categories) -> tuple[str, ...] | None:
    """Public names whose cells are shown, each once; None if none are asked for. Only hashed domains need them."""
    if names is None:
        return None
    if not categories.is_open:
        problem = f"are for hashed domains; {categories.kind} are known already"
        raise ParameterError("names", names, problem, "leave it out, or take --domain hash:CELLS")
    found = parse_names(names, "names")
    if len(set(found)) < len(found):
        twice = next(name for place, name in enumerate(found) if name in found[:place])
        raise ParameterError("names", f"{twice} twice", "must name each once", "remove one of them")
    return found
