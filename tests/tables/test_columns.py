import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shuffledp.errors import DataError
from shuffledp.tables.columns import read_column
from shuffledp.tables.missing import Missing
from shuffledp.tables.reading import Reading

# Says how many rows have no value, and which is the first.
TELLS = Reading(missing=Missing(tells=True))

BITS = np.random.default_rng(7).integers(0, 2, 5_000)


def save(path: Path, content: Any) -> Path:
    if isinstance(content, dict | pa.Table):
        pq.write_table(pa.table(content) if isinstance(content, dict) else content, path)
    elif isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refuse(path: Path, column: str | None = None, *, parameter: str) -> DataError:
    with pytest.raises(DataError) as caught:
        read_column(path, column, reading=TELLS)
    error = caught.value
    assert error.parameter == parameter
    message = str(error)
    assert message.startswith(f"{parameter} ") and message.endswith(".") and not message.endswith("..")
    assert "\n" not in message and ". " not in message
    assert "pyarrow" not in message and "Arrow" not in message
    return error


def table_in(folder: Path, kind: str) -> Path:
    text = "user,bit,weight\n" + "".join(f"u{i},{bit},{bit / 2}\n" for i, bit in enumerate(BITS))
    if kind.startswith("csv"):
        data = text.encode()
        return save(folder / f"table.{kind}", gzip.compress(data) if kind == "csv.gz" else data)
    columns = {"user": [f"u{i}" for i in range(len(BITS))], "bit": BITS, "weight": BITS / 2}
    if kind == "parquet":
        return save(folder / "table.parquet", columns)
    fields = [("user", "U8"), ("bit", "i8"), ("weight", "f8")]
    return save(folder / "table.npy", np.array(list(zip(*columns.values(), strict=True)), dtype=fields))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "npy"])
class TestEveryFormat:
    def test_reads_the_whole(self, tmp_path: Path, kind: str) -> None:
        column = read_column(table_in(tmp_path, kind), "bit")
        np.testing.assert_array_equal(column, BITS)
        assert column.dtype == np.int64 and column.flags.writeable and not isinstance(column, np.memmap)

    def test_reads_floats(self, tmp_path: Path, kind: str) -> None:
        weights = read_column(table_in(tmp_path, kind), "weight")
        assert weights.dtype == np.float64
        np.testing.assert_array_equal(weights, BITS / 2)

    def test_takes_the_suffix_in_any_case(self, tmp_path: Path, kind: str) -> None:
        path = table_in(tmp_path, kind)
        path = path.rename(tmp_path / path.name.upper())
        np.testing.assert_array_equal(read_column(path, "bit"), BITS)

    def test_refuses_a_column_that_is_not_there(self, tmp_path: Path, kind: str) -> None:
        error = refuse(table_in(tmp_path, kind), "bits", parameter="column")
        assert error.value == "bits"
        assert error.way_out == "it has user, bit, weight"

    def test_wants_a_column_where_there_are_several(self, tmp_path: Path, kind: str) -> None:
        error = refuse(table_in(tmp_path, kind), parameter="column")
        assert error.value is None
        assert error.way_out == "choose one of user, bit, weight"

    def test_refuses_text(self, tmp_path: Path, kind: str) -> None:
        error = refuse(table_in(tmp_path, kind), "user", parameter="column")
        assert error.problem.startswith("user of table.")
        if kind.startswith("csv"):
            assert error.value == "string, first 'u0' in row 1"
        else:
            assert error.value == {"parquet": "string", "npy": "<U8"}[kind]

    def test_refuses_an_empty_file(self, tmp_path: Path, kind: str) -> None:
        path = save(tmp_path / f"empty.{kind}", b"")
        error = refuse(path, "x", parameter="file")
        assert error.value == str(path)
        assert "must not be empty" in str(error)

    def test_refuses_a_file_that_is_missing(self, tmp_path: Path, kind: str) -> None:
        path = tmp_path / f"missing.{kind}"
        error = refuse(path, "x", parameter="file")
        assert error.value == str(path)
        assert "must exist" in str(error)


