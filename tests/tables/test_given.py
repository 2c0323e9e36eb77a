"""Data where they are: frames, series, relations, arrays and lists."""

import datetime
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

import shuffledp
from harness.frames import library
from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.given import column_of, matrix_of
from shuffledp.tables.words import Texts

DAYS = [datetime.date(2026, 1, 1), None, datetime.date(2026, 1, 2)]
COLUMNS: dict[str, list[Any]] = {
    "whole": [3, None, 0],
    "real": [0.5, None, float("nan")],
    "bit": [True, None, False],
    "word": ["é", None, ""],
    "day": DAYS,
}
FILLED = {
    "whole": ("default=0", [3, 0, 0]),
    "real": ("default=1", [0.5, 1.0, 1.0]),
    "bit": ("default=false", [True, False, False]),
    "word": ("other", ["é", "missing", "missing"]),
    "day": ("default=2026-01-05", ["2026-01-01", "2026-01-05", "2026-01-02"]),
}


def pandas_frame() -> Any:
    return library("pandas").DataFrame(COLUMNS)


def nullable_frame() -> Any:
    pandas = library("pandas")
    kinds = {"whole": "Int64", "real": "Float64", "bit": "boolean", "word": "category"}
    return pandas.DataFrame({name: pandas.array(COLUMNS[name], dtype=kind) for name, kind in kinds.items()}).assign(
        day=pandas.to_datetime(pandas.Series(DAYS))
    )


def polars_frame() -> Any:
    return library("polars").DataFrame(COLUMNS)


def lazy_chunks() -> Any:
    frame = polars_frame()
    return library("polars").concat([frame[:1], frame[1:]], rechunk=False)


def arrow_table() -> Any:
    import pyarrow as pa

    return pa.table(COLUMNS)


def relation() -> Any:
    return library("duckdb").sql(
        "select * from (values (3, 0.5::double, true, 'é', date '2026-01-01'), (null, null, null, null, null), "
        "(0, 'nan'::double, false, '', date '2026-01-02')) rows(whole, real, bit, word, day)"
    )


class AnyStream:
    """Nothing but the interface itself, and names of columns."""

    def __init__(self) -> None:
        self.table = arrow_table()
        self.columns = self.table.column_names

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


FRAMES = [pandas_frame, nullable_frame, polars_frame, lazy_chunks, arrow_table, relation, AnyStream, lambda: COLUMNS]


def listed(found: Any) -> list[Any]:
    return found.distinct[found.where].tolist() if isinstance(found, Texts) else found.tolist()


@pytest.mark.parametrize("frame", FRAMES)
def test_a_column_of_whatever_holds_columns(frame) -> None:
    for name, (policy, filled) in FILLED.items():
        assert listed(column_of(frame(), name, missing=policy)) == filled
        with pytest.raises(DataError, match=f"column {name} of the data must have a value in every row, got rows"):
            column_of(frame(), name)
    assert matrix_of(frame(), ["real", "whole"], missing="default=0").tolist() == [[0.5, 3], [0, 0], [0, 0]]
    with pytest.raises(DataError, match="it has whole, real, bit, word, day"):
        column_of(frame(), "age")
    with pytest.raises(DataError, match="choose one of whole, real"):
        column_of(frame())
    with pytest.raises(DataError, match="must hold integers, floats or booleans"):
        column_of(frame(), "word", words=False)


@pytest.mark.parametrize("frame", [pandas_frame, nullable_frame, polars_frame, lazy_chunks, arrow_table])
def test_a_series_needs_no_name(frame) -> None:
    for name, (policy, filled) in FILLED.items():
        assert listed(column_of(frame()[name], missing=policy)) == filled


