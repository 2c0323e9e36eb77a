"""A file in pieces has the same values as the file read whole, however messy it is and however it is cut."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from shuffledp.errors import DataError
from shuffledp.tables import csv_rows
from shuffledp.tables.columns import read_column
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.missing import Missing
from shuffledp.tables.pieces import PieceReader, agreed, cut
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import read_texts

MESSY = Reading(missing=Missing.of("default=7"))


def in_pieces(path: Path, each: int, read: Callable[[Path, Reading], Any], reading: Reading = MESSY) -> Any:
    """What is read piece by piece, the last piece first: no piece may need another."""
    found = cut(path, reading, each)
    assert found is not None
    kinds: dict[str | None, str] = {}
    for _ in range(2):
        seen, pieces = set(), []
        for piece in reversed(range(found.pieces)):
            reader = PieceReader(found, reading, kinds)
            pieces.append(read(path, reader.reading(piece)))
            seen |= reader.seen
        if not (kinds := agreed(seen)):
            break
    values = np.concatenate(pieces[::-1])
    assert len(values) == found.rows
    return values


def numbers(path: Path, reading: Reading) -> Any:
    return read_column(path, "a", reading=reading)


def words(path: Path, reading: Reading) -> Any:
    texts = read_texts(path, "b", reading=reading)
    return texts.distinct[texts.where]


FILES = {
    "plain": "a,b\n1,x\n2,y\n3,z\n4,x\n5,y\n",
    "no last end": "a,b\n1,x\n2,y\n3,z",
    "returns": "a,b\r\n1,x\r\n2,y\r\n3,z\r\n",
    "old returns": "a,b\r1,x\r2,y\r3,z\r",
    "byte order mark": "\ufeffa,b\n1,x\n2,y\n3,z\n",
    "mark and quotes": '\ufeff"a","b"\n1,x\n2,"y"\n3,z\n',
    "blank lines": "a,b\n\n1,x\n\n\n2,y\r\n\r\n3,z\n\n",
    "line's end in quotes": 'a,b\n1,"x\ny"\n2,"p, ""q""\n\n,r"\n3,z\n4,"\r\n"\n5,""\n',
    "end in the header": '"a","b\nc"\n1,x\n2,y\n',
    "values left out": "a,b\n1,x\n,\nNA,y\nnull,\n5,z\n",
    "kinds differ": "a,b\n1,x\n2,y\n3,z\n4.5,x\n5e3,x\n9007199254740993,y\n",
    "nobody at first": "a,b\n,x\nNA,y\n,z\n4,x\n5,y\n",
    "true and one": "a,b\n1,x\n0,y\ntrue,z\nFALSE,x\n,y\n",
    "large numbers": "a,b\n1,x\n2,y\n9007199254740993,z\n-9007199254740993,x\n",
    "semicolons": "a;b\n1;x,y\n2;z\n3;\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("block", [1 << 22, 7])
def test_pieces_of_messy_files_have_the_values_of_the_whole(
    name: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_rows, "_BLOCK", block)
    path = tmp_path / "people.csv"
    path.write_bytes(FILES[name].encode())
    column = "b" if name != "end in the header" else "b\nc"

    def texts(path: Path, reading: Reading) -> Any:
        found = read_texts(path, column, reading=reading)
        return found.distinct[found.where]

    whole, spelled = numbers(path, MESSY), texts(path, MESSY)
    for each in (1, 2, 3, 100):
        found = in_pieces(path, each, numbers)
        assert found.dtype == whole.dtype
        assert found.tolist() == whole.tolist()
        assert in_pieces(path, each, texts).tolist() == spelled.tolist()


def test_random_files_are_cut_between_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(4)
    cells = ["", "x", "a b", '"q"', '"p,r"', '"two\nlines"', '"""said"""', '"\r\n"', "é", '""']
    path = tmp_path / "people.csv"
    for _ in range(40):
        end = draw.choice(["\n", "\r\n", "\r"])
        rows = [f"{draw.choice(['1', '2', '', '0.5'])},{draw.choice(cells)}" for _ in range(draw.randrange(1, 30))]
        rows = [row for each in rows for row in ([each, ""] if draw.random() < 0.1 else [each])]
        path.write_bytes(("a,b" + end + end.join(rows) + draw.choice(["", end])).encode())
        monkeypatch.setattr(csv_rows, "_BLOCK", draw.randrange(1, 60))
        each = draw.randrange(1, 9)
        assert in_pieces(path, each, words).tolist() == words(path, MESSY).tolist()
        assert in_pieces(path, each, numbers).tolist() == numbers(path, MESSY).tolist()


@pytest.mark.parametrize("text", ["a\n1\n\n3\n\n5\n", "a\n1\n\n", "a\n\n\n", "a\n1\n2"])
def test_in_a_file_of_one_column_a_blank_line_is_a_value_left_out(text: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    for each in (1, 2, 50):
        assert in_pieces(path, each, numbers).tolist() == numbers(path, MESSY).tolist()


@pytest.mark.parametrize("text", ['a,b\n1,5" pipe\n2,7" pipe\n', "\na,b\n1,2\n", 'a,b\n1,x"y"\n'])
def test_files_whose_rows_only_a_parser_knows_are_read_whole(text: str, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    assert cut(path, MESSY, 1) is None


@pytest.mark.parametrize("groups", [1, 3, 1000])
def test_pieces_of_parquet_need_not_be_its_row_groups(groups: int, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    table = pa.table({"a": pa.array([1, None, 3, 4, 5, None, 7], pa.int32()), "b": ["x", None, "é", "", "y", "x", "z"]})
    parquet.write_table(table, path, row_group_size=groups)
    for each in (1, 2, 3, 5, 7, 9):
        assert in_pieces(path, each, numbers).tolist() == numbers(path, MESSY).tolist()
        assert in_pieces(path, each, words).tolist() == words(path, MESSY).tolist()
    found = cut(path, MESSY, 2)
    assert found is not None
    reader = PieceReader(found, MESSY, {})
    forward = [numbers(path, reader.reading(piece)) for piece in (0, 1, 2, 3, 1)]
    whole = numbers(path, MESSY)
    assert [each.tolist() for each in forward] == [whole[2 * p : 2 * p + 2].tolist() for p in (0, 1, 2, 3, 1)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_pieces_of_arrays(order: Any, tmp_path: Path) -> None:
    path = tmp_path / "people.npy"
    np.save(path, np.asarray(np.arange(15.0).reshape(5, 3), order=order))
    read = lambda path, reading: read_matrix(path, reading=reading)  # noqa: E731
    for each in (1, 2, 9):
        assert in_pieces(path, each, read).tolist() == np.arange(15.0).reshape(5, 3).tolist()
    np.save(path, np.array([1, 2, 3], dtype=">u2"))
    found = in_pieces(path, 2, lambda path, reading: read_column(path, reading=reading))
    assert (found.dtype, found.tolist()) == (np.dtype("u2"), [1, 2, 3])


def test_what_is_wrong_with_a_piece_is_said_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,x\n2,y\n3,z\nold,x\n")
    found = cut(path, MESSY, 2)
    assert found is not None
    reader = PieceReader(found, MESSY, {})
    with pytest.raises(DataError) as refused:
        numbers(path, reader.reading(1))
    assert "'old' in row 4" in str(reader.blamed(1, refused.value))
    with pytest.raises(DataError, match="'old' in row 4"):
        numbers(path, MESSY)
    path.write_text("a,b\n1,x\n")
    with pytest.raises(DataError, match="must not change"):
        found.check_unchanged()


def test_true_among_numbers_is_refused_as_in_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,x\n2,y\ntrue,z\n0,x\n")
    with pytest.raises(DataError, match="must hold integers"):
        numbers(path, MESSY)
    with pytest.raises(DataError, match="must hold integers"):
        in_pieces(path, 2, numbers)