def test_refuses_a_directory(tmp_path: Path) -> None:
    folder = tmp_path / "data.csv"
    folder.mkdir()
    error = refuse(folder, parameter="file")
    assert error.value == str(folder)
    assert "directory" in str(error)


@pytest.mark.parametrize("name", ["data.txt", "data", "data.npz", "data.json.gz"])
def test_refuses_an_unknown_suffix(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / name, "x\n1\n")
    error = refuse(path, parameter="file")
    assert error.value == str(path)
    assert ".csv, .csv.gz, .tsv, .tsv.gz, .parquet or .npy" in str(error)


def test_lists_at_most_ten_columns(tmp_path: Path) -> None:
    path = save(tmp_path / "wide.csv", ",".join(f"c{i}" for i in range(25)) + "\n" + ",".join("1" * 25) + "\n")
    error = refuse(path, "x", parameter="column")
    assert error.way_out == "it has c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 15 more"


def test_does_not_load_pyarrow_before_a_table_is_read() -> None:
    code = (
        "import sys, shuffledp.tables, shuffledp.tables.columns, shuffledp.tables.whole;"
        "sys.exit('pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestCsv:
    @pytest.mark.parametrize(
        ("text", "values", "dtype"),
        [
            ("x\n1\n0\n", [1, 0], np.int64),
            ("x\n1\n0", [1, 0], np.int64),
            ("x\r\n1\r\n0\r\n", [1, 0], np.int64),
            ("\ufeffx\n1\n0\n", [1, 0], np.int64),
            ("x\ntrue\nFalse\n", [True, False], np.bool_),
            ("x\n1\n0.5\n", [1.0, 0.5], np.float64),
            ("x\n1\ninf\n", [1.0, np.inf], np.float64),
        ],
    )
    def test_needs_no_name_for_one_column(self, tmp_path: Path, text: str, values: list[Any], dtype: Any) -> None:
        column = read_column(save(tmp_path / "one.csv", text))
        assert column.dtype == dtype
        assert column.tolist() == values

    def test_reads_past_text_with_line_ends_at_block_boundaries(self, tmp_path: Path) -> None:
        row = '1,"' + "word\n0,word " * 40 + '"\n'
        path = save(tmp_path / "text.csv", "x,note\n" + row * 20_000)
        assert path.stat().st_size > 4 * (1 << 21)
        assert int(read_column(path, "x").sum()) == 20_000

    def test_skips_blank_lines_between_rows_of_several_values(self, tmp_path: Path) -> None:
        assert read_column(save(tmp_path / "a.csv", "x,y\n1,2\n\n0,3\n\n"), "x").tolist() == [1, 0]

    @pytest.mark.parametrize("text", ["x\n", "x,y\n", "x", "x,y", "\n\n"])
    def test_refuses_a_header_without_rows(self, tmp_path: Path, text: str) -> None:
        path = save(tmp_path / "header.csv", text)
        error = refuse(path, "x", parameter="file")
        assert error.value == str(path)
        assert "at least one row" in str(error)

    def test_refuses_a_column_named_twice(self, tmp_path: Path) -> None:
        path = save(tmp_path / "twice.csv", "x,y,x\n1,2,3\n")
        error = refuse(path, "x", parameter="column")
        assert error.value == "x"
        assert "2 columns have it" in str(error)
        assert read_column(path, "y").tolist() == [2]

    def test_does_not_take_a_first_value_for_a_name(self, tmp_path: Path) -> None:
        path = save(tmp_path / "bare.csv", "1\n0\n0\n")
        error = refuse(path, parameter="file")
        assert error.value == "1"
        assert read_column(path, "1").tolist() == [0, 0]

    @pytest.mark.parametrize("blank", ["", '""', "NA", "nan", "NULL"])
    @pytest.mark.parametrize("other", ["1", "0.5", "true"])
    def test_refuses_missing_values(self, tmp_path: Path, blank: str, other: str) -> None:
        path = save(tmp_path / "gaps.csv", f"x\n{other}\n{other}\n{blank}\n{other}\n{blank}\n")
        error = refuse(path, "x", parameter="column")
        assert error.value.endswith("the first in row 3")

    def test_names_a_missing_row_beyond_the_first_block(self, tmp_path: Path) -> None:
        path = save(tmp_path / "gaps.csv", "x,y\n" + "1,0\n" * 2_500_000 + ",0\n" + "1,0\n")
        assert refuse(path, "x", parameter="column").value.endswith("the first in row 2500001")

    def test_refuses_a_column_of_nothing(self, tmp_path: Path) -> None:
        path = save(tmp_path / "gaps.csv", "x,y\n,1\n,2\n")
        assert refuse(path, "x", parameter="column").value.endswith("the first in row 1")

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("x\n1\n0\nyes\n0\n", "string, first 'yes' in row 3"),
            ("x\n1\n\nyes\n0\n", "string, first 'yes' in row 3"),
            ('x\n1\n"1,000"\n', "string, first '1,000' in row 2"),
            ("x\ntrue\n2\n", "string, first 'true' in row 1"),
            ("x\n2024-05-01\n", "string, first '2024-05-01' in row 1"),
            ('x\n1\n"a\nb"\n', "string, first 'a\\nb' in row 2"),
            (f"x\n1\n{'z' * 99}\n", f"string, first '{'z' * 40}…' in row 2"),
            (b"x\n1\n\xe9t\xe9\n", "string, first '\ufffdt\ufffd' in row 2"),
        ],
    )
    def test_names_the_first_text(self, tmp_path: Path, text: str | bytes, value: str) -> None:
        assert refuse(save(tmp_path / "text.csv", text), "x", parameter="column").value == value

    @pytest.mark.parametrize(
        ("first", "later", "said"), [("1", "yes", "'yes' in row 500001"), ("", "x", "'x' in row 500001")]
    )
    def test_names_the_first_text_behind_the_first_block(
        self, tmp_path: Path, first: str, later: str, said: str
    ) -> None:
        note = "a note that fills blocks"
        path = save(tmp_path / "late.csv", "x,y\n" + f"{first},{note}\n" * 500_000 + f"{later},0\n" + "1,0\n" * 9)
        assert refuse(path, "x", parameter="column").value == f"string, first {said}"

    @pytest.mark.parametrize(
        ("first", "later", "kind"), [("1", "0.5", "f"), ("1", "true", "b"), ("0", "9223372036854775808", "f")]
    )
    def test_a_kind_is_that_of_all_rows_not_of_the_first(
        self, tmp_path: Path, first: str, later: str, kind: str
    ) -> None:
        note = "a note that fills blocks"
        path = save(tmp_path / "late.csv", "x,y\n" + f"{first},{note}\n" * 200_000 + f"{later},0\n")
        column = read_column(path, "x")
        assert column.dtype.kind == kind and len(column) == 200_001
        assert column[0] == float(first) and column[-1] == (True if later == "true" else float(later))

    @pytest.mark.parametrize(
        ("rows", "value"),
        [
            ("1,2\n1,2,3\n", "3 in row 2"),
            ("1,2\n1,2\n1\n", "1 in row 3"),
            ("1,2\n" * 1_500_000 + "1\n", "1 in row 1500001"),
        ],
    )
    def test_refuses_ragged_rows(self, tmp_path: Path, rows: str, value: str) -> None:
        error = refuse(save(tmp_path / "ragged.csv", "x,y\n" + rows), "x", parameter="file")
        assert error.value == value
        assert "in every row as in its header (2)" in str(error)

    def test_refuses_a_ragged_row_that_is_not_utf8(self, tmp_path: Path) -> None:
        path = save(tmp_path / "ragged.csv", b"x,y\n1,2\n1,\xff,\xfe\n")
        assert refuse(path, "x", parameter="file").value == "3 in row 2"

    def test_refuses_a_quote_left_open_over_a_block(self, tmp_path: Path) -> None:
        path = save(tmp_path / "open.csv", 'x,y\n1,2\n1,"2\n' + "1,2\n" * 4_000_000)
        assert refuse(path, "x", parameter="file").value == str(path)

    def test_refuses_another_encoding(self, tmp_path: Path) -> None:
        path = save(tmp_path / "latin.csv", b"\xe9t\xe9,x\n1,2\n")
        error = refuse(path, "x", parameter="file")
        assert error.value == str(path)
        assert "UTF-8" in str(error)
        refuse(save(tmp_path / "wide.csv", "x,y\n1,2\n".encode("utf-16")), "x", parameter="file")

    @pytest.mark.parametrize("damage", ["cut", "altered", "plain"])
    def test_refuses_damaged_gzip(self, tmp_path: Path, damage: str) -> None:
        whole = gzip.compress(("x\n" + "1\n0\n" * 50_000).encode())
        data = {
            "cut": whole[: len(whole) // 2],
            "altered": whole[:60] + b"zz" + whole[62:],
            "plain": b"x\n1\n",
        }
        path = save(tmp_path / "bad.csv.gz", data[damage])
        assert refuse(path, "x", parameter="file").value == str(path)


class TestParquet:
    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "int64"])
    def test_keeps_integers_and_booleans_as_they_are(self, tmp_path: Path, dtype: str) -> None:
        column = read_column(save(tmp_path / "a.parquet", {"x": BITS.astype(dtype)}))
        assert column.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(column, BITS)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_widens_floats(self, tmp_path: Path, dtype: str) -> None:
        column = read_column(save(tmp_path / "a.parquet", {"x": BITS.astype(dtype)}))
        assert column.dtype == np.float64
        np.testing.assert_array_equal(column, BITS)

    def test_reads_across_row_groups(self, tmp_path: Path) -> None:
        path = tmp_path / "groups.parquet"
        pq.write_table(pa.table({"x": BITS}), path, row_group_size=700)
        np.testing.assert_array_equal(read_column(path, "x"), BITS)

    def test_tells_a_name_from_the_path_of_a_nested_one(self, tmp_path: Path) -> None:
        path = save(tmp_path / "dots.parquet", {"a.b": [2, 2], "a": [1, 1]})
        assert read_column(path, "a").tolist() == [1, 1]
        assert read_column(path, "a.b").tolist() == [2, 2]

    def test_refuses_a_table_without_rows(self, tmp_path: Path) -> None:
        path = save(tmp_path / "none.parquet", {"x": pa.array([], pa.int64())})
        assert refuse(path, "x", parameter="file").value == str(path)

    def test_refuses_a_table_without_columns(self, tmp_path: Path) -> None:
        path = save(tmp_path / "none.parquet", pa.table({}))
        assert refuse(path, "x", parameter="file").value == str(path)

    def test_refuses_a_column_named_twice(self, tmp_path: Path) -> None:
        both = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
        assert refuse(save(tmp_path / "twice.parquet", both), "x", parameter="column").value == "x"

    @pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.bool_(), pa.float16()])
    def test_refuses_missing_values(self, tmp_path: Path, kind: Any) -> None:
        cells = pa.array([1] * 2_500 + [None, 1, None], pa.int64()).cast(kind)
        path = save(tmp_path / "gaps.parquet", {"x": cells})
        assert refuse(path, "x", parameter="column").value.endswith("the first in row 2501")

    def test_refuses_not_a_number_as_missing(self, tmp_path: Path) -> None:
        path = save(tmp_path / "gaps.parquet", {"x": pa.array([1.0, float("nan"), None])})
        assert refuse(path, "x", parameter="column").value.endswith("the first in row 2")

    @pytest.mark.parametrize("cells", [pa.nulls(3), pa.array([None] * 3, pa.int8())])
    def test_refuses_a_column_of_nothing(self, tmp_path: Path, cells: Any) -> None:
        assert refuse(save(tmp_path / "a.parquet", {"x": cells}), parameter="column").value.endswith(
            "the first in row 1"
        )

    @pytest.mark.parametrize(
        ("cells", "value"),
        [
            (pa.array(["1"]), "string"),
            (pa.array([[1]]), "list<element: int64>"),
            (pa.array([1]).cast(pa.decimal128(19)), "decimal128(19, 0)"),
            (pa.array([0], pa.timestamp("ms")), "timestamp[ms]"),
            (pa.array([{"a": 1}]), "struct<a: int64>"),
        ],
    )
    def test_refuses_other_types(self, tmp_path: Path, cells: Any, value: str) -> None:
        assert refuse(save(tmp_path / "a.parquet", {"x": cells}), "x", parameter="column").value == value

    @pytest.mark.parametrize("damage", ["cut", "head", "page", "text"])
    def test_refuses_a_damaged_file(self, tmp_path: Path, damage: str) -> None:
        path = tmp_path / "bad.parquet"
        pq.write_table(pa.table({"x": np.arange(50_000)}), path, write_page_checksum=True)
        whole = path.read_bytes()
        middle = len(whole) // 2
        damaged = {
            "cut": whole[:middle],
            "head": whole[:4] + b"\xff" * 40 + whole[44:],
            "page": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "text": b"x,y\n1,2\n",
        }
        error = refuse(save(path, damaged[damage]), "x", parameter="file")
        assert error.value == str(path)
        assert "undamaged Parquet file" in str(error)


