import pytest

from shuffledp.accounting.dropouts import honest_users
from shuffledp.errors import ParameterError


@pytest.mark.parametrize(
    ("users", "fraction", "honest"),
    [
        (80, 0.9, 72),
        (80, 0.5, 40),
        (80, 1 / 3, 26),
        (3, 1 / 3, 1),
        (10, 0.7, 7),
        (100, 0.29, 29),
        (5, 0.01, 1),
        (7, 1, 7),
        (10**12, 6e-10, 599),  # the float is a little below: never more than it says
        (10**12, 1 - 1e-10, 999_999_999_899),
    ],
)
def test_whole_honest_users(users: int, fraction: float, honest: int) -> None:
    assert honest_users(users, fraction) == honest


@pytest.mark.parametrize("fraction", [0, -0.1, 1.01, float("nan"), "half", None, True])
def test_bad_fractions_are_named(fraction) -> None:
    with pytest.raises(ParameterError, match="honest_fraction"):
        honest_users(10, fraction)
