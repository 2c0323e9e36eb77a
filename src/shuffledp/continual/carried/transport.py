"""How many shares carry each window, so that all windows together show no more than their sums.

What a user adds to one window is drawn with what it adds to the others, and noise protects people who came long before:
so all windows must be simulated from their sums, not only those of one user. Their placements are independent given
everybody's numbers, so the distances add up like a root of squares (docs/theory/split-and-mix.md).
"""

import math
from collections.abc import Mapping
from functools import lru_cache

from shuffledp.accounting.mixing import distance_of_each, mixing_distance_of, smallest_messages
from shuffledp.errors import InfeasibleError


@lru_cache(maxsize=256)
def shares_for(
    windows: tuple[tuple[int, int], ...], modulus_bits: int, coordinates: int, distance: float
) -> dict[int, int]:
    """The shares of a number in windows with so many honest users.

    Args:
        windows: how many honest users a kind of window has, and how many windows are of that kind.
        modulus_bits: of a share.
        coordinates: numbers that a user sends to each.
        distance: of all windows together from what their sums alone show.
    """
    count = coordinates * sum(many for _, many in windows)
    each = distance_of_each(distance, count)
    try:
        return {honest: smallest_messages(honest, 1 << modulus_bits, each) for honest, _ in windows}
    except InfeasibleError:
        fewest = min(honest for honest, _ in windows)
        raise InfeasibleError("users", fewest, "are too few in a slot to mix shares", "plan larger slots") from None


def distance_with(windows: Mapping[int, int], shares: Mapping[int, int], modulus_bits: int, coordinates: int) -> float:
    """How far all windows together are from what their sums show.

    Args:
        windows: by number of honest users, how many windows.
        shares: by the same, the shares of a number.
        modulus_bits: of a share.
        coordinates: numbers that a user sends to each.
    """
    if any(honest < 1 for honest in windows):
        return math.inf
    return mixing_distance_of(
        (honest, shares[honest], 1 << modulus_bits, coordinates * many) for honest, many in windows.items()
    )
