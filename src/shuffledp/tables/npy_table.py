"""A .npy file as a table: a column, a matrix, or named fields."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_column, no_matrix, unreadable, wrong_kind
from shuffledp.tables.table import Numbers, OpenTable, choose_column
from shuffledp.tables.words import Texts


class NpyTable(OpenTable):
    """An array on disk, mapped into memory.

    A plain column has no name to give, and ignores one. The columns of a matrix are numbered from 1 on.
    """

    def __init__(self, path: Path) -> None:
        self.source, self.where = str(path), path.name
        self.array: NDArray[Any] | None = None
        try:
            # What np.load does for mmap_mode="r" and allow_pickle=False, less its guesses at zip and pickle.
            self.array = np.lib.format.open_memmap(path, mode="r")
        except Exception as broken:  # a damaged header raises whatever its parser stumbles over
            if "Python objects" not in str(broken):
                raise unreadable(self.source, ".npy", "save it again with numpy.save") from broken

    def between(self, first: int, last: int) -> "NpyTable":
        """The rows from one to another, read and not mapped: what was mapped would stay in memory.

        Args:
            first: the first of them, from 0.
            last: the first behind them.
        """
        found = copy(self)
        array = self._values(None)
        if isinstance(array, np.memmap) and array.flags.c_contiguous:
            width = int(np.prod(array.shape[1:], dtype=np.int64))
            start = array.offset + first * width * array.dtype.itemsize
            read = np.fromfile(self.source, dtype=array.dtype, count=(last - first) * width, offset=start)
            if read.size != (last - first) * width:
                raise unreadable(self.source, ".npy", "save it again with numpy.save")
            found.array = read.reshape(last - first, *array.shape[1:])
        else:
            found.array = np.array(array[first:last])
        return found

    @property
    def names(self) -> list[str]:  # type: ignore[override]
        """A matrix has numbers, from 1 on."""
        values = self._values(None)
        if values.ndim != 2 or values.dtype.names is not None:
            raise no_matrix(self.where, values)
        return [str(place + 1) for place in range(values.shape[1])]

    def choose(self, column: str | None) -> str | None:
        values = self._values(column)
        if values.ndim != 1:
            raise no_column(self.where, values)
        return None if values.dtype.names is None else choose_column(values.dtype.names, column, self.where)

    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        found = []
        for name in names:
            values = self._column(name)
            if values.dtype.kind not in "biuf":
                raise wrong_kind(name, self.where, str(values.dtype))
            kind = np.float64 if values.dtype.kind == "f" else values.dtype.newbyteorder("=")
            native = np.array(values, dtype=kind, subok=False)
            found.append((native, np.isnan(native) if kind is np.float64 else np.zeros(native.shape, dtype=np.bool_)))
        return found

    def words(self, name: str | None) -> Texts:
        values = np.asarray(self._column(name))
        if values.dtype.kind not in "biuUM":
            raise wrong_kind(name, self.where, str(values.dtype), names=True)
        texts = values.astype(np.str_)
        return Texts.of(np.where(np.isnat(values), "", texts) if values.dtype.kind == "M" else texts)

    def several(self, columns: Sequence[str] | None) -> dict[str | None, Numbers]:
        values = self._values(None)
        if columns is not None:
            way_out = "its columns have no names, so all of them are read"
            raise DataError("columns", ", ".join(columns), f"must be left out for {self.where}", way_out)
        if values.dtype.names is not None:
            found = f"fields {', '.join(values.dtype.names)}"
            raise DataError("file", found, f"{self.where} must hold a plain array", "save named columns as Parquet")
        if values.ndim not in (1, 2) or 0 in values.shape[1:]:
            raise no_matrix(self.where, values)
        chosen: list[str | None] = [None] if values.ndim == 1 else [*self.names]
        return dict(zip(chosen, self.numbers(chosen), strict=True))

    def _values(self, column: str | None) -> NDArray[Any]:
        if self.array is None:
            raise wrong_kind(column, self.where, "object")
        return self.array

    def _column(self, name: str | None) -> NDArray[Any]:
        values = self._values(name)
        if name is None:
            return values
        return values[name] if values.dtype.names is not None else values[:, int(name) - 1]
