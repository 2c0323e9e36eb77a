"""Sums in two rounds: keys for every two users, then values under masks that cancel."""

from shuffledp.protocols.masked_sum.plan import MaskedSum

__all__ = ["MaskedSum"]
