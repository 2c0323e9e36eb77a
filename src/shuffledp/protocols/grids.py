"""Which grid for numbers sent in unary: a finer one is more accurate and costs more messages."""

import math
from collections.abc import Callable

from shuffledp.errors import InfeasibleError

# Accurate enough: this close to Gaussian noise of the same privacy.
ACCURATE = 1.10
# Grids up to so many times the coarsest are tried.
_TRIED = 100
_GROWTH = 1.04


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
    a limit on the messages, the most accurate grid that keeps to it, if none is accurate enough.
    """
    grid = coarsest if max_length is None else min(coarsest, max(1, max_length // 8))
    best: tuple[float, int, int] | None = None
    fewest = math.inf
    while grid <= _TRIED * coarsest and (max_length is None or grid < max_length):
        needed = coins(grid)
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
