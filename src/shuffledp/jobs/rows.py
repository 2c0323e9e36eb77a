"""Messages as rows of bytes: how they stand in columns of Parquet, how they are read, and how they are written.

Two kinds: ciphertexts, one column of byte strings of one length; and messages in the clear, a column of whole numbers
and perhaps another of labels. What leaves a job has these columns, under these names, and no others.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.engines.contract import Rows
from shuffledp.errors import DataError

CIPHERTEXT, PAYLOAD, LABEL = "ciphertext", "payload", "label"
WHOLE = {f"{sign}int{bits}": f"u{bits // 8}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""Arrow's names of whole numbers, and the dtype of each as unsigned ones."""
BYTES = ("binary", "large_binary")
FIXED = "fixed_size_binary["


class RowFormat(ABC):
    """What a message is, byte by byte."""

    kind: ClassVar[str]

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes a message."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns of what is written."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The format as JSON."""

    @abstractmethod
    def packed(self, columns: Sequence[Any]) -> Rows:
        """Columns of pyarrow's, in the order of `names`, as rows of bytes.

        Raises:
            DataError: a message is missing, of another length, or negative.
        """

    @abstractmethod
    def unpacked(self, rows: Rows) -> list[Any]:
        """Rows of bytes as columns of pyarrow's, in the order of `names`."""


@dataclass(frozen=True, slots=True)
class CiphertextRows(RowFormat):
    """Byte strings of one length.

    Attributes:
        length: how many bytes each has.
    """

    kind: ClassVar[str] = "ciphertexts"

    length: int

    @property
    def width(self) -> int:
        return self.length

    @property
    def names(self) -> tuple[str, ...]:
        return (CIPHERTEXT,)

    def document(self) -> dict[str, Any]:
        return {CIPHERTEXT: self.length}

    def packed(self, columns: Sequence[Any]) -> Rows:
        (cells,) = columns
        _check_whole(cells, CIPHERTEXT)
        count, kind = len(cells), str(cells.type)
        if kind.startswith(FIXED):
            content = np.frombuffer(cells.buffers()[1], dtype=np.uint8)
            found = content[cells.offset * self.length : (cells.offset + count) * self.length]
            return found.reshape(count, self.length)
        offsets = np.frombuffer(cells.buffers()[1], dtype=np.int32 if kind == "binary" else np.int64)
        offsets = offsets[cells.offset : cells.offset + count + 1]
        lengths = np.diff(offsets)
        if count and (lengths != self.length).any():
            other = int(lengths[lengths != self.length][0])
            way_out = "seal messages of one length, as those of one task are: a length would be a mark"
            raise DataError(CIPHERTEXT, f"one of {other} bytes", f"must be of {self.length} bytes everywhere", way_out)
        content = np.frombuffer(cells.buffers()[2] or b"", dtype=np.uint8)
        return content[offsets[0] : offsets[-1]].reshape(count, self.length)

    def unpacked(self, rows: Rows) -> list[Any]:
        import pyarrow as pa

        content = pa.py_buffer(np.ascontiguousarray(rows))
        return [pa.FixedSizeBinaryArray.from_buffers(pa.binary(self.length), len(rows), [None, content])]


@dataclass(frozen=True, slots=True)
class MessageRows(RowFormat):
    """Whole numbers from 0 on, and perhaps a label each.

    Attributes:
        payload: the dtype of the numbers, such as u2.
        label: the dtype of the labels; None where there are none.
    """

    kind: ClassVar[str] = "messages"

    payload: str
    label: str | None = None

    @property
    def _dtypes(self) -> list["np.dtype[Any]"]:
        return [np.dtype(each) for each in (self.payload, self.label) if each is not None]

    @property
    def width(self) -> int:
        return sum(each.itemsize for each in self._dtypes)

    @property
    def names(self) -> tuple[str, ...]:
        return (PAYLOAD,) if self.label is None else (PAYLOAD, LABEL)

    def document(self) -> dict[str, Any]:
        return {PAYLOAD: self.payload, LABEL: self.label}

    def packed(self, columns: Sequence[Any]) -> Rows:
        return self.joined(*(numbers_of(cells, name) for cells, name in zip(columns, self.names, strict=True)))

    def joined(self, *columns: NDArray[Any]) -> Rows:
        """Numbers and perhaps labels, of the dtypes of this format, as rows of bytes."""
        parts = [each.view(np.uint8).reshape(each.size, each.itemsize) for each in columns]
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def unpacked(self, rows: Rows) -> list[Any]:
        import pyarrow as pa

        columns, place = [], 0
        for dtype in self._dtypes:
            own = np.ascontiguousarray(rows[:, place : place + dtype.itemsize])
            kind = pa.from_numpy_dtype(dtype)
            columns.append(pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(own)]))
            place += dtype.itemsize
        return columns


def format_from(kind: Any, document: Any) -> RowFormat:
    """The format that a JSON document describes.

    Raises:
        DataError: it describes none.
    """
    given = document if isinstance(document, Mapping) else {}
    length, payload, label = (given.get(name) for name in (CIPHERTEXT, PAYLOAD, LABEL))
    if kind == CiphertextRows.kind and type(length) is int and length > 0:
        return CiphertextRows(length)
    if kind == MessageRows.kind and payload in WHOLE.values() and (label is None or label in WHOLE.values()):
        return MessageRows(str(payload), label)
    raise DataError(
        "manifest.columns", str(document)[:80], "must be ciphertexts or messages", "make the data set again"
    )


def numbers_of(cells: Any, name: str) -> NDArray[Any]:
    """A column of whole numbers as unsigned ones, without a copy.

    Raises:
        DataError: one is missing or negative.
    """
    _check_whole(cells, name)
    kind = str(cells.type)
    dtype = np.dtype(WHOLE[kind])
    content = cells.buffers()[1]
    if content is None:
        return np.empty(0, dtype=dtype)
    found: NDArray[Any] = np.frombuffer(content, dtype=dtype, count=len(cells), offset=cells.offset * dtype.itemsize)
    if kind.startswith("int") and found.size and int(found.view(f"i{dtype.itemsize}").min()) < 0:
        least = int(found.view(f"i{dtype.itemsize}").min())
        raise DataError(name, least, "must be whole numbers >= 0", "messages are unsigned: write them as the plan does")
    return found


def _check_whole(cells: Any, name: str) -> None:
    if cells.null_count:
        way_out = "write every message, or leave its row out"
        raise DataError(name, f"{cells.null_count:,} rows without one", "must be there in every row", way_out)
