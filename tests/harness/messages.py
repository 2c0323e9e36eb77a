"""Data sets of messages for tests of jobs: every message says where it stood."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WIDTH = 9


def ciphertexts(numbers: np.ndarray) -> np.ndarray:
    """Rows of bytes that have these numbers in them."""
    rows = np.full((len(numbers), WIDTH), 0xA5, dtype=np.uint8)
    rows[:, 1:5] = numbers.astype(">u4").view(np.uint8).reshape(-1, 4)
    return rows


def write_ciphertexts(folder: Path, sizes: tuple[int, ...], *, group: int = 1 << 20) -> Path:
    """A folder of files of so many ciphertexts each, numbered in their order, with time and address beside."""
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    for number, size in enumerate(sizes):
        rows = ciphertexts(np.arange(first, first + size))
        cells = pa.FixedSizeBinaryArray.from_buffers(pa.binary(WIDTH), size, [None, pa.py_buffer(rows)])
        beside = {"received_at": np.arange(first, first + size) + 1_790_000_000, "address": ["198.51.100.7"] * size}
        table = pa.table({"ciphertext": cells, **beside}).replace_schema_metadata({"uploaded": "2026-11-17T21:00"})
        pq.write_table(table, folder / f"hour-{number:02}.parquet", row_group_size=group)
        first += size
    return folder


def numbers_in(folder: Path) -> list[int]:
    """The numbers of a folder's ciphertexts, in their order."""
    found = []
    for path in sorted(folder.glob("*.parquet")):
        column = pq.read_table(path).column("ciphertext").to_pylist()
        found += [int.from_bytes(cell[1:5], "big") for cell in column]
    return found


def messages_of_files(folder: Path) -> list[bytes]:
    """A folder's ciphertexts, in their order."""
    files = sorted(folder.glob("*.parquet"))
    return [cell for path in files for cell in pq.read_table(path).column("ciphertext").to_pylist()]
