"""How numbers, booleans and nothing at all are written in the cells of a CSV file: the same for every reader of one."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOTHING = frozenset(
    [
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "n/a",
        "nan",
        "null",
    ],
)
"""Cells of a column of numbers that hold no value; in a column of words only the empty one is none."""

TRUE, FALSE = ("1", "true", "True", "TRUE"), ("0", "false", "False", "FALSE")

_NUMBER = re.compile(r"\s*[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_SWAPPED = str.maketrans(",.", ".,")
_WHOLE = re.compile(r"[ \t]*-?\d+[ \t]*", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a CSV cell reads as a number.

    >>> is_number("-1.5e3"), is_number("1,000")
    (True, False)
    """
    return _NUMBER.fullmatch(text) is not None


def first_text(cells: Sequence[str], decimal: str = ".") -> int | None:
    """The place of the first cell that is neither a number nor nothing; None if there is none."""
    read = enumerate(with_points(cells, decimal))
    return next((place for place, cell in read if cell not in NOTHING and not is_number(cell)), None)


def with_points(cells: Sequence[str], decimal: str) -> Sequence[str]:
    """Cells with a point before their decimals; where a comma stands there, a point is no part of a number.

    >>> with_points(["62,61", "1.000", "NA"], ",")
    ['62.61', '1,000', 'NA']
    """
    return cells if decimal == "." else [cell if cell in NOTHING else cell.translate(_SWAPPED) for cell in cells]


def numbers_of(cells: Sequence[str], decimal: str = ".") -> NDArray[Any] | None:
    """Different cells as numbers of the narrowest kind that holds them all: whole ones, booleans or floats.

    Args:
        cells: texts; those that are nothing become 0, and their kind is that of the others.
        decimal: what stands before decimals.

    Returns:
        int64, bool or float64; None where a cell is no number.

    >>> numbers_of(["1", "NA", "3"]), numbers_of(["true", "0"]), numbers_of(["1", "0.5"]), numbers_of(["1", "one"])
    (array([1, 0, 3]), array([ True, False]), array([1. , 0.5]), None)
    """
    cells = with_points(cells, decimal)
    known = [cell for cell in cells if cell not in NOTHING]
    if not known:
        return np.zeros(len(cells))
    found: list[Any] = []
    if all(map(_WHOLE.fullmatch, known)):
        found = [0 if cell in NOTHING else int(cell) for cell in cells]
        if min(found) >= -(1 << 63) and max(found) < 1 << 63:
            return np.array(found, dtype=np.int64)
    if all(cell in TRUE or cell in FALSE for cell in known):
        return np.array([cell in TRUE for cell in cells])
    if all(map(is_number, known)):
        return np.array([0.0 if cell in NOTHING else float(cell) for cell in cells])
    return None
