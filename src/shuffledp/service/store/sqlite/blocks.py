"""Statements about many values at once: each is one call, whatever it holds, and few different ones are prepared."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T", bound=Any)


@cache
def asked(count: int) -> str:
    """A table of so many values beside the first, of which those that fill up are nothing."""
    return f"(SELECT column1 AS it FROM (VALUES {', '.join(f'(?{place + 2})' for place in range(count))}))"


def in_blocks(values: Iterable[T]) -> Iterator[tuple[int, list[T | None]]]:
    """In the order of keys, so that pages are touched once: how many, and so many values, filled up to powers of two.

    >>> list(in_blocks([3, 1, 2]))
    [(4, [1, 2, 3, None])]
    """
    ordered: list[T | None] = [*sorted(values)]
    for start in range(0, len(ordered), 256):
        block = ordered[start : start + 256]
        count = 1 << (len(block) - 1).bit_length()
        yield count, block + [None] * (count - len(block))
