"""Domains: values to codes and back, and every bad one refused in a sentence."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.categories import Dates, Hashed, Integers, Names, as_categories
from shuffledp.protocols.domains.domain import Categories


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Integers(-3, 4), [-3, 4, 0]),
        (Names(("b", "a", "c d")), ["c d", "b", "a"]),
        (Dates("2026-02-27", "2026-03-02"), ["2026-03-01", "2026-02-27"]),
    ],
)
def test_codes_have_the_names_of_their_values(domain: Categories, values: list[object]) -> None:
    codes = domain.encode(values)
    assert [domain.name(int(code)) for code in codes] == [str(value) for value in values]
    assert domain.names()[int(codes[0])] == str(values[0])


@pytest.mark.parametrize(
    "domain", [Integers(5, 9), Names(("x", "y")), Dates("2026-01-01", "2026-12-31"), Hashed(77, "salt")]
)
def test_a_domain_survives_its_document(domain: Categories) -> None:
    assert as_categories(json.loads(json.dumps(domain.document()))) == domain


@given(st.lists(st.text(min_size=1), min_size=2, unique=True), st.data())
def test_names_are_found_wherever_they_stand(names: list[str], data: st.DataObject) -> None:
    # NumPy's text arrays cannot tell a trailing NUL from none.
    names = list(dict.fromkeys(name.rstrip("\0") + "." for name in names))
    if len(names) < 2:
        return
    picked = data.draw(st.lists(st.sampled_from(names), min_size=1))
    assert [names[code] for code in Names(tuple(names)).encode(picked)] == picked


@pytest.mark.parametrize(
    "given_domain",
    [
        0,
        1,
        -4,
        [],
        ["only"],
        ["a", "b", "a"],
        [1, 2],
        range(3, 3),
        range(0, 10, 2),
        "a,b",
        None,
        True,
        1 << 40,
        2.5,
        {"kind": "sets"},
        {"kind": "integers", "low": 3},
        {"kind": "integers", "low": 0.5, "high": 3},
    ],
)
def test_no_such_domain(given_domain: object) -> None:
    with pytest.raises(ParameterError) as caught:
        as_categories(given_domain)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("domain", "values"),
    [
        (Integers(0, 9), [0, 10]),
        (Integers(0, 9), [-1]),
        (Integers(0, 9), [0.5]),
        (Integers(0, 9), [float("nan")]),
        (Integers(0, 9), [float("inf")]),
        (Integers(0, 9), ["1"]),
        (Integers(0, 9), []),
        (Integers(0, 9), [[1]]),
        (Integers(0, 9), np.array([1 << 63], dtype=np.uint64)),
        (Names(("a", "b")), ["a", "c"]),
        (Names(("a", "b")), [""]),
        (Dates("2026-01-01", "2026-01-31"), ["2026-02-01"]),
        (Dates("2026-01-01", "2026-01-31"), ["yesterday"]),
        (Dates("2026-01-01", "2026-01-31"), ["NaT"]),
    ],
)
def test_values_outside_are_refused(domain: Categories, values: object) -> None:
    with pytest.raises(ParameterError) as caught:
        domain.encode(values)
    assert caught.value.parameter == "values"


@pytest.mark.parametrize(("first", "last"), [("2026-01-02", "2026-01-01"), ("2026-13-01", "2027-01-01"), (3, 4)])
def test_no_such_days(first: object, last: object) -> None:
    with pytest.raises(ParameterError):
        Dates(first, last)  # type: ignore[arg-type]


def test_hashing_spreads_names_evenly() -> None:
    codes = Hashed(10, "x").encode([f"name {i}" for i in range(20_000)])
    counts = np.bincount(codes, minlength=10)
    # Chi-square with 9 degrees of freedom passes 66 once in 1e10 tries.
    assert float(((counts - 2000) ** 2 / 2000).sum()) < 66
    assert not np.array_equal(codes, Hashed(10, "y").encode([f"name {i}" for i in range(20_000)]))
