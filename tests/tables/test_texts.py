"""Columns of words, exactly as they are written."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp.errors import DataError
from shuffledp.tables.missing import Missing
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import LONGEST_TEXT, Texts, read_texts

OTHER = Reading(missing=Missing.of("other"))


def rows(texts: Texts) -> list[str]:
    return [str(word) for word in texts.distinct[texts.where]]


@pytest.fixture
def written(tmp_path: Path):
    def write(content: Any, name: str = "t.csv") -> Path:
        path = tmp_path / name
        if isinstance(content, dict):
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(content), path)
        elif isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_text(content)
        return path

    return write


def test_text_is_kept_as_it_is(written) -> None:
    file = written('x,n\n007,1\n"a, ""b""",2\nNA,3\nnull,4\n1.0,5\ntrue,6\n')
    assert rows(read_texts(file, "x")) == ["007", 'a, "b"', "NA", "null", "1.0", "true"]
    assert rows(read_texts(file, "n")) == list("123456")


def test_types_of_parquet_and_npy(written) -> None:
    import pyarrow as pa

    table = {
        "words": ["b", "a", "b"],
        "coded": pa.array(["x", "y", "x"]).dictionary_encode(),
        "numbers": [3, 1, 3],
        "days": [datetime.date(2026, 1, day) for day in (1, 2, 1)],
        "floats": [0.5, 1.0, 2.0],
    }
    file = written(table, "t.parquet")
    assert rows(read_texts(file, "words")) == ["b", "a", "b"] and rows(read_texts(file, "coded")) == ["x", "y", "x"]
    assert rows(read_texts(file, "numbers")) == ["3", "1", "3"]
    assert rows(read_texts(file, "days")) == ["2026-01-01", "2026-01-02", "2026-01-01"]
    with pytest.raises(DataError, match="names, whole numbers or dates, got double"):
        read_texts(file, "floats")
    assert rows(read_texts(written(np.array(["b", "a"]), "t.npy"))) == ["b", "a"]
    with pytest.raises(DataError, match="got float64"):
        read_texts(written(np.array([0.5]), "f.npy"))
    with pytest.raises(DataError, match="one dimension"):
        read_texts(written(np.array([["a"]]), "m.npy"))


def test_distinct_words_are_in_the_order_of_their_first_rows(written) -> None:
    words = [f"w{(7 * row) % 1000}" for row in range(300_000)]
    texts = read_texts(written("x\n" + "\n".join(words) + "\n"))
    assert texts.distinct.tolist() == words[:1000] and rows(texts) == words and len(texts) == 300_000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("x,y\na,1\n,2\n", "the first in row 2"),
        ("x\na\n\nb\n", "the first in row 2"),
        ("x\n", "at least one row"),
        ("y\na\n", "column must be a column of t.csv, got x"),
        ("x\nb\n" + "a" * (LONGEST_TEXT + 1) + "\n", f"{LONGEST_TEXT + 1} in row 2"),
        ("x,y\na\n", "as many values in every row"),
    ],
)
def test_bad_files_are_named(written, content: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_texts(written(content), "x", reading=Reading(missing=Missing(tells=True)))


def test_a_missing_value_may_count_as_another(written) -> None:
    assert rows(read_texts(written("x,y\na,1\n,2\n"), "x", reading=OTHER, other="other")) == ["a", "other"]
    assert rows(read_texts(written({"x": ["a", None]}, "t.parquet"), "x", reading=OTHER)) == ["a", "missing"]