class TestNpy:
    @pytest.mark.parametrize("dtype", ["bool", "int8", "<u2", ">i4", "uint64"])
    def test_keeps_integers_and_booleans_as_they_are(self, tmp_path: Path, dtype: str) -> None:
        column = read_column(save(tmp_path / "a.npy", BITS.astype(dtype)))
        assert column.dtype == np.dtype(dtype).newbyteorder("=")
        assert column.dtype.isnative
        np.testing.assert_array_equal(column, BITS)

    @pytest.mark.parametrize("dtype", ["float16", ">f4", "float64"])
    def test_widens_floats(self, tmp_path: Path, dtype: str) -> None:
        assert read_column(save(tmp_path / "a.npy", BITS.astype(dtype))).dtype == np.float64

    def test_ignores_a_name_where_there_is_none(self, tmp_path: Path) -> None:
        np.testing.assert_array_equal(read_column(save(tmp_path / "a.npy", BITS), "x"), BITS)

    def test_needs_no_name_for_one_field(self, tmp_path: Path) -> None:
        records = np.array([(1,), (0,)], dtype=[("x", "i2")])
        assert read_column(save(tmp_path / "a.npy", records)).tolist() == [1, 0]

    def test_refuses_an_array_without_values(self, tmp_path: Path) -> None:
        path = save(tmp_path / "none.npy", np.zeros(0))
        assert refuse(path, parameter="file").value == str(path)

    @pytest.mark.parametrize("shape", [(), (3, 2), (3, 1)])
    def test_refuses_other_shapes(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        assert refuse(save(tmp_path / "a.npy", np.zeros(shape)), parameter="file").value == f"shape {shape}"

    def test_refuses_not_a_number_as_missing(self, tmp_path: Path) -> None:
        values = np.ones(3_000)
        values[[2_345, 2_900]] = np.nan
        error = refuse(save(tmp_path / "gaps.npy", values), parameter="column")
        assert error.value.endswith("the first in row 2346")
        assert str(error).startswith("column of gaps.npy must have a value in every row")

    @pytest.mark.parametrize(
        ("values", "value"),
        [
            (np.array(["a"]), "<U1"),
            (np.array([1j]), "complex128"),
            (np.array(["2024-05-01"], dtype="datetime64[D]"), "datetime64[D]"),
            (np.array([1, None], dtype=object), "object"),
        ],
    )
    def test_refuses_other_types(self, tmp_path: Path, values: Any, value: str) -> None:
        assert refuse(save(tmp_path / "a.npy", values), parameter="column").value == value

    @pytest.mark.parametrize("damage", ["cut", "stub", "magic", "header", "bracket", "text", "pickle"])
    def test_refuses_a_damaged_file(self, tmp_path: Path, damage: str) -> None:
        path = save(tmp_path / "bad.npy", np.arange(1_000))
        whole = path.read_bytes()
        damaged = {
            "cut": whole[:500],
            "stub": whole[:5],
            "magic": b"\x00" + whole[1:],
            "header": whole[:12] + b"\xff" * 20 + whole[32:],
            "bracket": whole.replace(b"(1000,)", b"(1000,("),
            "text": b"x\n1\n",
            "pickle": b"\x80\x04N.",
        }
        error = refuse(save(path, damaged[damage]), parameter="file")
        assert error.value == str(path)
        assert "undamaged .npy file" in str(error)