@pytest.mark.parametrize(
    ("values", "missing", "found"),
    [
        ([1, 0, 1], "refuse", [1, 0, 1]),
        ((1, 0), "refuse", [1, 0]),
        ([1, None], "default=0", [1, 0]),
        ([0.5, float("nan")], "default=0", [0.5, 0]),
        (["a", None, ""], "default=b", ["a", "b", "b"]),
        (["a", float("nan")], "other", ["a", "missing"]),
        ([Decimal("0.5"), None], "default=0", [0.5, 0]),
        (np.array([1.0, 0.0], dtype=np.float32), "refuse", [1.0, 0.0]),
        (np.ma.masked_array([1, 2], mask=[False, True]), "default=7", [1, 7]),
        (np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"), "default=2026-01-03", ["2026-01-01", "2026-01-03"]),
        ({"only": [True, False]}, "refuse", [True, False]),
        (np.array([(1, 2.0)], dtype=[("a", "i8"), ("b", "f8")])[["a"]], "refuse", [1]),
        (range(3), "refuse", [0, 1, 2]),
        ([None, None], "default=1", [1.0, 1.0]),
    ],
)
def test_arrays_and_lists(values, missing: str, found) -> None:
    assert listed(column_of(values, missing=missing)) == found


def test_whole_numbers_and_words_on_demand() -> None:
    assert listed(column_of([18, 99, 18], words=True)) == ["18", "99", "18"]
    assert column_of(np.array([1, 2], dtype=np.int8)).dtype == np.int8
    # A whole number beyond what floats hold stays what it is beside a missing one.
    assert column_of([(1 << 60) + 1, None], missing="default=0").tolist() == [(1 << 60) + 1, 0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "at least one person"),
        (5, "at least one person"),
        ("abc", "at least one person"),
        ([[1], [2]], "at least one person"),
        ([[1, 2], [3]], "one value a person"),
        ({}, "one value a person"),
        ([1, "a"], "several kinds of values"),
        ([1j], "complex128"),
        ([object()], "object"),
        ([b"a"], "S1"),
    ],
)
def test_anything_else_is_refused_in_a_sentence(values, said: str) -> None:
    with pytest.raises(DataError, match=said):
        column_of(values)


def test_matrices() -> None:
    assert matrix_of([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert matrix_of([[1, None], [3, 4]], missing="default=0").tolist() == [[1, 0], [3, 4]]
    for bad in ([1, 2], [], [[]], {}, [["a"]]):
        with pytest.raises(DataError):
            matrix_of(bad)
    with pytest.raises(DataError, match="have no names"):
        matrix_of([[1, 2]], ["a", "b"])


def test_frames_without_pyarrow() -> None:
    library("polars"), library("pandas"), library("duckdb")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import pandas, polars, duckdb\n"
        "from shuffledp.tables.given import column_of\n"
        "rows = {'x': [1.0, None, 0.0]}\n"
        "for frame in (pandas.DataFrame(rows), polars.DataFrame(rows), pandas.DataFrame(rows)['x'], "
        "polars.DataFrame(rows)['x'], duckdb.sql('select unnest([1.0, null, 0.0]) as x')):\n"
        "    assert column_of(frame, missing='default=0').tolist() == [1.0, 0.0, 0.0], frame\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("ask", "policy"),
    [
        (lambda **more: shuffledp.count([1, 0] * 20, method="coins", **more), "default=2"),
        (lambda **more: shuffledp.count([1, 0] * 20, method="coins", **more), "other"),
        (lambda **more: shuffledp.total([1, 0] * 20, low=0, high=1, **more), "default=3"),
        (
            lambda **more: shuffledp.histogram(["a", "b"] * 20, categories=["a", "b"], method="opt-in", **more),
            "default=c",
        ),
        (lambda **more: shuffledp.histogram([1, 2] * 20, categories=range(3), method="opt-in", **more), "other"),
    ],
)
def test_a_one_liner_refuses_a_policy_whatever_the_data_are(ask, policy: str) -> None:
    with pytest.raises(ParameterError) as caught:
        ask(epsilon=2, delta=1e-3, missing=policy)
    assert caught.value.parameter == "missing" and "row" not in str(caught.value)


def test_a_query_that_has_not_run_is_refused_in_one_sentence_and_never_half_read() -> None:
    lazy = polars_frame().lazy()
    for read in (lambda: column_of(lazy, "ones"), lambda: matrix_of(lazy)):
        with pytest.raises(DataError, match=r"got LazyFrame: call its \.collect\(\) first"):
            read()
