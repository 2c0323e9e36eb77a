"""Domains as they are typed: a text makes the domain whose text it is."""

import pytest

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.axes import Axis, as_axes, parse_axes
from shuffledp.protocols.domains.categories import Dates, Hashed, Integers, Names, parse_categories
from shuffledp.protocols.ranges import Ranges

TARGET = Privacy(1, 1e-6)


@pytest.mark.parametrize(
    "domain",
    [
        Integers(-3, 40),
        Names(("red", "green", "blue")),
        Dates("2026-01-30", "2026-02-02"),
        Hashed(1000),
        Hashed(12, "salt:1"),
    ],
)
def test_a_text_is_read_as_it_is_written(domain) -> None:
    assert parse_categories(domain.text) == domain


def test_names_may_come_from_elsewhere_and_have_another() -> None:
    found = parse_categories("a file", "rest", lambda text: [text, "b"])
    assert found == Names(("a file", "b", "rest"), "rest")
    assert parse_categories("a,b", "b") == Names(("a", "b"), "b")


@pytest.mark.parametrize(
    ("text", "other", "parameter"),
    [
        ("9:0", None, "domain"),
        ("2026-02-01:2026-01-01", None, "domain"),
        ("2026-02-30:2026-03-01", None, "domain"),
        ("hash:", None, "domain"),
        ("hash:many", None, "domain"),
        ("alone", None, "domain"),
        ("a,,b", None, "domain"),
        ("", None, "domain"),
        ("a,a", None, "domain"),
        ("0:9", "rest", "other"),
        ("hash:10", "rest", "other"),
    ],
)
def test_what_is_no_domain_is_refused(text: str, other, parameter: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_categories(text, other)
    assert caught.value.parameter == parameter


def test_axes_are_read_from_texts_with_steps() -> None:
    assert parse_axes("0:9") == as_axes("0:9") == (Axis(0, 9),)
    assert parse_axes("-1:1x0.5:1.5", 8) == (Axis(-1, 1, 8), Axis(0.5, 1.5, 8))
    for bad in ("", "0", "0:1:2", "0:ax0:1", "0:1x0:1x0:1", "9:0", "0.5:1.5"):
        with pytest.raises(ParameterError):
            parse_axes(bad)


def test_the_family_of_ranges_takes_a_text() -> None:
    asked = {"users": 1000, "privacy": TARGET}
    typed, given = (Ranges.plan(**asked, domain=domain) for domain in ("0:99", 100))
    assert typed == given and typed.method == "tree"
    cells = Ranges.plan(**asked, domain="0:1", steps=10)
    assert cells.axes == (Axis(0, 1, 10),)
    with pytest.raises(ParameterError, match="domain"):
        Ranges.plan(**asked)
