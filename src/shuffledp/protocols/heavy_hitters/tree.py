"""One level of a tree of strings: the prefixes that survived, and the bins of what continues them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.protocols.heavy_hitters.levels import Descent
from shuffledp.protocols.heavy_hitters.words import Bits, Strings, UnlistedStrings

# Strings that are spelled at a time, when a group's places in the tree are looked up.
_BLOCK = 1 << 16


def packed(bits: Bits) -> Strings:
    """Rows of bits as strings of bytes, which sort alike."""
    rows = np.packbits(bits, axis=1) if bits.shape[1] else np.zeros((len(bits), 1), dtype=np.uint8)
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def _unpacked(prefixes: Sequence[bytes], depth: int) -> Bits:
    """The first bits of each prefix, a row each."""
    width = max(1, math.ceil(depth / 8))
    rows = np.frombuffer(b"".join(prefix.ljust(width, b"\0") for prefix in prefixes), dtype=np.uint8)
    return np.unpackbits(rows.reshape(len(prefixes), width), axis=1)[:, :depth]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Prefixes of `depth` bits, which the level continues by `width`; a string that has ended has one bin, zeros."""

    words: UnlistedStrings
    depth: int
    width: int
    bits: Bits
    """The bits of the prefixes, a row each, in their order."""
    ended: NDArray[np.bool_]
    firsts: NDArray[np.int64]
    """The first bin of each prefix, and the number of all bins."""

    @classmethod
    def of(
        cls, words: UnlistedStrings, descent: Descent, depth: int, prefixes: Sequence[bytes], after: int | None = None
    ) -> "Level":
        """The level after these prefixes, with as many bits as its bins allow, or as so many levels `after` need."""
        bits = _unpacked(prefixes, depth)
        ended = words.have_ended(bits)
        width = descent.width(int((~ended).sum()), int(ended.sum()), descent.bits - depth, after)
        sizes = np.ones(ended.size, dtype=np.int64)
        if not ended.all():
            sizes[~ended] = 1 << width
        return cls(words, depth, width, bits, ended, np.concatenate(([0], np.cumsum(sizes))))

    @property
    def candidates(self) -> int:
        """How many bins there are."""
        return int(self.firsts[-1])

    def codes(self, strings: Strings) -> NDArray[np.int64]:
        """The bin of each checked string; the last code, `candidates`, is "other"."""
        prefixes = packed(self.bits)
        places = 1 << np.arange(0 if self.ended.all() else self.width, dtype=np.int64)[::-1]
        codes = np.empty(strings.size, dtype=np.int64)
        for start in range(0, strings.size, _BLOCK):
            some = strings[start : start + _BLOCK]
            bits = self.words.spelled(some)
            here = packed(bits[:, : self.depth])
            which = np.minimum(np.searchsorted(prefixes, here), prefixes.size - 1)
            following = bits[:, self.depth : self.depth + places.size].astype(np.int64) @ places
            known = (prefixes[which] == here) & self.words.can_spell(some)
            bins = self.firsts[which] + np.where(self.ended[which], 0, following)
            codes[start : start + _BLOCK] = np.where(known, bins, self.candidates)
        return codes

    def continued(self, bins: NDArray[np.int64]) -> Bits:
        """The bits of these bins' strings: those of a prefix, and the next ones."""
        which = np.searchsorted(self.firsts, bins, side="right") - 1
        following = (bins - self.firsts[which])[:, np.newaxis] >> np.arange(self.width)[::-1] & 1
        return np.hstack((self.bits[which], following.astype(np.uint8)))
