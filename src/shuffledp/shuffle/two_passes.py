"""A uniform permutation of more messages than memory holds: deal them to random buckets, then permute each bucket.

Pass 1 gives every message a bucket of its own choice, uniform and independent of everything else; pass 2 permutes each
bucket uniformly; the buckets end to end are the batch. Every order has the same probability, exactly: see
docs/theory/sampling.md. How many messages a bucket gets is part of what is drawn; blocks in which messages came would
not do.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.sampling.uniform import uniform_below

Rows = NDArray[np.uint8]
"""Messages of one length, a row each."""


def buckets_for(length: int, bucket_bytes: int) -> int:
    """How many buckets a batch of so many bytes is dealt to, so that each is of about `bucket_bytes`.

    >>> buckets_for(693_000_000, 4 << 20), buckets_for(1, 4 << 20)
    (166, 1)
    """
    return max(1, -(-length // bucket_bytes))


def deal(rows: Rows, buckets: int, *, bits: RandomBits) -> list[tuple[int, Rows]]:
    """Pass 1: some of a batch's messages, each dealt to a bucket of its own; the number and rows of those that got any.

    Args:
        rows: messages of the batch, in any order.
        buckets: how many buckets there are.
        bits: where the choices come from.

    Raises:
        ParameterError: there is no bucket.
    """
    if buckets < 1:
        raise ParameterError("buckets", buckets, "must be >= 1", "one bucket is a permutation in memory")
    chosen = uniform_below(buckets, len(rows), bits=bits)
    return dealt_to(rows, chosen, buckets)


def dealt_to(rows: Rows, chosen: NDArray[Any], buckets: int) -> list[tuple[int, Rows]]:
    """Messages by the bucket that was chosen for each, in their order; the number and rows of those that got any.

    Args:
        rows: the messages.
        chosen: a bucket for each.
        buckets: how many there are.
    """
    order = np.argsort(chosen, kind="stable")
    counts = np.bincount(chosen, minlength=buckets)
    ends = np.cumsum(counts)
    dealt = np.take(rows, order, axis=0)
    return [(int(b), dealt[ends[b] - counts[b] : ends[b]]) for b in np.flatnonzero(counts)]


def permuted_rows(rows: Rows, *, bits: RandomBits) -> Rows:
    """Pass 2: the messages of one bucket in a uniformly random order."""
    return rows[uniform_permutation(len(rows), bits=bits)]


def permuted_in_two_passes(parts: Iterable[Rows], buckets: int, *, bits: RandomBits) -> Iterator[Rows]:
    """A batch that comes in parts, in a uniformly random order: its permuted buckets, one after the other.

    Args:
        parts: the messages, a matrix a part.
        buckets: how many buckets there are.
        bits: where all choices come from.

    >>> parts = [np.arange(6, dtype=np.uint8).reshape(3, 2), np.arange(6, 10, dtype=np.uint8).reshape(2, 2)]
    >>> mixed = np.concatenate(list(permuted_in_two_passes(parts, 3, bits=RandomBits.seeded(1))))
    >>> sorted(mixed.tolist())
    [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    """
    kept: dict[int, list[Rows]] = {}
    for part in parts:
        for bucket, rows in deal(part, buckets, bits=bits):
            kept.setdefault(bucket, []).append(rows)
    for bucket in sorted(kept):
        yield permuted_rows(np.concatenate(kept.pop(bucket)), bits=bits)
