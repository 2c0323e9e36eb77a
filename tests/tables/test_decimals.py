"""Numbers with a decimal comma, and files in another encoding than UTF-8, by either reader of CSV."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.columns import read_column
from shuffledp.tables.csv_source import CsvSource
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.plain_csv import PlainCsv
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import read_texts


@pytest.fixture(params=["pyarrow", "plain"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "plain":
        monkeypatch.setattr("shuffledp.tables.reading.is_installed", lambda package: False)
    return str(request.param)


def written(folder: Path, text: str, encoding: str = "utf-8-sig") -> Path:
    file = folder / "semi.csv"
    file.write_bytes(text.encode(encoding))
    return file


def test_a_comma_stands_before_decimals_if_one_says_so(tmp_path: Path, reader: str) -> None:
    file = written(tmp_path, "city;minutes;rooms\nKöln;62,61;3\nKöln;-0,5;\nUlm;7;NA\nUlm;1e1;2\n")
    reading = Reading(decimal=",")
    found = read_column(file, "minutes", reading=reading)
    assert found.dtype == np.float64 and found.tolist() == [62.61, -0.5, 7.0, 10.0]
    rooms = Reading(decimal=",", missing=Reading().missing.of("default=0"))
    whole = read_column(file, "rooms", reading=rooms)
    assert whole.dtype.kind == "i" and whole.tolist() == [3, 0, 0, 2]
    assert read_matrix(file, ("minutes", "rooms"), reading=rooms).tolist()[1] == [-0.5, 0.0]


def test_quoted_numbers_with_commas_stand_between_commas(tmp_path: Path, reader: str) -> None:
    file = written(tmp_path, 'city,minutes\nKöln,"62,61"\nUlm,"0,5"\n')
    assert read_column(file, "minutes", reading=Reading(decimal=",")).tolist() == [62.61, 0.5]


def test_a_file_of_one_column_is_not_cut_at_its_decimals(tmp_path: Path, reader: str) -> None:
    file = written(tmp_path, "minutes\n62,61\n0,5\n")
    assert read_column(file, reading=Reading(decimal=",")).tolist() == [62.61, 0.5]


def test_a_refusal_says_what_a_comma_may_be(tmp_path: Path, reader: str) -> None:
    file = written(tmp_path, "city;minutes\nKöln;62,61\nUlm;0,5\n")
    with pytest.raises(DataError, match=r"first '62,61' in row 1: add --decimal , if"):
        read_column(file, "minutes")
    with pytest.raises(DataError, match="convert this one to numbers") as refused:
        read_column(file, "city")
    assert "--decimal" not in str(refused.value)
    # A point is then no decimal point: 1.000 may be a thousand.
    points = written(tmp_path, "city;minutes\nKöln;62,61\nUlm;1.000\n")
    with pytest.raises(DataError, match=r"first '1\.000' in row 2"):
        read_column(points, "minutes", reading=Reading(decimal=","))


def test_only_points_and_commas_stand_before_decimals(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="decimal must be a comma or a point, got ';'"):
        Reading(decimal=";")
    np.save(tmp_path / "minutes.npy", np.arange(3))
    with pytest.raises(DataError, match="decimal is for CSV files"):
        read_column(tmp_path / "minutes.npy", reading=Reading(decimal=","))
    with pytest.raises(DataError, match="encoding is for CSV files"):
        read_column(tmp_path / "minutes.npy", reading=Reading(encoding="latin-1"))


@pytest.mark.parametrize(("encoding", "packed"), [("latin-1", False), ("cp1252", True), ("utf-16", False)])
def test_another_encoding_is_read_if_one_says_so(tmp_path: Path, reader: str, encoding: str, packed: bool) -> None:
    content = "city;minutes\nKöln;62,61\nŁódź;0,5\n".replace("Łódź", "Łódź" if encoding == "utf-16" else "Nîmes")
    file = tmp_path / ("semi.csv.gz" if packed else "semi.csv")
    data = content.encode(encoding)
    file.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(DataError, match="say which it is with --encoding"):
        read_texts(file, "city")
    texts = read_texts(file, "city", reading=Reading(encoding=encoding))
    assert texts.distinct[texts.where].tolist() == [line.split(";")[0] for line in content.splitlines()[1:]]
    reading = Reading(encoding=encoding, decimal=",")
    assert read_column(file, "minutes", reading=reading).tolist() == [62.61, 0.5]


@pytest.mark.parametrize("name", ["latin-17", "hex", ""])
def test_an_encoding_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError, match="encoding must be the name of one"):
        Reading(encoding=name)
    file = written(tmp_path, "city\nKöln\n", "latin-1")
    with pytest.raises(DataError, match="must be ascii text"):
        read_texts(file, reading=Reading(encoding="ascii"))


def test_a_query_reads_decimal_commas(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    file = written(tmp_path, "city;minutes\nKöln;62,61\nUlm;0,5\n", "utf-8")
    found = read_column(file, reading=Reading(sql="select 2 * minutes as twice from data", decimal=","))
    assert found.tolist() == [125.22, 1.0]
    with pytest.raises(DataError, match="encoding cannot be said beside sql"):
        read_column(file, reading=Reading(sql="select minutes from data", encoding="latin-1"))


def test_what_was_said_can_be_typed_again() -> None:
    said: dict[str, Any] = {"decimal": ",", "encoding": "latin-1"}
    assert Reading(**said).said == said and Reading(decimal=".").options == "--decimal ."


def test_a_cell_reads_alike_whoever_reads_it(tmp_path: Path) -> None:
    file = written(tmp_path, "minutes;city\n" + "".join(f"{n},{n}5;a\n" for n in range(50)))
    source = CsvSource(str(file), file.name, file, delimiter=";", decimal=",")
    ((values, blank),) = PlainCsv(source).numbers(["minutes"])
    assert not blank.any() and values.tolist() == read_column(file, "minutes", reading=Reading(decimal=",")).tolist()
