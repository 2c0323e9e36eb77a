"""How a search goes down its tree: bits a level, prefixes that are kept, groups, and what is then sure to be found.

With b a level's error bound, all bins at once, a string that x users of a group of g have is kept whenever b holds if

    x >= 2 b        (its estimate reaches b, below which nothing is kept), and
    (g - x) / (x - 2 b) <= keep - 1        (whatever else is estimated as high has at least x - 2 b users).

A string of F users has x of them in a random group but with the probability of Chernoff's bound. The proof, with the
union over levels, groups and strings, is in docs/theory/range-queries.md.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.heavy_hitters.found import sampled_shares

MOST_BINS = 1 << 20
"""Candidates of a level, at most: what a server counts in a second."""
NOISE_FAILURE = SAMPLING_FAILURE = (1 - CONFIDENCE) / 2


@dataclass(frozen=True, slots=True)
class Descent:
    """A way down: strings of so many bits, at most `bins` candidates a level, and `keep` prefixes that pass it."""

    bits: int
    bins: int
    keep: int

    def width(self, is_open: int, ended: int, left: int, after: int | None = None) -> int:
        """Bits that the next level adds.

        Args:
            is_open: prefixes that go on.
            ended: strings that have ended.
            left: bits that are left.
            after: levels that may follow, whatever survives; if given, no more bits than those must leave over.
        """
        if is_open == 0:
            return left
        most = min(left, ((self.bins - ended) // is_open).bit_length() - 1)
        return most if after is None else min(most, max(1, left - after * self.width(self.keep, 0, self.bits)))

    def most_after(self, left: int) -> int:
        """Levels that so many bits take at most, when every level passes on as many prefixes as it may."""
        return math.ceil(left / self.width(self.keep, 0, self.bits)) if left else 0

    @property
    def groups(self) -> int:
        """Levels of a whole search, at most: the first begins with one prefix, the empty one."""
        return 1 + self.most_after(self.bits - self.width(1, 0, self.bits))

    def kept(self, top: int) -> int:
        """Prefixes that a plan for so many strings keeps: where one level finds all, as many as are asked for."""
        return max(self.keep, min(top, self.bins)) if self.groups == 1 else self.keep

    @classmethod
    def ways(cls, bits: int, most_bins: int = MOST_BINS) -> "list[Descent]":
        """Every sensible way with so many bins: the more prefixes are kept, the fewer bits a level adds."""
        bins = 1 << min(bits, most_bins.bit_length() - 1)
        every = [cls(bits, bins, bins >> width) for width in range(1, bins.bit_length())]
        return [way for way in every if way.keep > 1 or way.groups == 1]

    def passes_for_sure(self, group: int, bound: float) -> float:
        """Users of a level's group that a string must have to pass it whatever the others have."""
        return 2 * bound if self.groups == 1 else max(2 * bound, (group + 2 * bound * (self.keep - 1)) / self.keep)

    def surely_found(self, users: int, slots: int, bound: float) -> float:
        """Users that a string must have to pass every level whose group is so many of the parts of all users.

        Infinite where not even a string that everybody has is sure to pass.
        """
        if self.groups == 1:
            return 2 * bound
        group = users * slots // self.groups
        needed = self.passes_for_sure(group, bound)
        if needed >= group:
            return math.inf
        # A string of F >= needed * groups / slots users; at most users / F of them; groups of neighbouring parts.
        events = users * slots / (needed * self.groups) * self.groups * (self.groups + 1) / 2
        return users * sampled_shares(needed / group, group, 2 * SAMPLING_FAILURE / events)[1]

    def fails_at_a_level(self) -> float:
        """How often the noise of one level may pass its bound, for all of them together to keep to NOISE_FAILURE."""
        return NOISE_FAILURE / self.groups


def best_descent(users: int, bits: int, least_kept: int, bound: Callable[[Descent], float]) -> Descent:
    """The way that finds the rarest strings for sure, judged by the noise of one level."""
    ways = [way for way in Descent.ways(bits) if way.groups == 1 or least_kept <= way.keep]
    feasible = [way for way in ways if way.groups <= users] or ways[-1:]
    noise = bound(min(feasible, key=lambda way: way.groups))
    return min(feasible, key=lambda way: (way.surely_found(users, 1, noise), way.groups))
