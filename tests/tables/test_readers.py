"""Two readers of CSV, by pyarrow and by the standard library, with the same columns and the same refusals."""

import csv
import errno
import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shuffledp.errors import DataError
from shuffledp.tables.arrow_table import ArrowCsv, ParquetTable
from shuffledp.tables.complaints import no_rows
from shuffledp.tables.csv_source import CsvSource
from shuffledp.tables.plain_csv import PlainCsv

READERS: dict[str, Callable[[CsvSource], Any]] = {"pyarrow": ArrowCsv, "csv": PlainCsv}

CELLS = [
    *("0", "1", "-1", "007", "-0", " 1", "1 ", "\t1", "+1", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "1.0", "0.0", "1e5", "1E5", "5.", ".5", "+1.5", "-.5", "inf", "-inf", "Infinity", "+inf"),
    *(
        "1e400",
        "nan",
        "NaN",
        "nAn",
        "-nan",
        "+nan",
        "NaN ",
        "",
        '""',
        "NA",
        "N/A",
        "null",
        "NULL",
        "n/a",
        "#N/A",
        "None",
    ),
    *("true", "True", "TRUE", "tRue", " true", "false", "T", "yes", "no", "1_000", '"1,000"', "1d", "1e", "- 1", "١"),
    *(
        "--1",
        "2024-05-01",
        "12:30",
        "2024-05-01T10:00:00",
        "a b",
        '"a ""b"""',
        "'a'",
        '"a\nb"',
        "ü",
        "東京",
        "😀",
        "  ",
    ),
    *('"1"', '" 1"', '"NA"', '"abc"d', 'a"b"c', "1.7976931348623157e308", "0.1", "1e-400", "123456789.123456789"),
]
"""What is in one cell: numbers, nothing, booleans, words, and what looks like one of them and is not."""

FILES = [
    "x\n1\n0\n",
    "x\n1\n0",
    "x\r\n1\r\n0\r\n",
    "x\r1\r0\r",
    "\ufeffx\n1\n0\n",
    '\ufeff"x"\n1\n',
    "x\n1\n\n2\n\n",
    "x\n\n",
    "x,y\n1,2\n\n3,4\n",
    "\n\nx,y\n1,2\n",
    "x,y\n1,2\n3,4,5\n",
    "x,y\n1,2\n\n\n3\n",
    "x,y\n1,2\n   \n",
    'x,y\n1,"a\nb"\n2\n',
    "x,y,x\n1,2,3\n",
    ",x\n1,2\n",
    "y\n1\n",
    "x\n",
    "x,y\n",
    "x",
    "\n\n",
    "x\ntrue\n2\n",
    "x\ntrue\n1\n",
    "x\ntrue\n0\nNA\n",
    "x\n1\n0.5\nnan\n",
    "x\n1\nNA\n3\n",
    "x\n1\n9223372036854775808\n",
    "x\nNA\n\n",
    "x\n1\nyes\n",
    "x;y\n1;2\n3;\n",
    "x\ty\n1\t2\n",
    "x|y\n1|2\n",
    "x,y\n1,2\n" + "1,2\n" * 3_000 + "1,2,3\n",
    'x,y\n1,"a\n2,b\n3,c\n',
    'x,y\n"1,a\n2,b\n',
    'x,y\n1,5" disk\n2,b\n',
    'x,y\n1,"a"\n2,"b',
    b"x,y\n1,\xff\n",
    b"x,y\n\xff,1\n",
    b"\xe9,x\n1,2\n",
    "x,y\n1,2\n".encode("utf-16"),
    b"x,y\na\x00b,1\n",
]
"""Whole files: line ends, blank lines, headers, ragged rows, encodings, kinds that change on the way."""


def told(reader: Callable[[CsvSource], Any], content: str | bytes, folder: Path, ask: str) -> Any:
    """What a reader makes of a file: names, a column's kind, values and gaps, or its refusal."""
    file = folder / "t.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    source = CsvSource(str(file), file.name, file)
    source = CsvSource(str(file), file.name, file, delimiter=source.guessed_delimiter())
    try:
        table = reader(source)
        name = table.choose("x")
        table.check_header([name], "a", "b")
        if ask == "numbers":
            ((values, blank),) = table.numbers([name])
            if not values.size:
                raise no_rows(table.source)
            known = values[~blank]
            return (
                list(table.names),
                known.size and known.dtype.kind,
                [repr(each) for each in known.tolist()],
                blank.tolist(),
            )
        texts = table.words(name)
        if not len(texts):
            raise no_rows(table.source)
        rows = [None if place < 0 else str(texts.distinct[place]) or None for place in texts.where.tolist()]
        return list(table.names), rows
    except DataError as refused:
        return type(refused), str(refused)


