"""Shares of all windows together: as many as are needed, and no window is left out."""

import math

import pytest

from shuffledp.accounting.mixing import mixing_distance
from shuffledp.continual.carried.transport import distance_with, shares_for
from shuffledp.errors import InfeasibleError

WINDOWS = ((12, 1), (24, 1), (36, 500))


@pytest.mark.parametrize("coordinates", [1, 5])
def test_all_windows_together_keep_within_the_distance(coordinates: int) -> None:
    shares = shares_for(WINDOWS, 45, coordinates, 1e-7)
    assert shares[12] >= shares[24] >= shares[36] > 2
    shown = distance_with(dict(WINDOWS), shares, 45, coordinates)
    assert 0 < shown <= 1e-7
    # Like a root of squares: one window's distance is 1/2 sqrt(F - 1), and the F of independent windows multiply.
    together = math.fsum(
        coordinates * many * math.log1p((2 * mixing_distance(honest, shares[honest], 1 << 45)) ** 2)
        for honest, many in WINDOWS
    )
    assert shown == pytest.approx(math.sqrt(math.expm1(together)) / 2, rel=1e-6)
    fewer = {honest: share - 1 for honest, share in shares.items()}
    assert distance_with(dict(WINDOWS), fewer, 45, coordinates) > 1e-7


def test_nobody_honest_hides_nothing() -> None:
    assert distance_with({0: 1}, {0: 9}, 45, 1) == math.inf
    with pytest.raises(InfeasibleError, match="users"):
        shares_for(((2, 100),), 64, 1, 1e-300)
