"""Which grid for numbers sent in unary: a finer one is more accurate and costs more messages."""

import math
from collections.abc import Callable

from shuffledp.errors import InfeasibleError

# Accurate enough: this close to Gaussian noise of the same privacy.
ACCURATE = 1.10
# Grids up to so many times the coarsest are tried.
_TRIED = 100
_GROWTH = 1.04
# Coins that a user throws at most: nobody would send more messages. And all users, whose number a double still holds.
_MOST_COINS, _MOST_IN_ALL = 1 << 20, 1 << 53


def check_coins(needed: float, honest: int) -> None:
    """Refuse a number that needs so many coins of all honest users, at least: Gaussian noise needs no more."""
    way_out = "take a larger epsilon or delta, or the method shares"
    if needed > _MOST_COINS * honest:
        each = f"{needed / honest:.3g}"
        raise InfeasibleError(
            "messages", each, f"would be more than {_MOST_COINS} a user", f"take more users, or {way_out[5:]}"
        )
    if needed > _MOST_IN_ALL:
        problem = f"would be more than {_MOST_IN_ALL}, too many to account for"
        raise InfeasibleError("coins", f"{needed:.3g}", problem, way_out)


def coarsest_grid(users: int, target: float) -> int:
    """Below it, rounding sqrt(users) / 2 steps takes more than what ACCURATE leaves beside Gaussian noise.

    >>> coarsest_grid(10_000, 4.225)
    25
    """
    return max(1, math.floor(math.sqrt(users / 4 / (ACCURATE**2 - 1)) / target))


def choose_grid(
    coins: Callable[[int], int],
    error: Callable[[int, int], float],
    *,
    target: float,
    coarsest: int,
    max_length: int | None,
) -> tuple[int, int]:
    """The grid and its coins a user with the fewest messages whose error is at most ACCURATE times the target.

    The target is Gaussian noise of the same privacy from all users. `coins(grid)` noise bits a user are needed
    on a grid, and give `error(grid, coins)`; below the coarsest grid the rounding alone would be too much. With
    a limit on the messages, the most accurate grid that keeps to it, if none is accurate enough; so, too, where
    `coins` refuses finer grids.
    """
    grid = coarsest if max_length is None else min(coarsest, max(1, max_length // 8))
    best: tuple[float, int, int] | None = None
    fewest = math.inf
    while grid <= _TRIED * coarsest and (max_length is None or grid < max_length):
        try:
            needed = coins(grid)
        except InfeasibleError:
            if best is None:
                raise
            break  # a finer grid needs more
        fewest = min(fewest, grid + needed)
        if max_length is None or grid + needed <= max_length:
            here = error(grid, needed)
            if here <= ACCURATE * target:
                return grid, needed
            if best is None or here < best[0]:
                best = (here, grid, needed)
        elif best is not None:
            break
        grid = max(grid + 1, int(grid * _GROWTH))
    if best is None:
        raise InfeasibleError(
            "max_messages",
            max_length,
            f"must be more than it is; {fewest:g} bits for each number would do" if fewest < math.inf else "is too few",
            "allow more messages, or choose the method shares",
        )
    return best[1], best[2]
