"""The answer of a query as a table."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.frames import library
from shuffledp.errors import DataError
from shuffledp.tables.columns import read_column
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.missing import Missing
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import read_texts


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    duckdb = library("duckdb")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = {"age": [30, None, 50], "city": ["Kyōto", "", "Łódź"], "clicked": ["yes", "no", "yes"]}
    found = {name: tmp_path / f"people.{name}" for name in ("csv", "parquet", "duckdb")}
    found["csv"].write_text("age;city;clicked\n30;Kyōto;yes\n;;no\n50;Łódź;yes\n")
    pq.write_table(pa.table(rows), found["parquet"])
    with duckdb.connect(str(found["duckdb"])) as database:
        database.execute("create table data as select * from read_parquet(?)", [str(found["parquet"])])
    return found


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_a_row_a_person(files, kind: str) -> None:
    def reading(sql: str, missing: str = "refuse") -> Reading:
        return Reading(sql=sql, missing=Missing.of(missing))

    answer = reading("select clicked = 'yes' as clicked from data")
    assert read_column(files[kind], reading=answer).tolist() == [True, False, True]
    assert read_column(files[kind], "age", reading=reading("from data", "default=0")).tolist() == [30, 0, 50]
    with pytest.raises(DataError, match=f"age of the query on people.{kind} must have a value in every row"):
        read_column(files[kind], "age", reading=reading("select age from data"))
    texts = read_texts(files[kind], "city", reading=reading("from data", "other"))
    assert texts.distinct[texts.where].tolist() == ["Kyōto", "missing", "Łódź"]
    both = reading("select coalesce(age, 0) as a, coalesce(age, 0) + 1 as b from data")
    assert read_matrix(files[kind], reading=both).tolist() == [[30, 31], [0, 1], [50, 51]]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select nothing from data", 'sql failed .*"nothing" not found'),
        ("selec age", "sql failed .*syntax error"),
        ("drop table data", "must be one query"),
        ("copy data to 'out.csv'", "must be one query"),
        ("select 1; select 2", "must be one query"),
        ("", "must be one query"),
        ("select age from data where false", "at least one row"),
        ("select 'a' as x", "must hold integers, floats or booleans"),
        ("select age, city from data", "choose one of age, city"),
    ],
)
def test_a_query_that_does_not_answer_is_refused_in_a_sentence(files, sql: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        read_column(files["duckdb"], reading=Reading(sql=sql))
    assert "\n" not in str(caught.value)


def test_a_database_needs_a_query_and_a_query_a_file(files, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sql must say what to read from people"):
        read_column(files["duckdb"])
    with pytest.raises(DataError, match="sql cannot read standard input"):
        read_column(Path("-"), reading=Reading(sql="from data"))
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(b"nothing of the kind" * 1000)
    with pytest.raises(DataError, match="sql failed"):
        read_column(broken, reading=Reading(sql="select 1"))
    before = files["duckdb"].read_bytes()
    read_column(files["duckdb"], reading=Reading(sql="select 1"))
    assert files["duckdb"].read_bytes() == before


def test_the_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    code = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from pathlib import Path; from shuffledp.tables.columns import read_column\n"
        "from shuffledp.tables.reading import Reading\n"
        "read_column(Path(sys.argv[1]), reading=Reading(sql='from data'))\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "t.csv")]
    assert (
        "pip install 'shuffledp[duckdb]'" in subprocess.run(words, check=False, capture_output=True, text=True).stderr
    )