@pytest.mark.parametrize("ask", ["numbers", "words"])
def test_every_cell_means_the_same(tmp_path: Path, ask: str) -> None:
    for cell in CELLS:
        for content in (f"x,y\n{cell},0\n", f"x,y\n1,0\n{cell},0\n", f"y,x\n0,{cell}\n5,0.5\n"):
            one, another = (told(reader, content, tmp_path, ask) for reader in READERS.values())
            assert one == another, content


@pytest.mark.parametrize("ask", ["numbers", "words"])
@pytest.mark.parametrize("content", FILES, ids=range(len(FILES)))
def test_every_file_reads_the_same(tmp_path: Path, content: str | bytes, ask: str) -> None:
    one, another = (told(reader, content, tmp_path, ask) for reader in READERS.values())
    assert one == another


CELL = st.text("a1.-é東😀,;|\t\"' \n\r\\#\u2028\x85\ufeff\x1b", max_size=6) | st.sampled_from(
    ["", "NA", "two\r\nlines"]
)


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(CELL, CELL), min_size=1, max_size=8), delimiter=st.sampled_from(",;\t|"))
def test_what_is_written_by_the_rules_comes_back_exactly(tmp_path_factory, rows, delimiter: str) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows([("x", "y"), *rows])
    file = tmp_path_factory.getbasetemp() / "written.csv"
    file.write_bytes(text.getvalue().encode())
    source = CsvSource(str(file), file.name, file, delimiter=delimiter)
    for reader in READERS.values():
        for place, name in enumerate(("x", "y")):
            texts = reader(source).words(name)
            found = ["" if row < 0 else str(texts.distinct[row]) for row in texts.where.tolist()]
            assert found == [row[place] for row in rows], reader


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_quote_that_is_never_closed_swallows_nobody_in_silence(tmp_path: Path, reader: Any) -> None:
    refused = told(reader, 'x,y\n1,"a\n' + "2,b\n" * 50, tmp_path, "numbers")
    assert refused[0] is DataError and "look for a quote that is not closed" in refused[1]
    # A quote inside a cell is a letter like any other.
    assert told(reader, 'x,y\n1,5" disk\n2,b\n', tmp_path, "numbers")[2] == ["1", "2"]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_long_cells_of_other_columns_are_no_matter(tmp_path: Path, reader: Any) -> None:
    assert told(reader, "x,y\n1," + "word " * 60_000 + "\n", tmp_path, "numbers")[2] == ["1"]


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize(
    "damage", [lambda whole: whole[: len(whole) // 2], lambda whole: whole[:60] + b"zz" + whole[62:]]
)
def test_damaged_gzip_is_refused_alike(tmp_path: Path, reader: Any, damage: Any) -> None:
    file = tmp_path / "t.csv.gz"
    file.write_bytes(damage(gzip.compress(("x\n" + "1\n0\n" * 50_000).encode())))
    with pytest.raises(DataError, match="must be a complete and undamaged CSV file"):
        reader(CsvSource(str(file), file.name, file)).numbers(["x"])


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a\n1\n", ","),
        ('"a,b";c\n1;2\n', ";"),
        # A comma in every header cell, and rows that only semicolons cut alike.
        ("name, first;age, years\nx;1\n", ";"),
        # One column whose name has a bar in it.
        ("speed|raw\n1\n2\n", ","),
        ('a;b\n"x;y";2\n', ";"),
        ("a;b,c;d\n1;2,3;4\n", ","),
        ("", ","),
    ],
)
def test_the_header_says_what_is_between_cells(tmp_path: Path, text: str, delimiter: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(text)
    assert CsvSource(str(file), file.name, file).guessed_delimiter() == delimiter


def test_a_file_that_is_gone_is_not_a_damaged_one(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "a.parquet")
    table = ParquetTable(tmp_path / "a.parquet")
    gone = r"must be there and readable \(No such file or directory\), got a.parquet"
    with pytest.raises(DataError, match=gone), table._blaming():
        raise OSError(errno.ENOENT, "Failed to open local file")
    with pytest.raises(DataError, match="complete and undamaged"), table._blaming():
        raise OSError("Couldn't deserialize thrift")
