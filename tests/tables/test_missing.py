"""People without a value report something public, by one policy for all tables."""

from pathlib import Path

import numpy as np
import pytest

from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.columns import read_column
from shuffledp.tables.given import matrix_of
from shuffledp.tables.matrices import read_matrix
from shuffledp.tables.missing import Missing
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import read_texts
from shuffledp.tables.words import Texts

BLANK = np.array([False, True, False])


@pytest.mark.parametrize(
    ("values", "policy", "filled", "kind"),
    [
        ([1, 9, 0], "default=0", [1, 0, 0], "int64"),
        ([1, 9, 0], "default -3", [1, -3, 0], "int64"),
        ([1, 9, 0], "default=0.5", [1, 0.5, 0], "float64"),
        ([0.5, 9, 0], "default=1", [0.5, 1, 0], "float64"),
        ([True, False, True], "default=0", [True, False, True], "bool"),
        ([True, False, True], "default=true", [True, True, True], "bool"),
        ([True, False, True], "default=2", [1, 2, 1], "float64"),
    ],
)
def test_a_public_number_keeps_the_kind_where_it_can(values, policy: str, filled, kind: str) -> None:
    found = Missing.of(policy).fill_numbers(np.array(values), BLANK, "x", "t.csv")
    assert found.tolist() == filled and found.dtype == kind


def test_a_public_number_too_wide_for_the_column_is_not_wrapped() -> None:
    found = Missing.of("default=300").fill_numbers(np.array([1, 9, 2], dtype=np.uint8), BLANK, "x", "t.csv")
    assert found.tolist() == [1, 300, 2]
    # A whole number beyond 2^53 survives beside a missing one.
    large = np.array([(1 << 60) + 1, 0, 5])
    assert Missing.of("default=0").fill_numbers(large, BLANK, "x", "t.csv").tolist() == [(1 << 60) + 1, 0, 5]


@pytest.mark.parametrize("rule", [None, "refuse"])
def test_a_refusal_tells_neither_how_many_nor_which(rule) -> None:
    with pytest.raises(DataError) as caught:
        Missing.of(rule).fill_numbers(np.arange(3), BLANK, "x", "t.csv")
    message = str(caught.value)
    assert 'missing="default=VALUE"' in message and not any(digit in message for digit in "0123456789")
    with pytest.raises(DataError, match="1 of 3 rows without one, the first in row 2"):
        Missing.of(rule, tells=True).fill_numbers(np.arange(3), BLANK, "x", "t.csv")


@pytest.mark.parametrize("given", ["", "drop", "default", "default=", "default= ", "REFUSE", ["other"]])
def test_no_policy_is_guessed(given) -> None:
    with pytest.raises(ParameterError, match="must be refuse, other or default=VALUE") as caught:
        Missing.of(given)
    assert caught.value.parameter == "missing"


@pytest.mark.parametrize("given", ["other", "default=blue", "default=inf", "default=nan", "default=1e400"])
def test_numbers_need_a_number_whether_or_not_somebody_has_none(given: str) -> None:
    for blank in (BLANK, np.zeros(3, dtype=np.bool_)):
        with pytest.raises(ParameterError) as caught:
            Missing.of(given).fill_numbers(np.arange(3), blank, "x", "t.csv")
        assert caught.value.parameter == "missing"


