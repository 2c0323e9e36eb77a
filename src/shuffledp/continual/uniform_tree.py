"""The best uniform tree with the same noise and the same exact tails: what the combinatorial schedule is held against.

After t slots the estimate is made of as many batches as the digits of t, written to the base of the degree,
add up to. So the prefixes of j batches are counted by the coefficients of ((1 - x^d) / (1 - x))^k.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.bounds import ROUGH, SumTails, horizon_bound, sum_tails
from shuffledp.errors import ParameterError

# The Gaussian guess may be so far above the bound that is then computed.
_SURE = 1.35
# So many degrees are tried with rough tails, and the best few with fine ones; fewer where the degree is large,
# as near the best one the bound hardly depends on it.
_TRIED, _TRIED_OF_MANY, _FINALISTS = 40, 10, 3
# Sums of more noises than this keep the rough tails, which cost a per cent and save seconds.
_FINE_UP_TO = 5000


@dataclass(frozen=True, slots=True)
class UniformTree:
    """A tree's shape and its error bound over the whole horizon, in users."""

    shufflers: int
    degree: int
    slot_users: int
    bound: float


def prefixes_up_to(batches: int, degree: int, shufflers: int) -> int:
    """How many prefixes are made of at most so many batches, by inclusion and exclusion.

    >>> [prefixes_up_to(j, 3, 2) for j in range(5)]
    [1, 3, 6, 8, 9]
    """
    return sum(
        (-1) ** full * math.comb(shufflers, full) * math.comb(batches - full * degree + shufflers, shufflers)
        for full in range(min(shufflers, batches // degree) + 1)
    )


def best_uniform_tree(
    users: int, shufflers: int, noise: Callable[[int], IntegerLaw], confidence: float = 0.95, reach: float = 0.5
) -> UniformTree:
    """The tree of at most so many levels with the smallest bound; noise(k) is a batch's if a user is in k of them.

    Inside a slot half of the users since are added. Reference: [000] Algorithm 3, with nothing of its constants.

    Args:
        users: how many come.
        shufflers: levels of the tree at most.
        noise: the law of a batch's noise, by the levels.
        confidence: with which the bound holds at all times.
        reach: how far off a user since the last slot is at most, in the noise's unit, as the bound is.

    >>> from shuffledp.accounting.laws import DiscreteLaplace
    >>> best_uniform_tree(1_000_000, 4, lambda k: DiscreteLaplace(math.exp(-1 / k)))
    UniformTree(shufflers=3, degree=24, slot_users=73, bound=173.0)
    """
    if users < 1 or shufflers < 1:
        raise ParameterError("users", users, "must be >= 1, with at least one shuffler", "check both")
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "must lie strictly between 0 and 1", "0.95 is a common choice")
    # With more levels than this even the smallest degree has more slots than there are times.
    used = range(1, min(shufflers, users.bit_length()) + 1)
    failure = 1 - confidence
    guesses = {levels: _guess(users, levels, noise(levels).standard_deviation, failure, reach) for levels in used}
    found: list[UniformTree] = []
    for levels in sorted(used, key=lambda levels: guesses[levels][1]):
        degree, about = guesses[levels]
        if all(about <= _SURE * tree.bound for tree in found):
            found.append(_best_degree(users, levels, degree, noise(levels), failure, reach))
    return min(found, key=lambda tree: tree.bound)


def slot_users_for(users: int, degree: int, levels: int) -> int:
    """The smallest slot with which the tree lasts for all users, the last slot never being full."""
    slots: int = degree**levels
    return -(-(users + 1) // slots)


def _largest_degree(users: int, levels: int) -> int:
    """The smallest degree that makes every user a slot: a larger one has no use."""
    degree = max(2, round(math.pow(users + 1, 1 / levels)))
    return degree if slot_users_for(users, degree, levels) == 1 else degree + 1


def _guess(users: int, levels: int, deviation: float, failure: float, reach: float) -> tuple[int, float]:
    """The degree that would be best if noise were Gaussian, and about what bound it would have."""
    degrees = np.unique(np.ceil(np.geomspace(2, _largest_degree(users, levels), 2000)))
    slots = np.minimum(users + 1, degrees**levels)
    factors = -special.ndtri(failure / 2 / slots)
    bounds = factors * deviation * np.sqrt(levels * (degrees - 1)) + ((users + 1) / slots - 1) * reach
    at = int(np.argmin(bounds))
    return int(degrees[at]), float(bounds[at])


def _degrees(users: int, levels: int, around: int) -> range:
    """Degrees to try: all of them if they are few, else some near the guess, which is rarely too large."""
    largest = _largest_degree(users, levels)
    low, high = max(2, around // 2), min(largest, 2 * around + 2)
    if high - low <= _TRIED:
        return range(low, high + 1)
    low, high = int(0.85 * around), min(largest, math.ceil(1.4 * around))
    tried = _TRIED if high - low <= 10 * _TRIED else _TRIED_OF_MANY
    return range(low, high + 1, max(1, (high - low) // tried))


def _best_degree(users: int, levels: int, around: int, law: IntegerLaw, failure: float, reach: float) -> UniformTree:
    degrees = _degrees(users, levels, around)

    def bound(degree: int, tails: SumTails) -> float:
        most = levels * (degree - 1)
        noise = horizon_bound(tails, most, lambda j: prefixes_up_to(j, degree, levels), failure)
        return noise + (slot_users_for(users, degree, levels) - 1) * reach

    # Rough bounds are upper bounds, too; the fine ones of the few best decide.
    tails = sum_tails(law, levels * (degrees[-1] - 1), ROUGH)
    bounds = {degree: bound(degree, tails) for degree in degrees}
    finalists = sorted(degrees, key=lambda degree: bounds[degree])[:_FINALISTS]
    most = levels * (max(finalists) - 1)
    if most <= _FINE_UP_TO:
        tails = sum_tails(law, most)
        bounds = {degree: bound(degree, tails) for degree in finalists}
    degree = min(finalists, key=lambda degree: bounds[degree])
    return UniformTree(levels, degree, slot_users_for(users, degree, levels), bounds[degree])
