"""Symmetric matrices as vectors of the same length: the upper triangle, sqrt(2) times off the diagonal."""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError

Floats = NDArray[np.float64]


def packed_dimension(size: int) -> int:
    """Numbers in the upper triangle of a matrix with so many rows.

    Args:
        size: how many rows the matrix has.

    Returns:
        How many numbers a packed matrix has.

    Raises:
        ParameterError: a size below 1.

    >>> packed_dimension(5)
    15
    """
    if size < 1:
        raise ParameterError("size", size, "must be >= 1", "count the rows of a matrix")
    return size * (size + 1) // 2


def pack_symmetric(matrices: ArrayLike) -> Floats:
    """A vector for each symmetric matrix, whose length is the matrix's Frobenius norm.

    Args:
        matrices: symmetric, on the last two axes.

    Returns:
        The upper triangles, entries off the diagonal times the square root of 2.

    Raises:
        DataError: matrices that are not square, or not symmetric.

    >>> pack_symmetric([[[1.0, 2.0], [2.0, 3.0]]]).round(3)
    array([[1.   , 2.828, 3.   ]])
    """
    array = np.asarray(matrices, dtype=np.float64)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise DataError("matrices", f"shape {array.shape}", "must be square", "pass (users, size, size)")
    if not np.allclose(array, np.swapaxes(array, -1, -2), rtol=1e-9, atol=0.0):
        raise DataError("matrices", "unequal mirrored entries", "must be symmetric", "pass (M + M.T) / 2")
    rows, columns = np.triu_indices(array.shape[-1])
    return np.asarray(array[..., rows, columns] * _weights(rows, columns))


def unpack_symmetric(vectors: ArrayLike) -> Floats:
    """The symmetric matrices behind packed vectors.

    Args:
        vectors: what `pack_symmetric` returns, or sums of it.

    Returns:
        The matrices, on the last two axes.

    Raises:
        DataError: vectors with a number of entries that no matrix has.

    >>> unpack_symmetric(pack_symmetric([[1.0, 2.0], [2.0, 3.0]])).round(9)
    array([[1., 2.],
           [2., 3.]])
    """
    array = np.asarray(vectors, dtype=np.float64)
    size = (math.isqrt(8 * array.shape[-1] + 1) - 1) // 2
    if packed_dimension(max(size, 1)) != array.shape[-1]:
        raise DataError("vectors", f"shape {array.shape}", "must have 1, 3, 6, 10, ... numbers", "pack them first")
    rows, columns = np.triu_indices(size)
    matrices = np.empty((*array.shape[:-1], size, size))
    entries = array / _weights(rows, columns)
    matrices[..., rows, columns] = entries
    matrices[..., columns, rows] = entries
    return matrices


def _weights(rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
    return np.where(rows == columns, 1.0, math.sqrt(2))
