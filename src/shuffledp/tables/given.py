"""Data that a program holds already: arrays, series and lists, as the columns that plans take."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.tables.texts import Texts


def column_of(
    data: Any,
    column: str | None = None,
    *,
    missing: str = "refuse",
    words: bool | None = None,
    other: str | None = None,
) -> NDArray[Any] | Texts:
    """One value a person: numbers as a NumPy array, words as `Texts`.

    Args:
        data: a series, an array or a list; or a frame or a mapping of columns.
        column: which column of a frame.
        missing: what people without a value report.
        words: whether values are words, whatever they are; as they are if left out.
        other: the category that `missing="other"` means.
    """
    values = np.asarray(data if column is None else data[column])
    if not (values.dtype.kind not in "buif" if words is None else words):
        return values
    distinct, where = np.unique(values.astype(np.str_), return_inverse=True)
    return Texts(distinct, where.reshape(-1).astype(np.int64))
