import gzip
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shuffledp.errors import DataError
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.missing import Missing
from shuffledp.tables.reading import Reading

# Says how many rows have no value, and which is the first.
TELLS = Reading(missing=Missing(tells=True))

MATRIX = np.random.default_rng(7).integers(-8, 9, (5_000, 3)) / [1, 2, 4]
NAMES = ["x", "y", "z"]


def save(path: Path, content: Any) -> Path:
    if isinstance(content, dict | pa.Table):
        pq.write_table(pa.table(content) if isinstance(content, dict) else content, path)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refuse(path: Path, columns: Sequence[str] | None = None, *, parameter: str) -> DataError:
    with pytest.raises(DataError) as caught:
        read_matrix(path, columns, reading=TELLS)
    error = caught.value
    assert error.parameter == parameter
    message = str(error)
    assert message.startswith(f"{parameter} ") and message.endswith(".") and not message.endswith("..")
    assert "\n" not in message and ". " not in message
    assert "pyarrow" not in message and "Arrow" not in message
    return error


def matrix_in(folder: Path, kind: str, matrix: Any = MATRIX, *, users: bool = False) -> Path:
    """Save a matrix with its columns' names where the format has any, and a column of text if asked."""
    if kind == "npy":
        return save(folder / "table.npy", matrix)
    table = {"user": [f"u{i}" for i in range(len(matrix))]} if users else {}
    table |= {name: column.tolist() for name, column in zip(NAMES, matrix.T, strict=True)}
    if kind == "parquet":
        return save(folder / "table.parquet", table)
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    data = ("\n".join(lines) + "\n").encode()
    return save(folder / f"table.{kind}", gzip.compress(data) if kind == "csv.gz" else data)


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "npy"])
class TestEveryFormat:
    def test_reads_the_whole(self, tmp_path: Path, kind: str) -> None:
        matrix = read_matrix(matrix_in(tmp_path, kind))
        assert type(matrix) is np.ndarray
        assert matrix.dtype == np.float64 and matrix.dtype.isnative
        assert matrix.flags.c_contiguous and matrix.flags.writeable
        np.testing.assert_array_equal(matrix, MATRIX)

    def test_takes_the_suffix_in_any_case(self, tmp_path: Path, kind: str) -> None:
        path = matrix_in(tmp_path, kind)
        path = path.rename(tmp_path / path.name.upper())
        np.testing.assert_array_equal(read_matrix(path), MATRIX)

    def test_names_row_and_column_of_the_first_missing_value(self, tmp_path: Path, kind: str) -> None:
        gaps = MATRIX.copy()
        gaps[[2_345, 2_345, 2_346, 4_000], [2, 1, 1, 1]] = np.nan
        error = refuse(matrix_in(tmp_path, kind, gaps), parameter="column")
        assert error.value.endswith("the first in row 2346")
        name = "2" if kind == "npy" else "y"
        assert str(error).startswith(f"column {name} of table.{kind} must have a value in every row")

    def test_leaves_infinity_to_the_protocol(self, tmp_path: Path, kind: str) -> None:
        matrix = np.array([[1, np.inf, 0.5], [-np.inf, 2, 3]])
        np.testing.assert_array_equal(read_matrix(matrix_in(tmp_path, kind, matrix)), matrix)

    def test_refuses_an_empty_file(self, tmp_path: Path, kind: str) -> None:
        path = save(tmp_path / f"empty.{kind}", b"")
        assert "must not be empty" in str(refuse(path, parameter="file"))

    def test_refuses_a_file_that_is_missing(self, tmp_path: Path, kind: str) -> None:
        assert "must exist" in str(refuse(tmp_path / f"missing.{kind}", parameter="file"))

    def test_refuses_a_damaged_file(self, tmp_path: Path, kind: str) -> None:
        whole = matrix_in(tmp_path, kind).read_bytes()
        path = save(tmp_path / f"cut.{kind}", whole[: len(whole) // 2] + b"," * 9)
        refuse(path, parameter="file")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
class TestNamedColumns:
    def test_come_in_the_order_asked_for(self, tmp_path: Path, kind: str) -> None:
        path = matrix_in(tmp_path, kind, users=True)
        np.testing.assert_array_equal(read_matrix(path, ["z", "x"]), MATRIX[:, [2, 0]])
        np.testing.assert_array_equal(read_matrix(path, ("y",)), MATRIX[:, [1]])

    def test_may_hold_integers_and_booleans(self, tmp_path: Path, kind: str) -> None:
        columns = {"x": [3, -4], "y": [True, False], "z": [0.5, 2.0]}
        text = b"x,y,z\n3,true,0.5\n-4,False,2\n"
        content = {"parquet": columns, "csv": text, "csv.gz": gzip.compress(text)}[kind]
        matrix = read_matrix(save(tmp_path / f"mixed.{kind}", content))
        assert matrix.tolist() == [[3.0, 1.0, 0.5], [-4.0, 0.0, 2.0]]

    @pytest.mark.parametrize("columns", [None, ["x", "user"]])
    def test_are_refused_when_one_is_text(self, tmp_path: Path, kind: str, columns: list[str] | None) -> None:
        error = refuse(matrix_in(tmp_path, kind, users=True), columns, parameter="column")
        assert error.problem.startswith(f"user of table.{kind} must hold integers, floats or booleans")
        assert error.value == ("string" if kind == "parquet" else "string, first 'u0' in row 1")

    def test_are_listed_when_one_is_not_there(self, tmp_path: Path, kind: str) -> None:
        error = refuse(matrix_in(tmp_path, kind, users=True), ["x", "w"], parameter="column")
        assert error.value == "w"
        assert error.way_out == "it has user, x, y, z"

    def test_are_refused_when_repeated(self, tmp_path: Path, kind: str) -> None:
        error = refuse(matrix_in(tmp_path, kind), ["x", "y", "x"], parameter="columns")
        assert str(error) == "columns must name each column once, got x 2 times: remove the repetition."

    def test_are_refused_when_none_is_named(self, tmp_path: Path, kind: str) -> None:
        assert "at least one column" in str(refuse(matrix_in(tmp_path, kind), [], parameter="columns"))

    def test_are_not_the_letters_of_one_name(self, tmp_path: Path, kind: str) -> None:
        error = refuse(matrix_in(tmp_path, kind), "xyz", parameter="columns")
        assert error.way_out == "for one column write ['xyz']"


def test_refuses_an_unknown_suffix(tmp_path: Path) -> None:
    error = refuse(save(tmp_path / "data.npz", "x\n1\n"), parameter="file")
    assert ".csv, .csv.gz, .tsv, .tsv.gz, .parquet or .npy" in str(error)


def test_does_not_load_pyarrow_before_a_table_is_read() -> None:
    code = "import sys, shuffledp.tables.matrices; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestCsv:
    def test_reads_fractions_after_a_first_block_of_integers(self, tmp_path: Path) -> None:
        path = save(tmp_path / "late.csv", "x,y\n" + "1,0\n" * 1_000_000 + "0.5,0.25\n")
        matrix = read_matrix(path)
        assert matrix[-1].tolist() == [0.5, 0.25]
        assert matrix.sum(axis=0).tolist() == [1_000_000.5, 0.25]

    def test_names_row_and_column_of_text_after_the_first_block(self, tmp_path: Path) -> None:
        path = save(tmp_path / "late.csv", "user,x,y\n" + "u,1,0\n" * 1_000_000 + "u,1,yes\n" + "u,1,0\n")
        error = refuse(path, ["y", "x"], parameter="column")
        assert error.value == "string, first 'yes' in row 1000001"
        assert error.problem.startswith("y of late.csv")

    def test_names_row_and_column_missing_after_the_first_block(self, tmp_path: Path) -> None:
        path = save(tmp_path / "gaps.csv", "x,y\n" + "1,0\n" * 1_000_000 + "1,\n" + "1,0\n")
        error = refuse(path, parameter="column")
        assert error.value.endswith("the first in row 1000001")
        assert error.problem.startswith("y of gaps.csv")

    @pytest.mark.parametrize("blank", ["", '""', "NA", "nan", "NULL"])
    @pytest.mark.parametrize("other", ["1", "0.5", "true"])
    def test_refuses_missing_values(self, tmp_path: Path, blank: str, other: str) -> None:
        path = save(tmp_path / "gaps.csv", f"x,y\n1,{other}\n1,{other}\n1,{blank}\n1,{other}\n")
        error = refuse(path, parameter="column")
        assert error.value.endswith("the first in row 3")
        assert error.problem.startswith("y of")

    def test_refuses_a_blank_line_in_one_column_alone(self, tmp_path: Path) -> None:
        assert refuse(save(tmp_path / "one.csv", "x\n1\n\n2\n"), parameter="column").value.endswith(
            "the first in row 2"
        )
        assert read_matrix(save(tmp_path / "two.csv", "x,y\n1,2\n\n3,4\n")).tolist() == [[1, 2], [3, 4]]

    def test_names_the_first_text(self, tmp_path: Path) -> None:
        error = refuse(save(tmp_path / "text.csv", "x,y\n1,2\n1,old\n"), parameter="column")
        assert error.value == "string, first 'old' in row 2"

    @pytest.mark.parametrize(("text", "value"), [("1,2\n3,4\n", "1"), ("NA,2\n3,4\n", "2"), ("1,1\n3,4\n", "1")])
    def test_does_not_take_a_first_row_for_names(self, tmp_path: Path, text: str, value: str) -> None:
        assert refuse(save(tmp_path / "bare.csv", text), parameter="file").value == value

    def test_takes_numbers_for_names_when_they_are_given(self, tmp_path: Path) -> None:
        assert read_matrix(save(tmp_path / "years.csv", "2023,2024\n3,4\n"), ["2024", "2023"]).tolist() == [[4, 3]]

    def test_refuses_a_column_that_stands_twice_in_the_file(self, tmp_path: Path) -> None:
        path = save(tmp_path / "twice.csv", "x,y,x\n1,2,3\n")
        assert "2 columns have it" in str(refuse(path, parameter="column"))
        assert read_matrix(path, ["y"]).tolist() == [[2]]

    @pytest.mark.parametrize("text", ["x\n", "x,y\n", "x,y", "\n\n"])
    def test_refuses_a_header_without_rows(self, tmp_path: Path, text: str) -> None:
        assert "at least one row" in str(refuse(save(tmp_path / "header.csv", text), parameter="file"))

    def test_refuses_ragged_rows(self, tmp_path: Path) -> None:
        assert refuse(save(tmp_path / "ragged.csv", "x,y\n1,2\n1,2,3\n"), parameter="file").value == "3 in row 2"


class TestParquet:
    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32"])
    def test_takes_numbers_of_every_width(self, tmp_path: Path, dtype: str) -> None:
        values = np.array([1, 0, 1]).astype(dtype)
        assert read_matrix(save(tmp_path / "a.parquet", {"x": values, "y": values})).tolist() == [
            [1, 1],
            [0, 0],
            [1, 1],
        ]

    @pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.float16(), pa.float64(), pa.bool_()])
    def test_refuses_nulls_of_every_type(self, tmp_path: Path, kind: Any) -> None:
        cells = pa.array([1] * 2_500 + [None, 1, None], pa.int64()).cast(kind)
        error = refuse(save(tmp_path / "gaps.parquet", {"x": np.ones(2_503), "y": cells}), parameter="column")
        assert error.value.endswith("the first in row 2501")
        assert error.problem.startswith("y of")

    def test_refuses_a_column_of_nothing(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.parquet", {"x": [1, 2], "y": pa.nulls(2)})
        assert refuse(path, parameter="column").value.endswith("the first in row 1")

    def test_reads_across_row_groups(self, tmp_path: Path) -> None:
        path = tmp_path / "groups.parquet"
        pq.write_table(pa.table(dict(zip(NAMES, MATRIX.T, strict=True))), path, row_group_size=700)
        np.testing.assert_array_equal(read_matrix(path), MATRIX)

    def test_tells_a_name_from_the_path_of_a_nested_one(self, tmp_path: Path) -> None:
        path = save(tmp_path / "dots.parquet", {"a.b": [2, 2], "a": [1, 1], "b": [3, 3]})
        assert read_matrix(path, ["b", "a"]).tolist() == [[3, 1]] * 2

    def test_refuses_a_column_that_stands_twice_in_the_file(self, tmp_path: Path) -> None:
        both = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
        assert "2 columns have it" in str(refuse(save(tmp_path / "twice.parquet", both), parameter="column"))

    @pytest.mark.parametrize("table", [pa.table({}), pa.table({"x": pa.array([], pa.int64())})])
    def test_refuses_a_table_without_data(self, tmp_path: Path, table: Any) -> None:
        assert "at least one row" in str(refuse(save(tmp_path / "none.parquet", table), parameter="file"))


class TestNpy:
    @pytest.mark.parametrize("dtype", ["bool", "int8", ">i4", "uint64", "float16", ">f4", ">f8"])
    def test_takes_numbers_of_every_width(self, tmp_path: Path, dtype: str) -> None:
        matrix = read_matrix(save(tmp_path / "a.npy", np.array([[1, 0], [0, 1]], dtype=dtype)))
        assert matrix.dtype == np.float64 and matrix.dtype.isnative
        assert matrix.tolist() == [[1, 0], [0, 1]]

    def test_takes_one_dimension_for_one_column(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.npy", np.arange(5))
        assert read_matrix(path).tolist() == [[0], [1], [2], [3], [4]]

    def test_turns_columns_saved_one_after_another_into_rows(self, tmp_path: Path) -> None:
        path = save(tmp_path / "a.npy", np.asfortranarray(MATRIX))
        assert read_matrix(path).flags.c_contiguous
        np.testing.assert_array_equal(read_matrix(path), MATRIX)

    def test_has_no_names_to_choose_by(self, tmp_path: Path) -> None:
        error = refuse(save(tmp_path / "a.npy", MATRIX), ["x", "y"], parameter="columns")
        assert str(error).startswith("columns must be left out for a.npy, got x, y")

    def test_refuses_fields(self, tmp_path: Path) -> None:
        records = np.array([(1, 2.0)], dtype=[("x", "i2"), ("y", "f8")])
        assert refuse(save(tmp_path / "a.npy", records), parameter="file").value == "fields x, y"

    @pytest.mark.parametrize("shape", [(), (3, 0), (2, 3, 4)])
    def test_refuses_other_shapes(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        assert refuse(save(tmp_path / "a.npy", np.zeros(shape)), parameter="file").value == f"shape {shape}"

    @pytest.mark.parametrize("shape", [(0,), (0, 3)])
    def test_refuses_an_array_without_rows(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        assert "at least one row" in str(refuse(save(tmp_path / "a.npy", np.zeros(shape)), parameter="file"))

    def test_names_no_column_where_there_is_one_dimension(self, tmp_path: Path) -> None:
        error = refuse(save(tmp_path / "a.npy", np.array([1, np.nan])), parameter="column")
        assert str(error).startswith(
            "column of a.npy must have a value in every row, got 1 of 2 rows without one, the first in row 2"
        )

    @pytest.mark.parametrize(
        ("values", "value"), [(["a"], "<U1"), ([1j], "complex128"), (np.array([[1, None]], dtype=object), "object")]
    )
    def test_refuses_other_types(self, tmp_path: Path, values: Any, value: str) -> None:
        assert refuse(save(tmp_path / "a.npy", np.array(values)), parameter="column").value == value
