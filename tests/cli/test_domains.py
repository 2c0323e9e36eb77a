"""Domains as they are written on the command line."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp.cli.asked import Asked
from shuffledp.cli.domains import encode_texts, occurring, parse_domain, parse_names, read_codes, read_own_values
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.categories import Dates, Hashed, Integers, Names
from shuffledp.protocols.domains.summed import Bits
from shuffledp.tables.missing import Missing
from shuffledp.tables.reading import Reading
from shuffledp.tables.texts import Texts


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("red,green", Names(("red", "green"))),
        (" red , dark green", Names(("red", "dark green"))),
        ("1,2,3", Names(("1", "2", "3"))),
        ("0:9", Integers(0, 9)),
        ("-5:5", Integers(-5, 5)),
        ("2024-02-28:2024-03-01", Dates("2024-02-28", "2024-03-01")),
        ("hash:1000", Hashed(1000)),
        ('"a,b",c', Names(("a,b", "c"))),
        ('c, "say ""hi"", twice", "hash:9"', Names(("c", 'say "hi", twice', "hash:9"))),
        ('5" disk,x', Names(('5" disk', "x"))),
        ("hash:1000:a:b", Hashed(1000, "a:b")),
    ],
)
def test_what_a_text_means(text: str, meant) -> None:
    assert parse_domain(text) == meant
    # And the options that are printed ask for the same again.
    typed = shlex.split(meant.options)[1]
    assert parse_domain(typed) == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must not be empty"),
        ("red", "at least two"),
        ("missing.txt", "path of a file"),
        ("red,,green", "between any two commas"),
        ("red,green,red", "once, got red twice"),
        ("5:5", "at least two"),
        ("9:1", "end before it begins"),
        ("2026-02-30:2026-03-01", "must be a date, got 2026-02-30"),
        ("2026-03-01:2026-02-01", "end before it begins"),
        ("hash:", "how many cells"),
        ("hash:1", "at least two"),
        ("hash:ten", "how many cells"),
        ("hash:99999999999999", "at most"),
        ("data", "secret"),
        ("a" * 5000, "at least two"),
    ],
)
def test_what_no_domain_is(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said) as refused:
        parse_domain(text)
    assert refused.value.parameter == "domain" and str(refused.value).endswith(".")


def test_a_file_of_names(tmp_path: Path) -> None:
    plain, table = tmp_path / "names.txt", tmp_path / "names.csv"
    plain.write_text("\ufeffred\nbright, green\n\n")
    assert parse_domain(str(plain)) == Names(("red", "bright, green"))
    assert parse_domain(str(plain)).options == """--domain 'red,"bright, green"'"""
    # A name with a line's end cannot be typed: a file is asked for, not something else in silence.
    assert Names(("red", "two\nlines")).options == "--domain NAMES.txt"
    assert Asked(None, "histogram", {}, {"domain": str(plain)}).values == f"--domain {plain}"
    table.write_text('red\n"bright, green"\n')
    assert parse_names(str(table), "names") == ("red", "bright, green")
    for content, said in (
        ("red\n\ngreen\n", "0 in line 2"),
        ("red\ngreen\nred\n", "red in lines 1 and 3"),
        ("\n\n", "at least one"),
        ("name,count\nred,2\n", "2 in line 1"),
    ):
        table.write_text(content)
        with pytest.raises(DataError, match=said):
            parse_domain(str(table))
    table.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="UTF-8"):
        parse_domain(str(table))


def test_a_category_for_all_others() -> None:
    added = parse_domain("red,green", "rest")
    assert added == Names(("red", "green", "rest"), other="rest")
    assert parse_domain("red,rest", "rest") == Names(("red", "rest"), other="rest")
    assert parse_domain("red", "rest").size == 2
    assert added.options == "--domain red,green,rest --other rest"
    for text in ("1:5", "hash:50", "2026-01-01:2026-01-09"):
        with pytest.raises(ParameterError, match="list of names"):
            parse_domain(text, "rest")


def test_the_first_row_outside_is_named_once_for_each_text() -> None:
    words = np.array([f"w{number}" for number in range(200)])
    domain = Names((*(f"w{number}" for number in range(137)), *(f"w{number}" for number in range(150, 200))))
    where = np.concatenate((np.arange(120), np.arange(200)))
    with pytest.raises(DataError, match="'w137' in row 258:"):
        encode_texts(domain, Texts(words, where))
    codes = encode_texts(Names(tuple(words)), Texts(words, where))
    assert codes.tolist() == where.tolist()


def test_values_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("colour,age,day\nred,007,2026-01-01\nNA,8,2026-01-02T10:00\nred,9,2026-01-01\n")
    assert read_codes(file, "colour", parse_domain("NA,red")).tolist() == [1, 0, 1]
    assert read_codes(file, "age", parse_domain("5:9")).tolist() == [2, 3, 4]
    assert read_codes(file, "age", parse_domain("007,8,9")).tolist() == [0, 1, 2]
    assert read_codes(file, "day", parse_domain("2026-01-01:2026-01-05")).tolist() == [0, 1, 0]
    assert read_codes(file, "colour", parse_domain("hash:50")).tolist()[0] == Hashed(50).encode(["red"])[0]
    alone = tmp_path / "alone.csv"
    alone.write_text("red\ngreen\nred\n")
    with pytest.raises(DataError, match="column's name in the first line, got red"):
        read_codes(alone, None, parse_domain("red,green"))
    assert read_codes(alone, "red", parse_domain("red,green")).tolist() == [1, 0]
    alone.write_text("colour\nred\n\nred\n")
    with pytest.raises(DataError, match="rows without one"):
        read_codes(alone, None, parse_domain("red,green"))
    # A person without a value is a person, and others are what the catch-all is for.
    assert read_codes(alone, None, parse_domain("red", "rest")).tolist() == [0, 1, 0]


@pytest.mark.parametrize("word", ["today", "2026", "2026-02-31", "20260101", "", "2026-01-01T00:00+02:00"])
def test_only_whole_dates_are_dates(word: str) -> None:
    with pytest.raises(DataError, match="must be a date"):
        Dates("2020-01-01", "2030-01-01").encode(["2026-01-01", word])


def test_a_domain_is_not_read_from_the_data_unless_it_is_public(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("colour,age,day\nred,7,2026-01-01\ngreen,9,2026-01-03\n")
    for domain in ("data", str(file), str(tmp_path / "." / "people.csv")):
        with pytest.raises(ParameterError, match="somebody's secret"):
            occurring(file, "colour", domain, None, public=False)
    found = {column: occurring(file, column, "data", None, public=True) for column in ("colour", "age", "day")}
    assert found["colour"] == Names(("green", "red")) and found["age"] == Integers(7, 9)
    assert found["day"] == Dates("2026-01-01", "2026-01-03")
    with pytest.raises(ParameterError, match="nothing to hold"):
        occurring(file, "colour", "data", "rest", public=True)
    with pytest.raises(ParameterError, match="must say which"):
        _ = Asked(None, "histogram", {}).domain
    with pytest.raises(ParameterError, match="both"):
        _ = Asked(None, "histogram", {}, {"domain": "a,b", "categories": 3}).domain


def test_what_devices_report_for_people_without_a_value(tmp_path: Path) -> None:
    file = tmp_path / "gaps.csv"
    file.write_text("x;w\n1.0;a\n;\n0.0;b\n")

    def read(column: str, domain: Any, policy: str) -> list[Any]:
        reading = Reading(missing=Missing.of(policy))
        return list(read_own_values(file, column, None, domain, reading).tolist())

    assert read("x", Bits(), "default=0") == [1, 0, 0]
    assert read("w", Names(("a", "b")), "default=b") == ["a", "b", "b"]
    assert read("w", Names(("a", "b", "rest"), other="rest"), "other") == ["a", "rest", "b"]
    assert read("w", Hashed(100), "other") == ["a", "missing", "b"]
    for column, domain, policy in (
        ("x", Bits(), "default=2"),
        ("x", Bits(), "other"),
        ("w", Names(("a", "b")), "other"),
        ("w", Names(("a", "b")), "default=c"),
    ):
        with pytest.raises(ParameterError) as caught:
            read(column, domain, policy)
        assert caught.value.parameter == "missing" and "row" not in str(caught.value)