def test_words() -> None:
    texts = Texts.of(["b", "", "a", "b", ""])

    def rows(policy: str | None, other: str | None = None) -> list[str]:
        found = texts.complete(Missing.of(policy), other, "x", "t.csv")
        assert len(set(found.distinct.tolist())) == found.distinct.size and "" not in found.distinct
        assert [found.where.tolist().index(place) for place in range(found.distinct.size)] == sorted(
            found.where.tolist().index(place) for place in range(found.distinct.size)
        )
        return [str(word) for word in found.distinct[found.where]]

    assert rows("other") == ["b", "missing", "a", "b", "missing"]
    assert rows("other", "rest") == ["b", "rest", "a", "b", "rest"]
    assert rows("default=a") == ["b", "a", "a", "b", "a"]
    # A catch-all has them where nothing was said; `refuse` refuses all the same.
    assert rows(None, "rest") == ["b", "rest", "a", "b", "rest"]
    for policy, other in ((None, None), ("refuse", "rest")):
        with pytest.raises(DataError, match="rows without one"):
            rows(policy, other)
    nobody = Texts.of(["", ""]).complete(Missing.of("default=a"), None, "x", "t.csv")
    assert nobody.distinct.tolist() == ["a"] and nobody.where.tolist() == [0, 0]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_every_format_has_the_same_policy(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"t.{suffix}"
    if suffix == "csv":
        file.write_text("x,w\n1,a\n,\nnan,b\n")
    elif suffix == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"x": [1.0, None, float("nan")], "w": ["a", None, ""]}), file)
    else:
        fields = [("x", "f8"), ("w", "U1")]
        np.save(file, np.array([(1.0, "a"), (np.nan, ""), (np.nan, "b")], dtype=fields))
    reading = Reading(missing=Missing.of("default=7"))
    assert read_column(file, "x", reading=reading).tolist() == [1, 7, 7]
    words = read_texts(file, "w", reading=reading)
    expected = ["a", "7", "7"] if suffix == "parquet" else ["a", "7", "b"]
    assert words.distinct[words.where].tolist() == expected
    if suffix != "npy":
        assert read_matrix(file, ["x"], reading=reading).tolist() == [[1], [7], [7]]
    else:
        np.save(file, np.array([[1.0, np.nan], [np.nan, 2.0]]))
        assert read_matrix(file, reading=reading).tolist() == [[1, 7], [7, 2]]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_every_column_may_have_a_public_value_of_its_own(tmp_path: Path, suffix: str) -> None:
    file, names = tmp_path / f"t.{suffix}", ("x", "y")
    if suffix == "csv":
        file.write_text("x,y,w\n1,,a\n,2,\n")
    elif suffix == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"x": [1.0, None], "y": [None, 2.0], "w": ["a", None]}), file)
    else:
        np.save(file, np.array([[1.0, np.nan], [np.nan, 2.0]]))
        names = ("1", "2")

    def reading(text: str) -> Reading:
        return Reading(missing=Missing.of(text, several=True, is_option=True))

    x, y = names
    chosen = None if suffix == "npy" else list(names)
    assert read_matrix(file, chosen, reading=reading(f"{x}=7,{y}=8")).tolist() == [[1, 8], [7, 2]]
    assert read_matrix(file, chosen, reading=reading(f"{x}=7,default=9")).tolist() == [[1, 9], [7, 2]]
    # Who is not named is refused, in a sentence that names the column; so is a value that is no number.
    with pytest.raises(DataError, match=f"column {y} .* --missing {y}=VALUE"):
        read_matrix(file, chosen, reading=reading(f"{x}=7"))
    for text, words in ((f"{x}=blue,{y}=1", f"got {x}=blue"), (f"z=1,{y}=1", f"got z=1: it has {x}, {y}")):
        with pytest.raises(ParameterError, match=words) as caught:
            read_matrix(file, chosen, reading=reading(text))
        assert caught.value.parameter == "missing"
    if suffix != "npy":
        texts = read_texts(file, "w", reading=reading('x=7,"w=b,c"'))
        assert texts.distinct[texts.where].tolist() == ["a", "b,c"]
        assert read_column(file, "y", reading=reading("y=8,x=7")).tolist() == [8, 2]
        with pytest.raises(DataError, match=r"column w .* --missing w=VALUE"):
            read_texts(file, "w", reading=reading("x=7"))


def test_values_of_columns_are_typed_again_as_they_were_and_only_where_columns_have_names() -> None:
    for text in ("age=40,city=Oslo", 'age=40,"city=Łódź, centre",default=0', "when=2026-01-01T10:30,x=a=b"):
        policy = Missing.of(text, several=True)
        assert policy.typed == text and policy.is_said and Reading(missing=policy).said == {"missing": text}
        with pytest.raises(ParameterError, match="must be refuse, other or default=VALUE"):
            Missing.of(text)
        with pytest.raises(ParameterError, match="which have no names here"):
            policy.of_column(None)
        assert Reading(missing=policy).refusing().missing.of_column("age").rule == "refuse"
    for wrong in ("age=", "=3", "age=1,age=2", "age=1,city", "age=1,,x=2"):
        with pytest.raises(ParameterError, match="COLUMN=VALUE, each column once"):
            Missing.of(wrong, several=True)
    assert matrix_of({"a": [1, None], "b": [None, 2]}, missing="a=3,b=4").tolist() == [[1, 4], [3, 2]]
    with pytest.raises(ParameterError, match=r"got c=4: it has a, b"):
        matrix_of({"a": [1, None], "b": [None, 2]}, missing="a=3,c=4")
